package kubelet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// dish has a cook prepare a dish through the API server's proxy and says how long that took.
func (h *host) dish(t *testing.T, ns, pod string, ms int) time.Duration {
	t.Helper()
	begin := time.Now()
	raw, err := h.client.CoreV1().RESTClient().Get().AbsPath(fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/cook", ns, pod)).
		Param("ms", fmt.Sprint(ms)).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("%v %s", err, raw)
	}
	return time.Since(begin)
}

func TestCPULimitThrottles(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("p", `{containers: [{name: c, image: "grill-cook:1.4", resources: {requests: {cpu: 10m}, limits: {cpu: 100m, memory: 64Mi}}}]}`))
	h.pod(t, ns, "p", ready)
	// 300 ms of work at a tenth of a core: about 3 s
	if took := h.dish(t, ns, "p", 300); took < 2500*time.Millisecond {
		t.Errorf("a dish of 300 ms CPU time took %v at a limit of 100m", took)
	}
	files := h.mustExec(t, ns, "p", "cat", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/cpu.stat")
	if !strings.HasPrefix(files, "10000 100000\n67108864\nusage_usec ") || strings.Contains(files, "nr_throttled 0\n") {
		t.Errorf("/sys/fs/cgroup:\n%s", files)
	}
}

func TestNeighboursStarve(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	for name, res := range map[string]string{"greedy": "{requests: {cpu: 400m}}", "modest": "{requests: {cpu: 400m}}", "nothing": "{}"} {
		h.apply(t, ns, podYAML(name, `{nodeName: kitchen-3, containers: [{name: c, image: "grill-cook:1.4", resources: `+res+`}]}`))
	}
	for _, name := range []string{"greedy", "modest", "nothing"} {
		h.pod(t, ns, name, ready)
	}
	if took := h.dish(t, ns, "nothing", 50); took < 50*time.Millisecond {
		t.Errorf("50 ms of work took %v", took)
	}
	h.mustExec(t, ns, "greedy", "load", "8")
	defer h.mustExec(t, ns, "greedy", "load", "off")
	// 2 cores: who requests as much as the greedy one gets its core, who requests nothing gets a five hundredth
	if took := h.dish(t, ns, "nothing", 10); took < 500*time.Millisecond {
		t.Errorf("beside a greedy neighbour 10 ms of work without a request took only %v", took)
	}
	h.dish(t, ns, "modest", 10)
	stat := h.mustExec(t, ns, "modest", "cat", "/sys/fs/cgroup/cpu.stat")
	if !strings.Contains(stat, "nr_throttled 0\n") {
		t.Errorf("no quota, but throttled: %s", stat)
	}
}

func TestOutOfMemorySeries(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("p", `{containers: [{name: c, image: "grill-cook:1.4", args: [--hoard, "100"], resources: {limits: {memory: 64Mi}}}]}`))
	p := h.pod(t, ns, "p", waiting("CrashLoopBackOff"))
	if l := container(p).LastTerminationState.Terminated; l.Reason != "OOMKilled" || l.ExitCode != 137 {
		t.Errorf("last state %+v", l)
	}
	if p.Status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("QoS class %s", p.Status.QOSClass)
	}
	h.event(t, ns, "p", "BackOff", "Back-off restarting failed container c in pod p_"+ns)

	// a limit of the Pod holds for its containers together: the largest ends
	h.apply(t, ns, podYAML("both", `{resources: {limits: {cpu: 1, memory: 100Mi}}, containers: [{name: c, image: "grill-cook:1.4", args: [--hoard, "50"]},
  {name: other, image: "grill-cook:1.4", args: [--port, "8081"]}]}`))
	h.pod(t, ns, "both", ready)
	h.client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/"+ns+"/pods/both:8081/proxy/hoard").Param("mib", "30").DoRaw(t.Context())
	h.pod(t, ns, "both", func(p *corev1.Pod) string {
		if c := statusOf(p, "c"); c.LastTerminationState.Terminated == nil || c.LastTerminationState.Terminated.Reason != "OOMKilled" {
			return "the larger container isn't OOMKilled"
		}
		if c := statusOf(p, "other"); c.RestartCount != 0 {
			return "the smaller one was restarted"
		}
		return ""
	})
}

