package kubelet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSysctls: a Pod has its own values of the safe parameters, and the node refuses others.
func TestSysctls(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("safe", `{restartPolicy: Never, securityContext: {sysctls: [{name: kernel.shm_rmid_forced, value: "1"}]}, containers: [{name: c, image: busybox, command: [sh, -c, "sysctl kernel.shm_rmid_forced net/ipv4/tcp_syncookies; sysctl -w kernel.shm_rmid_forced=0"]}]}`))
	h.pod(t, ns, "safe", over(corev1.PodFailed))
	if got := h.logs(t, ns, "safe", corev1.PodLogOptions{}); got != "kernel.shm_rmid_forced = 1\nnet.ipv4.tcp_syncookies = 1\nsysctl: error setting key 'kernel.shm_rmid_forced': Read-only file system\n" {
		t.Errorf("%q", got)
	}
	for name, tc := range map[string]struct{ spec, want string }{
		"unsafe": {`securityContext: {sysctls: [{name: kernel.msgmax, value: "65536"}]}`, `"kernel.msgmax" not allowlisted`},
		"shared": {`hostNetwork: true, securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: "1"}]}`, `"net.ipv4.tcp_syncookies" not allowed with host net enabled`},
	} {
		err := h.client.CoreV1().RESTClient().Post().AbsPath("/api/v1/namespaces/"+ns+"/pods").SetHeader("Content-Type", "application/yaml").
			Body([]byte(podYAML(name, `{`+tc.spec+`, containers: [{name: c, image: busybox, command: [sleep, "600"]}]}`))).Do(t.Context()).Error()
		if name == "shared" && err != nil {
			continue // the API server's own validation has refused it
		}
		if err != nil {
			t.Fatal(err)
		}
		p := h.pod(t, ns, name, over(corev1.PodFailed))
		if want := "Pod was rejected: forbidden sysctl: " + tc.want; p.Status.Reason != "SysctlForbidden" || p.Status.Message != want {
			t.Errorf("%s: %s", p.Status.Reason, p.Status.Message)
		}
	}
}

// TestImageVolume: an image's files as a volume, and one that can't be pulled.
func TestImageVolume(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	spec := func(reference string) string {
		return `{volumes: [{name: v, image: {reference: "` + reference + `", pullPolicy: Always}}], containers: [{name: c, image: busybox, command: [sleep, "600"], volumeMounts: [{name: v, mountPath: /volume}]}]}`
	}
	h.apply(t, ns, podYAML("kitten", spec("registry.k8s.io/e2e-test-images/kitten:1.8")))
	h.pod(t, ns, "kitten", ready)
	if got := h.mustExec(t, ns, "kitten", "cat", "/volume/data.json"); !strings.Contains(got, "kitten.jpg") {
		t.Errorf("/volume/data.json: %q", got)
	}
	if _, errs, err := h.exec(t, ns, "kitten", nil, false, "touch", "/volume/new"); err == nil || !strings.Contains(errs, "Read-only file system") {
		t.Errorf("writing to it: %v %s", err, errs)
	}
	h.apply(t, ns, podYAML("none", spec("busybox:no-such-tag")))
	h.pod(t, ns, "none", waiting("ImagePullBackOff"))
	h.event(t, ns, "none", "Failed", `Failed to pull image "busybox:no-such-tag"`)
}

// TestPodLevelResources: what a Pod has as a whole is in its status.
func TestPodLevelResources(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("whole", `{resources: {requests: {cpu: 200m, memory: 64Mi}, limits: {cpu: 500m, memory: 128Mi}}, containers: [{name: c, image: "grill-cook:1.4"}]}`))
	h.apply(t, ns, podYAML("sum", `{containers: [{name: a, image: busybox, command: [sleep, "600"], resources: {requests: {cpu: 50m}, limits: {memory: 32Mi}}}, {name: b, image: busybox, command: [sleep, "600"], resources: {requests: {cpu: 60m}}}]}`))
	for name, want := range map[string]string{"whole": "200m 64Mi 500m 128Mi", "sum": "110m 32Mi 0 0"} {
		h.pod(t, ns, name, func(p *corev1.Pod) string {
			r := p.Status.Resources
			if r == nil {
				return "has no resources"
			}
			got := fmt.Sprint(r.Requests.Cpu(), " ", r.Requests.Memory(), " ", r.Limits.Cpu(), " ", r.Limits.Memory())
			if ready(p) != "" || got != want {
				return "has " + got + ", want " + want
			}
			return ""
		})
	}
}

func TestHostNetworkHostsFile(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("p", `{hostNetwork: true, containers: [{name: c, image: busybox, command: [sleep, "600"]}]}`))
	p := h.pod(t, ns, "p", ready)
	got := h.mustExec(t, ns, "p", "cat", "/etc/hosts")
	if !strings.HasPrefix(got, "# Kubernetes-managed hosts file (host network).\n") || !strings.Contains(got, p.Status.HostIP+"\t"+p.Spec.NodeName+"\n") {
		t.Errorf("%s", got)
	}
	if out, errs, err := h.exec(t, ns, "p", nil, false, "ip", "link", "add", "dummy0", "type", "dummy"); err == nil || !strings.Contains(errs, "Operation not permitted") {
		t.Errorf("ip link add: %v %s%s", err, out, errs)
	}
	if out := h.mustExec(t, ns, "p", "ip", "addr", "show", "eth0"); !strings.Contains(out, "inet "+p.Status.HostIP+"/24 ") {
		t.Errorf("ip addr: %s", out)
	}
}

