package kubelet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestStatefulSet: names, order, a claim for each, addresses by name, and data that
// a Pod finds again.
func TestStatefulSet(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.post(t, "/api/v1/namespaces/"+ns+"/services", `{apiVersion: v1, kind: Service, metadata: {name: cellar}, spec: {clusterIP: None, selector: {app: cellar}, ports: [{port: 80}]}}`)
	h.post(t, "/apis/apps/v1/namespaces/"+ns+"/statefulsets", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: cellar}, spec: {serviceName: cellar, replicas: 2, selector: {matchLabels: {app: cellar}},
template: {metadata: {labels: {app: cellar}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sh, -c, "echo $HOSTNAME >> /wine/label; sleep 3600"], volumeMounts: [{name: wine, mountPath: /wine}]}]}},
volumeClaimTemplates: [{metadata: {name: wine}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`)
	h.pod(t, ns, "cellar-0", ready)
	second := h.pod(t, ns, "cellar-1", ready)
	if second.Labels["apps.kubernetes.io/pod-index"] != "1" {
		t.Errorf("labels of the second: %v", second.Labels)
	}
	for _, n := range []string{"0", "1"} {
		until(t, h, "persistentvolumeclaims", ns, "wine-cellar-"+n, bound)
	}
	eventually(t, func(context.Context) string { // DNS knows a Pod once its EndpointSlice is written
		out, errs, err := h.exec(t, ns, "cellar-0", nil, false, "nslookup", "cellar-1.cellar")
		if err != nil || !strings.Contains(out, second.Status.PodIP) {
			return fmt.Sprintf("cellar-1.cellar: %v\n%s%s", err, out, errs)
		}
		return ""
	})
	if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), "cellar-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.pod(t, ns, "cellar-1", func(p *corev1.Pod) string {
		if p.UID == second.UID {
			return "is still the old one"
		}
		return ready(p)
	})
	if got := h.mustExec(t, ns, "cellar-1", "cat", "/wine/label"); got != "cellar-1\ncellar-1\n" {
		t.Errorf("data of the new cellar-1: %q", got)
	}
}

func TestDaemonSet(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.post(t, "/apis/apps/v1/namespaces/"+ns+"/daemonsets", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: cleaner}, spec: {selector: {matchLabels: {app: cleaner}},
template: {metadata: {labels: {app: cleaner}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sleep, "3600"], env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}]}}}}`)
	eventually(t, func(ctx context.Context) string {
		d, err := h.client.AppsV1().DaemonSets(ns).Get(ctx, "cleaner", metav1.GetOptions{})
		if err != nil || d.Status.DesiredNumberScheduled != 3 || d.Status.NumberReady != 3 { // not on the tainted office
			return fmt.Sprintf("%v %v", d.Status, err)
		}
		return ""
	})
}

