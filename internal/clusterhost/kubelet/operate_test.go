package kubelet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// startFast starts a cluster of the test's own whose clock runs fast.
func startFast(t *testing.T, speed int) *host {
	t.Helper()
	dir := scratch(t)
	spec := lab.DefaultClusterSpec()
	spec.Speed = speed
	raw, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, controlapi.FileSpec), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return startAgain(t, dir)
}

func startAgain(t *testing.T, dir string) *host {
	t.Helper()
	h, err := start(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.kill)
	return h
}

// settles is eventually for a check that needs no context.
func settles(t *testing.T, check func() string) {
	t.Helper()
	eventually(t, func(context.Context) string { return check() })
}

func (h *host) create(t *testing.T, path, manifest string) {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(raw).Do(t.Context()).Error(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// deploy creates a Deployment of grill-cook whose Pods are labelled app=NAME.
func (h *host) deploy(t *testing.T, ns, name, replicas, podSpec string) {
	t.Helper()
	h.create(t, "/apis/apps/v1/namespaces/"+ns+"/deployments", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: `+name+`},
  spec: {replicas: `+replicas+`, selector: {matchLabels: {app: `+name+`}}, template: {metadata: {labels: {app: `+name+`}}, spec: {`+podSpec+`containers: [{name: cook, image: "grill-cook:1.4", readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}}]}}}}`)
}

func (h *host) labelled(t *testing.T, ns, selector string) []corev1.Pod {
	t.Helper()
	l, err := h.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	return l.Items
}

// readyPods waits until so many Pods are ready and returns them.
func (h *host) readyPods(t *testing.T, ns, selector string, n int) (out []corev1.Pod) {
	t.Helper()
	settles(t, func() string {
		out = nil
		for _, p := range h.labelled(t, ns, selector) {
			if ready(&p) == "" && p.DeletionTimestamp == nil {
				out = append(out, p)
			}
		}
		if len(out) != n {
			return selector + ": the number of ready Pods isn't right yet"
		}
		return ""
	})
	return out
}

func nodeIs(status corev1.ConditionStatus, taint string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != status {
				return "Ready is " + string(c.Status) + ", want " + string(status)
			}
		}
		found := false
		for _, x := range n.Spec.Taints {
			found = found || x.Key == taint && x.Effect == corev1.TaintEffectNoExecute
			if taint == "" && strings.HasPrefix(x.Key, "node.kubernetes.io/") {
				return "is still tainted " + x.Key
			}
		}
		if taint != "" && !found {
			return "isn't tainted " + taint
		}
		return ""
	}
}

func (h *host) node(t *testing.T, name string, check func(*corev1.Node) string) *corev1.Node {
	t.Helper()
	return until(t, h, "nodes", "", name, check)
}

// saidBetween reports whether a Pod wrote a line with text between two moments.
func (h *host) saidBetween(t *testing.T, ns, name, text string, from, to time.Time) bool {
	t.Helper()
	for line := range strings.SplitSeq(h.logs(t, ns, name, corev1.PodLogOptions{Timestamps: true}), "\n") {
		stamp, said, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err == nil && at.After(from) && at.Before(to) && strings.Contains(said, text) {
			return true
		}
	}
	return false
}

// TestLostNodes takes the nodes of one cluster away in all ways and brings them back.
func TestLostNodes(t *testing.T) {
	h := startFast(t, 30)
	ns := h.space(t)
	t.Run("power", func(t *testing.T) { lostPower(t, h, ns) })
	t.Run("cable", func(t *testing.T) { lostCable(t, h, ns) })
	t.Run("kubelet", func(t *testing.T) { lostKubelet(t, h, ns) })
}

func lostPower(t *testing.T, h *host, ns string) {
	h.deploy(t, ns, "grill", "1", "")
	h.apply(t, ns, "apiVersion: v1\nkind: Service\nmetadata: {name: grill}\nspec: {selector: {app: grill}, ports: [{port: 80, targetPort: 8080}]}")
	old := h.readyPods(t, ns, "app=grill", 1)[0]
	if s := tolerationSeconds(&old); s != 10 {
		t.Errorf("a Pod tolerates a lost node for %d s, want 300 s compressed to 10 s", s)
	}
	node := old.Spec.NodeName
	if err := h.api.Power(t.Context(), controlapi.PowerRequest{Node: node}); err != nil {
		t.Fatal(err)
	}
	n := h.node(t, node, nodeIs(corev1.ConditionUnknown, corev1.TaintNodeUnreachable))
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && (c.Reason != "NodeStatusUnknown" || c.Message != "Kubelet stopped posting node status.") {
			t.Errorf("condition: %s %s", c.Reason, c.Message)
		}
	}
	settles(t, func() string {
		l, err := h.client.DiscoveryV1().EndpointSlices(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=grill"})
		if err != nil {
			return err.Error()
		}
		for _, s := range l.Items {
			for _, e := range s.Endpoints {
				if e.TargetRef.Name == old.Name && *e.Conditions.Ready {
					return "the endpoint on the lost node is still ready"
				}
			}
		}
		return ""
	})
	h.pod(t, ns, old.Name, func(p *corev1.Pod) string {
		if p.DeletionTimestamp == nil {
			return "isn't evicted"
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.DisruptionTarget && c.Reason == "DeletionByTaintManager" {
				return ""
			}
		}
		return "isn't marked as evicted"
	})
	h.event(t, ns, old.Name, "TaintManagerEviction", "Marking for deletion Pod "+ns+"/"+old.Name)
	if p := h.readyPods(t, ns, "app=grill", 1)[0]; p.Spec.NodeName == node {
		t.Errorf("the new Pod is on the lost node %s", node)
	}
	if _, err := h.client.CoreV1().Pods(ns).Get(t.Context(), old.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("nobody could end the old Pod, but it is gone: %v", err)
	}
	if err := h.api.Power(t.Context(), controlapi.PowerRequest{Node: node, On: true}); err != nil {
		t.Fatal(err)
	}
	h.gone(t, ns, old.Name)
	h.node(t, node, nodeIs(corev1.ConditionTrue, ""))
}

func tolerationSeconds(p *corev1.Pod) int64 {
	for _, x := range p.Spec.Tolerations {
		if x.Key == corev1.TaintNodeUnreachable && x.TolerationSeconds != nil {
			return *x.TolerationSeconds
		}
	}
	return -1
}

func lostCable(t *testing.T, h *host, ns string) {
	const stay = `tolerations: [{operator: Exists}], `
	h.apply(t, ns, podYAML("near", `{nodeName: kitchen-1, `+stay+`containers: [{name: c, image: "grill-cook:1.4"}]}`))
	h.apply(t, ns, podYAML("far", `{nodeName: kitchen-2, `+stay+`containers: [{name: c, image: "grill-cook:1.4"}]}`))
	near, far := h.pod(t, ns, "near", ready), h.pod(t, ns, "far", ready)
	visit := func(p *corev1.Pod, say string) string {
		return "wget -q -T 1 -O /dev/null http://" + p.Status.PodIP + ":8080/healthz && echo " + say
	}
	h.apply(t, ns, podYAML("guest", `{nodeName: kitchen-1, `+stay+`containers: [{name: c, image: busybox, command: [sh, -c, "while true; do `+visit(near, "near answers")+"; "+visit(far, "far answers")+`; sleep 1; done"]}]}`))
	h.apply(t, ns, podYAML("leaver", `{nodeName: kitchen-1, terminationGracePeriodSeconds: 1, `+stay+`containers: [{name: c, image: busybox, command: [sleep, "3600"]}]}`))
	before := h.pod(t, ns, "guest", running)
	h.pod(t, ns, "leaver", running)
	settles(t, func() string {
		if l := h.logs(t, ns, "guest", corev1.PodLogOptions{}); !strings.Contains(l, "far answers") || !strings.Contains(l, "near answers") {
			return "the guest isn't served: " + l
		}
		return ""
	})
	if err := h.api.Cable(t.Context(), controlapi.CableRequest{Node: "kitchen-1"}); err != nil {
		t.Fatal(err)
	}
	cut := time.Now()
	if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), "leaver", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.node(t, "kitchen-1", nodeIs(corev1.ConditionUnknown, corev1.TaintNodeUnreachable))
	if p := h.pod(t, ns, "leaver", func(p *corev1.Pod) string { return "" }); p.DeletionTimestamp == nil {
		t.Error("the deleted Pod isn't marked")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if out, err := h.client.CoreV1().Pods(ns).GetLogs("guest", &corev1.PodLogOptions{}).DoRaw(ctx); err == nil {
		t.Errorf("a node without cable answers: %q", out)
	}
	back := time.Now()
	if err := h.api.Cable(t.Context(), controlapi.CableRequest{Node: "kitchen-1", In: true}); err != nil {
		t.Fatal(err)
	}
	h.node(t, "kitchen-1", nodeIs(corev1.ConditionTrue, ""))
	h.gone(t, ns, "leaver")
	after := h.pod(t, ns, "guest", ready)
	if c := container(after); c.RestartCount != 0 || c.ContainerID != container(before).ContainerID {
		t.Errorf("the container didn't run on: %+v", c)
	}
	if !h.saidBetween(t, ns, "guest", "near answers", cut, back) {
		t.Error("Pods of one node didn't reach each other without its cable")
	}
	if h.saidBetween(t, ns, "guest", "far answers", cut.Add(3*time.Second), back) {
		t.Error("something passed through a pulled cable")
	}
	settles(t, func() string {
		if !h.saidBetween(t, ns, "guest", "far answers", back, time.Now()) {
			return "nothing passes through the cable that is in again"
		}
		return ""
	})
}

func lostKubelet(t *testing.T, h *host, ns string) {
	h.apply(t, ns, podYAML("runs", `{nodeName: kitchen-3, tolerations: [{operator: Exists}], containers: [{name: c, image: busybox, command: [sh, -c, "while true; do echo beat; sleep 1; done"]}]}`))
	before := h.pod(t, ns, "runs", running)
	set := func(home bool) {
		t.Helper()
		if err := h.api.SetLoop(t.Context(), controlapi.LoopRequest{Name: "kubelet/kitchen-3", Home: home}); err != nil {
			t.Fatal(err)
		}
	}
	set(true)
	gone := time.Now()
	h.node(t, "kitchen-3", nodeIs(corev1.ConditionUnknown, corev1.TaintNodeUnreachable))
	if l := h.logs(t, ns, "runs", corev1.PodLogOptions{}); !strings.Contains(l, "connection refused") {
		t.Errorf("logs without a kubelet: %q", l)
	}
	h.apply(t, ns, podYAML("waits", `{nodeName: kitchen-3, tolerations: [{operator: Exists}], containers: [{name: c, image: busybox, command: [sleep, "600"]}]}`))
	if p := h.pod(t, ns, "waits", func(*corev1.Pod) string { return "" }); p.Status.StartTime != nil {
		t.Error("a Pod was taken on by a node without a kubelet")
	}
	back := time.Now()
	set(false)
	h.node(t, "kitchen-3", nodeIs(corev1.ConditionTrue, ""))
	h.pod(t, ns, "waits", running)
	if c := container(h.pod(t, ns, "runs", running)); c.RestartCount != 0 || c.ContainerID != container(before).ContainerID {
		t.Errorf("the container was restarted with the kubelet: %+v", c)
	}
	if !h.saidBetween(t, ns, "runs", "beat", gone, back) {
		t.Error("the container stood still without its kubelet")
	}
}

// TestKitchens adds and removes kitchens of one cluster and schedules on them.
func TestKitchens(t *testing.T) {
	h := startFast(t, 30)
	ns := h.space(t)
	for _, bad := range []lab.Kitchen{
		{Name: "Bad_Name", CPU: "1", Memory: "1Gi"}, {Name: "office", CPU: "1", Memory: "1Gi"}, {Name: "k", CPU: "much", Memory: "1Gi"},
		{Name: "k", CPU: "1", Memory: "1Gi", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}, {Name: "k", CPU: "1", Memory: "1Gi", Taints: []string{"a:b"}},
	} {
		if err := h.api.AddKitchen(t.Context(), bad); controlapi.StatusOf(err) != 400 {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	big := lab.Kitchen{Name: "annex", CPU: "8", Memory: "16Gi", Labels: map[string]string{"size": "big", "topology.kubernetes.io/zone": "b"}, Taints: []string{"event=wedding:NoSchedule"}}
	if err := h.api.AddKitchen(t.Context(), big); err != nil {
		t.Fatal(err)
	}
	if err := h.api.AddKitchen(t.Context(), big); controlapi.StatusOf(err) != 409 {
		t.Errorf("the same again: %v", err)
	}
	n := h.node(t, "annex", nodeIs(corev1.ConditionTrue, ""))
	if n.Labels["size"] != "big" || n.Status.Allocatable.Cpu().String() != "8" || len(n.Spec.Taints) != 1 || n.Spec.Taints[0].ToString() != "event=wedding:NoSchedule" {
		t.Errorf("node: %v %v %v", n.Labels, n.Status.Allocatable, n.Spec.Taints)
	}
	h.apply(t, ns, podYAML("shy", `{nodeSelector: {size: big}, containers: [{name: c, image: "grill-cook:1.4"}]}`))
	h.event(t, ns, "shy", "FailedScheduling", "had untolerated taint")
	h.apply(t, ns, podYAML("feast", `{nodeSelector: {size: big}, tolerations: [{key: event, operator: Exists}], containers: [{name: c, image: "grill-cook:1.4", resources: {requests: {cpu: "6"}}}]}`))
	feast := h.pod(t, ns, "feast", ready)
	if err := h.api.RemoveKitchen(t.Context(), "kitchen-3"); err != nil {
		t.Fatal(err)
	}
	if err := h.api.RemoveKitchen(t.Context(), "kitchen-3"); controlapi.StatusOf(err) != 404 {
		t.Errorf("removed twice: %v", err)
	}
	h.stop()
	h = startAgain(t, h.dir)
	kitchens, err := h.api.Kitchens(t.Context())
	if err != nil || len(kitchens) != 3 || kitchens[0].Name != "annex" || kitchens[0].Address != n.Status.Addresses[0].Address || !kitchens[0].Power || !kitchens[0].Cable {
		t.Errorf("after a sleep: %+v %v", kitchens, err)
	}
	if p := h.pod(t, ns, "feast", ready); container(p).ContainerID != container(feast).ContainerID {
		t.Error("the Pod of an added kitchen was started anew by a sleep")
	}
	nodes, err := h.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 4 {
		t.Errorf("nodes after a sleep: %d %v", len(nodes.Items), err)
	}
	if err := h.api.RemoveKitchen(t.Context(), "annex"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "nodes", "annex")); !os.IsNotExist(err) {
		t.Errorf("checkpoints of a removed kitchen: %v", err)
	}
	settles(t, func() string { // the garbage collector of Pods looks every 20 s, and again after 40
		if _, err := h.client.CoreV1().Pods(ns).Get(t.Context(), "feast", metav1.GetOptions{}); err == nil {
			return "the Pod of a removed kitchen is still there"
		}
		return ""
	})
	if err := h.api.AddKitchen(t.Context(), lab.Kitchen{Name: "kitchen-3", CPU: "1", Memory: "1Gi"}); err != nil {
		t.Errorf("a removed kitchen comes back: %v", err)
	}
	t.Run("drain", func(t *testing.T) { drains(t, h, ns) })
	t.Run("spread", func(t *testing.T) { spreads(t, h, ns) })
	t.Run("clock", func(t *testing.T) { paces(t, h, ns) })
}

// drains does what kubectl drain does: cordon, then evict within the disruption budget.
func drains(t *testing.T, h *host, ns string) {
	h.deploy(t, ns, "soup", "2", "")
	h.create(t, "/apis/policy/v1/namespaces/"+ns+"/poddisruptionbudgets", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: soup}, spec: {minAvailable: 2, selector: {matchLabels: {app: soup}}}}`)
	pods := h.readyPods(t, ns, "app=soup", 2)
	p, first := pods[0], map[string]bool{pods[0].Name: true, pods[1].Name: true}
	patch := func(on string) {
		t.Helper()
		if _, err := h.client.CoreV1().Nodes().Patch(t.Context(), p.Spec.NodeName, types.MergePatchType, []byte(`{"spec":{"unschedulable":`+on+`}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch("true")
	h.node(t, p.Spec.NodeName, func(n *corev1.Node) string {
		for _, x := range n.Spec.Taints {
			if x.Key == corev1.TaintNodeUnschedulable {
				return ""
			}
		}
		return "isn't tainted as unschedulable"
	})
	evict := func() error {
		return h.client.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").Name(p.Name).SubResource("eviction").SetHeader("Content-Type", "application/json").
			Body([]byte(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"` + p.Name + `","namespace":"` + ns + `"}}`)).Do(t.Context()).Error()
	}
	settles(t, func() string {
		err := evict()
		if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok && apierrors.IsTooManyRequests(err) && strings.Contains(cause.Message, "The disruption budget soup needs 2 healthy pods and has 2 currently") {
			return ""
		}
		return fmt.Sprintf("an eviction against the budget: %+v", err)
	})
	if _, err := h.client.AppsV1().Deployments(ns).Patch(t.Context(), "soup", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	settles(t, func() string { return errText(evict()) })
	h.gone(t, ns, p.Name)
	for _, q := range h.readyPods(t, ns, "app=soup", 3) {
		if q.Spec.NodeName == p.Spec.NodeName && !first[q.Name] {
			t.Errorf("%s was put onto a cordoned node", q.Name)
		}
	}
	patch("false")
	h.node(t, p.Spec.NodeName, nodeIs(corev1.ConditionTrue, ""))
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// spreads uses topology spread and affinity over the kitchens.
func spreads(t *testing.T, h *host, ns string) {
	h.deploy(t, ns, "even", "3", `topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: even}}}], `)
	nodes := map[string]bool{}
	for _, p := range h.readyPods(t, ns, "app=even", 3) {
		nodes[p.Spec.NodeName] = true
	}
	if len(nodes) != 3 {
		t.Errorf("three Pods are spread over %v", nodes)
	}
	h.apply(t, ns, podYAML("friend", `{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: even}}}]},
  nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kitchen, operator: In, values: ["2"]}]}]}}}, containers: [{name: c, image: "grill-cook:1.4"}]}`))
	if p := h.pod(t, ns, "friend", ready); p.Spec.NodeName != "kitchen-2" {
		t.Errorf("affinity led to %s", p.Spec.NodeName)
	}
	h.apply(t, ns, podYAML("hermit", `{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: even}}}]}}, containers: [{name: c, image: "grill-cook:1.4"}]}`))
	h.event(t, ns, "hermit", "FailedScheduling", "didn't match pod anti-affinity rules")
}

// paces changes the clock of a running cluster.
func paces(t *testing.T, h *host, ns string) {
	deadline := func(name, written string) int32 {
		t.Helper()
		h.create(t, "/apis/apps/v1/namespaces/"+ns+"/deployments", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: `+name+`}, spec: {`+written+`replicas: 0, selector: {matchLabels: {app: `+name+`}}, template: {metadata: {labels: {app: `+name+`}}, spec: {containers: [{name: c, image: nginx}]}}}}`)
		d, err := h.client.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return *d.Spec.ProgressDeadlineSeconds
	}
	if got := deadline("fast", ""); got != 20 {
		t.Errorf("the default progress deadline is %d s at 30 times the speed", got)
	}
	if got := deadline("patient", "minReadySeconds: 45, "); got != 46 {
		t.Errorf("the default progress deadline is %d s where a Pod has to be ready for 45", got)
	}
	if got := deadline("own", "progressDeadlineSeconds: 600, "); got != 600 {
		t.Errorf("a deadline that was written is changed to %d s", got)
	}
	h.apply(t, ns, podYAML("loops", `{containers: [{name: c, image: busybox, command: ["false"]}]}`))
	h.pod(t, ns, "loops", func(p *corev1.Pod) string {
		if w := container(p).State.Waiting; w == nil || w.Reason != "CrashLoopBackOff" || !strings.HasPrefix(w.Message, "back-off 4s ") {
			return "isn't in its third, compressed back-off"
		}
		return ""
	})
	if err := h.api.SetClock(t.Context(), controlapi.ClockRequest{Speed: 1000}); controlapi.StatusOf(err) != 400 {
		t.Errorf("speed 1000: %v", err)
	}
	if err := h.api.SetClock(t.Context(), controlapi.ClockRequest{Speed: 1}); err != nil {
		t.Fatal(err)
	}
	c, err := h.api.Clock(t.Context())
	if err != nil || c.Speed != 1 {
		t.Errorf("%+v %v", c, err)
	}
	for _, f := range c.Figures {
		if f.NowMillis != f.RealMillis {
			t.Errorf("%s is %d ms at the real speed, want %d", f.Name, f.NowMillis, f.RealMillis)
		}
	}
	if got := deadline("real", ""); got != 600 {
		t.Errorf("the default progress deadline is %d s at the real speed", got)
	}
	h.deploy(t, ns, "late", "1", "") // the controllers work after their new start
	if p := h.readyPods(t, ns, "app=late", 1)[0]; tolerationSeconds(&p) != 300 {
		t.Errorf("toleration of %d s at the real speed", tolerationSeconds(&p))
	}
}