// TestCronJob waits for a real minute to begin: its schedule knows no shorter period.
func TestCronJob(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.post(t, "/apis/batch/v1/namespaces/"+ns+"/cronjobs", `{apiVersion: batch/v1, kind: CronJob, metadata: {name: hello}, spec: {schedule: "* * * * *", successfulJobsHistoryLimit: 1,
  jobTemplate: {spec: {template: {spec: {restartPolicy: OnFailure, containers: [{name: hello, image: "busybox:1.28", command: [/bin/sh, -c, "date; echo Hello from the Kubernetes cluster"]}]}}}}}}`)
	var pod string
	eventually(t, func(ctx context.Context) string {
		c, err := h.client.BatchV1().CronJobs(ns).Get(ctx, "hello", metav1.GetOptions{})
		if err != nil || c.Status.LastScheduleTime == nil || c.Status.LastSuccessfulTime == nil {
			return fmt.Sprintf("it hasn't run: %v", err)
		}
		pods, err := h.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name"})
		if err != nil || len(pods.Items) == 0 {
			return fmt.Sprintf("no Pod: %v", err)
		}
		pod = pods.Items[0].Name
		return ""
	})
	if got := h.logs(t, ns, pod, corev1.PodLogOptions{}); !strings.HasSuffix(got, "Hello from the Kubernetes cluster\n") {
		t.Errorf("%s: %q", pod, got)
	}
	h.event(t, ns, "hello", "SawCompletedJob", "Saw completed job: hello-")
}

// TestEtcdInItsPod: a Secret lies in etcd as it was written.
func TestEtcdInItsPod(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, "apiVersion: v1\nkind: Secret\nmetadata: {name: secret1}\nstringData: {mykey: mydata}")
	key := "/registry/secrets/" + ns + "/secret1"
	if out := h.mustExec(t, metav1.NamespaceSystem, "etcd-office", "etcdctl", "--cacert=/etc/kubernetes/pki/etcd/ca.crt", "get", key); !strings.HasPrefix(out, key+"\nk8s\x00") || !strings.Contains(out, "mydata") {
		t.Errorf("%q", out)
	}
	if out := h.mustExec(t, metav1.NamespaceSystem, "etcd-office", "etcdctl", "get", "--prefix", "--keys-only", "/registry/secrets/"+ns); out != key+"\n\n" {
		t.Errorf("%q", out)
	}
}

// TestMemoryTutorial is the documentation's Pod that wants more memory than its limit.
func TestMemoryTutorial(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("memory-demo-2", `{containers: [{name: memory-demo-2-ctr, image: polinux/stress, resources: {requests: {memory: 50Mi}, limits: {memory: 100Mi}}, command: [stress], args: ["--vm", "1", "--vm-bytes", 250M, "--vm-hang", "1"]}]}`))
	p := h.pod(t, ns, "memory-demo-2", func(p *corev1.Pod) string {
		if l := container(p).LastTerminationState.Terminated; l == nil || l.Reason != "OOMKilled" || l.ExitCode != 137 {
			return "isn't OOMKilled"
		}
		return ""
	})
	if !strings.HasPrefix(container(p).ImageID, "simulated://") {
		t.Errorf("image %s", container(p).ImageID)
	}
}

// TestMetricsAreExplained: the aggregation layer has the document of the metrics API.
func TestMetricsAreExplained(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	eventually(t, func(ctx context.Context) string {
		raw, err := h.client.RESTClient().Get().AbsPath("/openapi/v3/apis/metrics.k8s.io/v1beta1").DoRaw(ctx)
		if err != nil || !strings.Contains(string(raw), "NodeMetrics sets resource usage metrics of a node.") {
			return fmt.Sprintf("%v %.200s", err, raw)
		}
		return ""
	})
}

// TestHostPortIsTaken: the node refuses a Pod that the scheduler hasn't seen when its port is taken.
func TestHostPortIsTaken(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	spec := `{nodeName: kitchen-3, containers: [{name: c, image: "grill-cook:1.4", ports: [{containerPort: 8080, hostPort: 21017}]}]}`
	h.apply(t, ns, podYAML("first", spec))
	h.pod(t, ns, "first", ready)
	h.apply(t, ns, podYAML("second", spec))
	p := h.pod(t, ns, "second", over(corev1.PodFailed))
	if p.Status.Reason != "NodePorts" || p.Status.Message != "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports" {
		t.Errorf("%s: %s", p.Status.Reason, p.Status.Message)
	}
	if out := h.mustExec(t, ns, "first", "mount", "-t", "cgroup2"); !strings.HasPrefix(out, "cgroup on /sys/fs/cgroup type cgroup2 (ro,") {
		t.Errorf("mount -t cgroup2: %q", out)
	}
}