// TestIndexedJob: each index once, retried alone, and a failure that the policy
// calls final.
func TestIndexedJob(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	jobs := "/apis/batch/v1/namespaces/" + ns + "/jobs"
	job := func(name, spec, command string) string {
		return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {%s, template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sh, -c, %q]}]}}}}`, name, spec, command)
	}
	h.post(t, jobs, job("courses", "completions: 3, parallelism: 2, completionMode: Indexed", "echo course $JOB_COMPLETION_INDEX on $HOSTNAME"))
	h.post(t, jobs, job("burns", "backoffLimit: 1", "exit 3"))
	h.post(t, jobs, job("policy", "backoffLimit: 6, podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}", "exit 42"))
	h.post(t, jobs, job("brief", "ttlSecondsAfterFinished: 1", "true"))
	condition := func(name, kind, reason string) {
		t.Helper()
		eventually(t, func(ctx context.Context) string {
			j, err := h.client.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			for _, c := range j.Status.Conditions {
				if string(c.Type) == kind && c.Status == corev1.ConditionTrue && c.Reason == reason {
					return ""
				}
			}
			return fmt.Sprintf("job %s: %+v", name, j.Status)
		})
	}
	condition("courses", "Complete", "CompletionsReached")
	j, err := h.client.BatchV1().Jobs(ns).Get(t.Context(), "courses", metav1.GetOptions{})
	if err != nil || j.Status.CompletedIndexes != "0-2" || j.Status.Succeeded != 3 {
		t.Errorf("courses: %+v %v", j.Status, err)
	}
	pods, err := h.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-completion-index=2"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("Pods of index 2: %v %v", len(pods.Items), err)
	}
	if got := h.logs(t, ns, pods.Items[0].Name, corev1.PodLogOptions{}); got != "course 2 on courses-2\n" {
		t.Errorf("index 2 says %q", got)
	}
	condition("burns", "Failed", "BackoffLimitExceeded")
	condition("policy", "Failed", "PodFailurePolicy")
	eventually(t, func(ctx context.Context) string {
		if _, err := h.client.BatchV1().Jobs(ns).Get(ctx, "brief", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("a Job past its time to live: %v", err)
		}
		return ""
	})
}

// TestPreemption: a Pod of a higher class takes the place of another, which ends as it should.
func TestPreemption(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	for name, value := range map[string]int{"low-" + ns: 10, "high-" + ns: 1000} {
		h.post(t, "/apis/scheduling.k8s.io/v1/priorityclasses", fmt.Sprintf("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: %d}", name, value))
		t.Cleanup(func() {
			h.client.SchedulingV1().PriorityClasses().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	}
	guest := func(name, class string) {
		h.apply(t, ns, podYAML(name, fmt.Sprintf(`{priorityClassName: %s-%s, nodeSelector: {kubernetes.io/hostname: kitchen-2}, terminationGracePeriodSeconds: 1, containers: [{name: c, image: busybox, command: [sleep, "3600"], resources: {requests: {cpu: 1100m}}}]}`, class, ns)))
	}
	guest("walk-in", "low")
	h.pod(t, ns, "walk-in", ready)
	guest("critic", "high")
	h.event(t, ns, "walk-in", "Preempted", "Preempted by pod ")
	h.gone(t, ns, "walk-in")
	if p := h.pod(t, ns, "critic", ready); p.Spec.NodeName != "kitchen-2" {
		t.Errorf("the critic sits in %s", p.Spec.NodeName)
	}
}

func TestQuotaAndLimitRange(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.post(t, "/api/v1/namespaces/"+ns+"/limitranges", `{apiVersion: v1, kind: LimitRange, metadata: {name: plates}, spec: {limits: [{type: Container, default: {cpu: 200m}, defaultRequest: {cpu: 100m}, max: {cpu: 500m}}]}}`)
	h.post(t, "/api/v1/namespaces/"+ns+"/resourcequotas", `{apiVersion: v1, kind: ResourceQuota, metadata: {name: seats}, spec: {hard: {requests.cpu: 150m, persistentvolumeclaims: "1"}}}`)
	eventually(t, func(ctx context.Context) string {
		q, err := h.client.CoreV1().ResourceQuotas(ns).Get(ctx, "seats", metav1.GetOptions{})
		if err != nil || len(q.Status.Hard) == 0 {
			return fmt.Sprintf("quota: %v %v", q.Status, err)
		}
		return ""
	})
	pod := func(name, resources string) error {
		return h.tryPost(t.Context(), "/api/v1/namespaces/"+ns+"/pods", fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sleep, "3600"], resources: {%s}}]}}`, name, resources))
	}
	if err := pod("hungry", "limits: {cpu: 1}"); err == nil || !strings.Contains(err.Error(), "maximum cpu usage per Container is 500m, but limit is 1") {
		t.Errorf("over the limit range: %v", err)
	}
	if err := pod("first", ""); err != nil {
		t.Fatal(err)
	}
	p := h.pod(t, ns, "first", ready)
	if r := p.Spec.Containers[0].Resources; r.Requests.Cpu().String() != "100m" || r.Limits.Cpu().String() != "200m" {
		t.Errorf("defaults of the limit range: %+v", r)
	}
	if err := pod("second", ""); err == nil || !strings.Contains(err.Error(), "exceeded quota: seats, requested: requests.cpu=100m, used: requests.cpu=100m, limited: requests.cpu=150m") {
		t.Errorf("over the quota: %v", err)
	}
}