func statusOf(p *corev1.Pod, name string) corev1.ContainerStatus {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == name {
			return c
		}
	}
	return corev1.ContainerStatus{}
}

// A node under pressure stays tainted for minutes, so this has a cluster of its own.
func TestNodeOutOfMemory(t *testing.T) {
	h := startFast(t, 1)
	ns := h.space(t)
	// two Pods that stay within the node's memory, and one that eats it up
	for name, spec := range map[string]string{
		"guaranteed": `resources: {limits: {cpu: 100m, memory: 100Mi}}, args: [--hoard, "50"]`,
		"besteffort": `args: [--hoard, "500"]`,
	} {
		h.apply(t, ns, podYAML(name, `{nodeName: kitchen-2, containers: [{name: c, image: "grill-cook:1.4", `+spec+`}]}`))
		h.pod(t, ns, name, ready)
	}
	h.apply(t, ns, podYAML("greedy", `{nodeName: kitchen-2, containers: [{name: c, image: "grill-cook:1.4", resources: {requests: {memory: 1Gi}}, args: [--hoard, "1500"]}]}`))
	h.pod(t, ns, "greedy", running)
	p := h.pod(t, ns, "besteffort", over(corev1.PodFailed))
	if p.Status.Reason != "Evicted" || !strings.HasPrefix(p.Status.Message, "The node was low on resource: memory. Threshold quantity: 100Mi, available: ") ||
		!strings.HasSuffix(p.Status.Message, "Container c was using 512Mi, request is 0, has larger consumption of memory. ") {
		t.Errorf("%s: %q", p.Status.Reason, p.Status.Message)
	}
	if c := container(p).State.Terminated; c == nil || c.ExitCode != 0 {
		t.Errorf("a cook has a second to leave: %+v", c)
	}
	if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "TerminationByKubelet" && c.Message == p.Status.Message
	}) {
		t.Errorf("conditions %+v", p.Status.Conditions)
	}
	h.event(t, ns, "besteffort", "Evicted", "The node was low on resource: memory.")
	h.event(t, ns, "besteffort", "Killing", "Stopping container c")
	until(t, h, "nodes", "", "kitchen-2", func(n *corev1.Node) string {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeMemoryPressure && c.Status == corev1.ConditionTrue && c.Reason == "KubeletHasInsufficientMemory" {
				for _, taint := range n.Spec.Taints {
					if taint.Key == corev1.TaintNodeMemoryPressure && taint.Effect == corev1.TaintEffectNoSchedule {
						return ""
					}
				}
				return "isn't tainted"
			}
		}
		return "has no memory pressure"
	})
	h.apply(t, ns, podYAML("late", `{nodeName: kitchen-2, containers: [{name: c, image: "grill-cook:1.4"}]}`))
	p = h.pod(t, ns, "late", over(corev1.PodFailed))
	if p.Status.Reason != "Evicted" || p.Status.Message != "Pod was rejected: The node had condition: [MemoryPressure]. " {
		t.Errorf("%s: %q", p.Status.Reason, p.Status.Message)
	}
	for _, name := range []string{"guaranteed", "greedy"} {
		h.pod(t, ns, name, ready)
	}
	// more than the machine has, at once: the kernel ends the one with the worst score
	h.exec(t, ns, "greedy", nil, false, "hoard", "2100")
	p = h.pod(t, ns, "greedy", restarts(1))
	if l := container(p).LastTerminationState.Terminated; l.Reason != "OOMKilled" || l.ExitCode != 137 {
		t.Errorf("last state %+v", l)
	}
	if container(h.pod(t, ns, "guaranteed", ready)).RestartCount != 0 {
		t.Error("the Guaranteed Pod was restarted")
	}
}

func TestLocalStorageEviction(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	write := `command: [sh, -c, "head -c 2097152 /dev/zero > %s/f; sleep 600"]`
	h.apply(t, ns, podYAML("volume", `{volumes: [{name: v, emptyDir: {sizeLimit: 1Mi}}], containers: [{name: c, image: busybox, `+fmt.Sprintf(write, "/v")+`, volumeMounts: [{name: v, mountPath: /v}]}]}`))
	h.apply(t, ns, podYAML("layer", `{containers: [{name: c, image: busybox, `+fmt.Sprintf(write, "/tmp")+`, resources: {limits: {ephemeral-storage: 1Mi}}}]}`))
	for name, want := range map[string]string{
		"volume": `Usage of EmptyDir volume "v" exceeds the limit "1Mi". `,
		"layer":  "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
	} {
		p := h.pod(t, ns, name, over(corev1.PodFailed))
		if p.Status.Reason != "Evicted" || p.Status.Message != want {
			t.Errorf("%s: %q", p.Status.Reason, p.Status.Message)
		}
		h.event(t, ns, name, "Evicted", strings.TrimSpace(want))
	}
}

func TestPidLimit(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	var containers []string
	for i := range 8 {
		containers = append(containers, fmt.Sprintf(`{name: c%d, image: busybox, command: [sh, -c, "for j in $(seq 40); do sleep 15 & done; wait"]}`, i))
	}
	h.apply(t, ns, podYAML("p", `{restartPolicy: Never, containers: [`+strings.Join(containers, ", ")+`]}`))
	h.pod(t, ns, "p", over(corev1.PodSucceeded))
	refused := 0
	for i := range containers {
		refused += strings.Count(h.logs(t, ns, "p", corev1.PodLogOptions{Container: fmt.Sprintf("c%d", i)}), "can't fork: Resource temporarily unavailable")
	}
	if refused == 0 {
		t.Error("320 processes in a Pod, and none is refused")
	}
}