// TestDownwardAPI: every field and resource, as variables and files, and files that follow labels.
func TestDownwardAPI(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	fields := []string{"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels['app']", "metadata.annotations['note']", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
	var env []string
	for i, f := range fields {
		env = append(env, fmt.Sprintf(`{name: F%d, valueFrom: {fieldRef: {fieldPath: "%s"}}}`, i, f))
	}
	for name, r := range map[string]string{"R_CPU": "resource: requests.cpu, divisor: 1m", "L_CPU": "resource: limits.cpu", "R_MEM": "resource: requests.memory, divisor: 1Mi", "L_MEM": "resource: limits.memory", "R_DISK": "resource: requests.ephemeral-storage, divisor: 1Mi"} {
		env = append(env, fmt.Sprintf(`{name: %s, valueFrom: {resourceFieldRef: {%s}}}`, name, r))
	}
	h.post(t, "/api/v1/namespaces/"+ns+"/pods", fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: self, labels: {app: grill}, annotations: {note: hot}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sleep, "3600"],
resources: {requests: {cpu: 50m, memory: 16Mi, ephemeral-storage: 2Mi}, limits: {cpu: 1500m}}, env: [%s], volumeMounts: [{name: d, mountPath: /d}]}],
volumes: [{name: d, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: sub/note, fieldRef: {fieldPath: metadata.annotations}, mode: 0400}, {path: cpu, resourceFieldRef: {containerName: c, resource: limits.cpu, divisor: 1m}}]}}]}}`, strings.Join(env, ", ")))
	p := h.pod(t, ns, "self", ready)
	want := []string{"self", ns, string(p.UID), "grill", "hot", p.Spec.NodeName, "default", p.Status.HostIP, p.Status.HostIP, p.Status.PodIP, p.Status.PodIP}
	var lines []string
	for i := range fields {
		lines = append(lines, fmt.Sprintf("$F%d", i))
	}
	if got := h.mustExec(t, ns, "self", "sh", "-c", "echo "+strings.Join(lines, " ")); strings.TrimSpace(got) != strings.Join(want, " ") {
		t.Errorf("fields %q, want %q", got, want)
	}
	// Without a limit for memory it is what the node can give.
	memory, err := h.client.CoreV1().Nodes().Get(t.Context(), p.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := h.mustExec(t, ns, "self", "sh", "-c", "echo $R_CPU $L_CPU $R_MEM $L_MEM $R_DISK"); strings.TrimSpace(got) != fmt.Sprintf("50 2 16 %d 2", memory.Status.Allocatable.Memory().Value()) {
		t.Errorf("resources: %q", got)
	}
	if got := h.mustExec(t, ns, "self", "sh", "-c", "cat /d/labels; echo; cat /d/cpu"); got != "app=\"grill\"\n1500" {
		t.Errorf("files: %q", got)
	}
	if _, err := h.client.CoreV1().Pods(ns).Patch(t.Context(), "self", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"soup"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) string {
		if got := h.mustExec(t, ns, "self", "cat", "/d/labels"); got != `app="soup"` {
			return "labels after a change: " + got
		}
		return ""
	})
}

// TestProjectedVolume: several sources in one folder, with a token for an audience.
func TestProjectedVolume(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: menu}\ndata: {soup: tomato}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: recipe}\nstringData: {sauce: secret}")
	h.apply(t, ns, podYAML("all", `{terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sleep, "3600"], volumeMounts: [{name: p, mountPath: /p}]}], volumes: [{name: p, projected: {sources: [
{configMap: {name: menu, items: [{key: soup, path: menu/soup}]}}, {secret: {name: recipe}}, {downwardAPI: {items: [{path: me, fieldRef: {fieldPath: metadata.name}}]}}, {serviceAccountToken: {path: token, audience: vault, expirationSeconds: 600}}]}}]}`))
	h.pod(t, ns, "all", ready)
	if got := h.mustExec(t, ns, "all", "sh", "-c", "cat /p/menu/soup /p/sauce /p/me"); got != "tomatosecretall" {
		t.Errorf("files: %q", got)
	}
	token := strings.TrimSpace(h.mustExec(t, ns, "all", "cat", "/p/token"))
	review, err := h.client.AuthenticationV1().TokenReviews().Create(t.Context(), tokenReview(token, "vault"), metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated || review.Status.User.Username != "system:serviceaccount:"+ns+":default" || review.Status.User.Extra["authentication.kubernetes.io/pod-name"][0] != "all" {
		t.Errorf("the token: %+v %v", review.Status, err)
	}
	other, err := h.client.AuthenticationV1().TokenReviews().Create(t.Context(), tokenReview(token, "https://kubernetes.default.svc.cluster.local"), metav1.CreateOptions{})
	if err != nil || other.Status.Authenticated {
		t.Errorf("the token for another audience: %+v %v", other.Status, err)
	}
}

func tokenReview(token, audience string) *authv1.TokenReview {
	return &authv1.TokenReview{Spec: authv1.TokenReviewSpec{Token: token, Audiences: []string{audience}}}
}