// resize patches a Pod's resources through the subresource, as kubectl does.
func (h *host) resize(t *testing.T, ns, pod, resources string) error {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"containers":[{"name":"c","resources":%s}]}}`, resources)
	_, err := h.client.CoreV1().Pods(ns).Patch(t.Context(), pod, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize")
	return err
}

func podCondition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

func TestResizeInPlace(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("p", `{nodeName: kitchen-1, containers: [{name: c, image: "grill-cook:1.4", resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 128Mi}},
  resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]}]}`))
	before := container(h.pod(t, ns, "p", ready))
	if err := h.resize(t, ns, "p", `{"limits":{"cpu":"300m"}}`); err != nil {
		t.Fatal(err)
	}
	has := func(cpu, memory string) func(*corev1.Pod) string {
		return func(p *corev1.Pod) string {
			c := container(p)
			if c.Resources == nil || c.Resources.Limits.Cpu().String() != cpu || c.Resources.Limits.Memory().String() != memory || c.State.Running == nil {
				return fmt.Sprintf("hasn't got %s and %s: %+v", cpu, memory, c.Resources)
			}
			if podCondition(p, corev1.PodResizeInProgress) != nil || podCondition(p, corev1.PodResizePending) != nil {
				return "is still being resized"
			}
			return ""
		}
	}
	after := container(h.pod(t, ns, "p", has("300m", "128Mi")))
	if after.ContainerID != before.ContainerID || after.RestartCount != 0 {
		t.Error("a resize of the CPU restarted the container")
	}
	if got := h.mustExec(t, ns, "p", "cat", "/sys/fs/cgroup/cpu.max"); got != "30000 100000\n" {
		t.Errorf("cpu.max %q", got)
	}
	h.event(t, ns, "p", "ResizeStarted", `Pod resize started: {"containers":[{"name":"c","resources":{"limits":{"cpu":"300m","memory":"128Mi"}`)
	h.event(t, ns, "p", "ResizeCompleted", `Pod resize completed: {"containers":[{"name":"c"`)

	if err := h.resize(t, ns, "p", `{"limits":{"memory":"256Mi"}}`); err != nil {
		t.Fatal(err)
	}
	after = container(h.pod(t, ns, "p", has("300m", "256Mi")))
	if after.RestartCount != 1 || after.LastTerminationState.Terminated == nil {
		t.Errorf("a resize of the memory was to restart the container: %+v", after)
	}
	h.event(t, ns, "p", "Killing", "Container c resize requires restart")
}

func TestResizeWaitsAndFails(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	big := `{nodeName: kitchen-1, containers: [{name: c, image: "grill-cook:1.4", resources: {requests: {memory: 600Mi}, limits: {memory: 700Mi}}}]}`
	h.apply(t, ns, podYAML("p", big))
	h.apply(t, ns, podYAML("other", big))
	h.pod(t, ns, "p", ready)
	h.pod(t, ns, "other", ready)
	if err := h.resize(t, ns, "p", `{"requests":{"memory":"9Gi"},"limits":{"memory":"9Gi"}}`); err == nil || !strings.Contains(err.Error(), "node didn't have enough allocatable resources: memory") {
		t.Errorf("more than the node has: %v", err)
	}
	if err := h.resize(t, ns, "p", `{"requests":{"memory":"1500Mi"},"limits":{"memory":"1600Mi"}}`); err != nil {
		t.Fatal(err)
	}
	p := h.pod(t, ns, "p", func(p *corev1.Pod) string {
		if c := podCondition(p, corev1.PodResizePending); c == nil || c.Reason != corev1.PodReasonDeferred {
			return "isn't deferred"
		}
		return ""
	})
	if c := podCondition(p, corev1.PodResizePending); !strings.HasPrefix(c.Message, "Node didn't have enough resource: memory, requested: 1572864000, used: ") || c.ObservedGeneration != p.Generation {
		t.Errorf("%+v", c)
	}
	if c := container(p); c.AllocatedResources.Memory().String() != "600Mi" {
		t.Errorf("allocated %v while the resize waits", c.AllocatedResources)
	}
	h.event(t, ns, "p", "ResizeDeferred", "Pod resize Deferred: {")
	if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), "other", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.pod(t, ns, "p", func(p *corev1.Pod) string {
		if c := container(p); c.AllocatedResources.Memory().String() != "1500Mi" || c.Resources.Limits.Memory().String() != "1600Mi" || podCondition(p, corev1.PodResizePending) != nil {
			return "hasn't got what was left by the other Pod"
		}
		return ""
	})
	h.mustExec(t, ns, "p", "hoard", "500")
	if err := h.resize(t, ns, "p", `{"requests":{"memory":"100Mi"},"limits":{"memory":"200Mi"}}`); err != nil {
		t.Fatal(err)
	}
	h.pod(t, ns, "p", func(p *corev1.Pod) string {
		if c := podCondition(p, corev1.PodResizeInProgress); c == nil || c.Reason != corev1.PodReasonError || !strings.HasPrefix(c.Message, `attempting to set container "c" memory limit (209715200) below current usage (`) {
			return "shrinks below what it uses"
		}
		return ""
	})
	h.mustExec(t, ns, "p", "hoard", "0")
	h.pod(t, ns, "p", func(p *corev1.Pod) string {
		if container(p).Resources.Limits.Memory().String() != "200Mi" || podCondition(p, corev1.PodResizeInProgress) != nil {
			return "didn't shrink"
		}
		return ""
	})
	if c := container(h.pod(t, ns, "p", ready)); c.RestartCount != 0 {
		t.Error("the container was restarted")
	}
}

func TestExtendedResources(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	gpus := func(name, node string, n int) {
		h.apply(t, ns, podYAML(name, fmt.Sprintf(`{%scontainers: [{name: c, image: "grill-cook:1.4", resources: {limits: {nvidia.com/gpu: %d}}}]}`, node, n)))
	}
	gpus("one", "", 2)
	p := h.pod(t, ns, "one", ready)
	if p.Spec.NodeName != "kitchen-2" || p.Status.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("on %s, QoS class %s", p.Spec.NodeName, p.Status.QOSClass)
	}
	gpus("more", "", 1)
	h.event(t, ns, "more", "FailedScheduling", "Insufficient nvidia.com/gpu")
	gpus("forced", "nodeName: kitchen-2, ", 1)
	p = h.pod(t, ns, "forced", over(corev1.PodFailed))
	if p.Status.Reason != "OutOfnvidia.com/gpu" || p.Status.Message != "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 2, capacity: 2" {
		t.Errorf("%s: %s", p.Status.Reason, p.Status.Message)
	}
}
