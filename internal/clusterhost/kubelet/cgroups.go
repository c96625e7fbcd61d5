package kubelet

import (
	"fmt"
	"math"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"kubistro/internal/clusterhost/pantry/cgroup"
	"kubistro/internal/clusterhost/pantry/memfs"
)

// Bounds of processes, smaller than a real machine's: each is a goroutine here.
const (
	nodePids = 1024 // kernel.pid_max
	podPids  = 256  // podPidsLimit
)

// Bounds of CPU shares and quotas: cm/helpers_linux.go.
const (
	sharesPerCPU = 1024
	minShares    = 2
	maxShares    = 262144
	minQuota     = 10 // millicores: a quota is at least 1 ms of 100
)

// OOM score adjustments: qos/policy.go.
const (
	oomGuaranteed = -997
	oomBestEffort = 1000
)

// groups are the node's control groups. As cm/qos_container_manager_linux.go has
// it, Guaranteed Pods lie beside a group for all Burstable ones, which weighs what
// they request, and one for all BestEffort ones, which weighs as little as can be.
type groups struct {
	node, burstable, besteffort *cgroup.Group

	mu     sync.Mutex
	shares int64 // of the Burstable Pods
}

func newGroups(k *Kubelet) *groups {
	c := k.cfg.Capacity
	node := cgroup.NewNode(k.clock, c.Cpu().MilliValue(), c.Memory().Value())
	l := node.Limits()
	l.Pids = nodePids
	node.SetLimits(l)
	return &groups{node: node, burstable: node.Child(cgroup.Limits{}), besteffort: node.Child(cgroup.Limits{})}
}

// pod makes a Pod's group.
func (g *groups) pod(pod *corev1.Pod) *cgroup.Group {
	l := podLimits(pod)
	switch qosClass(pod) {
	case corev1.PodQOSGuaranteed:
		return g.node.Child(l)
	case corev1.PodQOSBurstable:
		g.weigh(l.Weight)
		return g.burstable.Child(l)
	}
	return g.besteffort.Child(l)
}

// resize gives a Pod's group its new limits.
func (g *groups) resize(group *cgroup.Group, pod *corev1.Pod) {
	l := podLimits(pod)
	if qosClass(pod) == corev1.PodQOSBurstable {
		g.weigh(l.Weight - group.Limits().Weight)
	}
	group.SetLimits(l)
}

// end takes a Pod's group away.
func (g *groups) end(group *cgroup.Group, pod *corev1.Pod) {
	if qosClass(pod) == corev1.PodQOSBurstable {
		g.weigh(-group.Limits().Weight)
	}
	group.Close()
}

func (g *groups) weigh(shares int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shares += shares
	g.burstable.SetLimits(cgroup.Limits{Weight: g.shares})
}

// shares follows cm/helpers_linux.go, MilliCPUToShares.
func shares(millicores int64) int64 {
	return min(max(millicores*sharesPerCPU/1000, minShares), maxShares)
}

func quota(millicores int64) int64 {
	if millicores == 0 {
		return 0
	}
	return max(millicores, minQuota)
}

// podLimits follows cm/helpers_linux.go, ResourceConfigForPod: limits hold for the
// Pod when every container has one, or the Pod itself.
func podLimits(pod *corev1.Pod) cgroup.Limits {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	out := cgroup.Limits{
		Weight: shares(requests.Cpu().MilliValue()),
		CPU:    quota(limits.Cpu().MilliValue()), Memory: limits.Memory().Value(), Pids: podPids,
	}
	own := pod.Spec.Resources
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			l := list[i].Resources.Limits
			if l.Cpu().IsZero() && (own == nil || own.Limits.Cpu().IsZero()) {
				out.CPU = 0
			}
			if l.Memory().IsZero() && (own == nil || own.Limits.Memory().IsZero()) {
				out.Memory = 0
			}
		}
	}
	return out
}

// containerLimits follows kuberuntime/kuberuntime_container_linux.go, calculateLinuxResources.
func containerLimits(r corev1.ResourceRequirements) cgroup.Limits {
	request := r.Requests.Cpu().MilliValue()
	if _, ok := r.Requests[corev1.ResourceCPU]; !ok {
		request = r.Limits.Cpu().MilliValue()
	}
	return cgroup.Limits{Weight: shares(request), CPU: quota(r.Limits.Cpu().MilliValue()), Memory: r.Limits.Memory().Value()}
}

// contain makes inst's group, which kills it when it is out of memory: the kernel
// kills all processes of a container together (memory.oom.group).
func (w *worker) contain(inst *instance, r corev1.ResourceRequirements) {
	inst.resources = *r.DeepCopy()
	inst.proc.Usage = w.group.Child(containerLimits(r))
	inst.proc.Usage.OnOOM(func() { w.oomKill(inst) })
}

func (w *worker) oomKill(inst *instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if inst.state.Phase == containerRunning && inst.killReason == "" {
		inst.killReason, inst.killed = "OOMKilled", true
		inst.stop()
	}
}

// outOfMemory is the kernel's choice when a Pod or the whole node has no memory
// left: the container with the highest score ends. While one is ending, its memory
// is waited for.
func (b *boot) outOfMemory(workers []*worker, system bool) {
	capacity := max(b.k.cfg.Capacity.Memory().Value(), 1)
	var victim *worker
	var chosen *instance
	worst := int64(math.MinInt64)
	for _, w := range workers {
		w.mu.Lock()
		for _, s := range w.slots {
			if !s.running() || s.cur.proc.Usage == nil {
				continue
			}
			if s.cur.killed {
				w.mu.Unlock()
				return
			}
			mem := s.cur.proc.Usage.Memory()
			if score := mem*1000/capacity + oomScoreAdjust(w.pod, s.spec, capacity); mem > 0 && score > worst {
				worst, victim, chosen = score, w, s.cur
			}
		}
		w.mu.Unlock()
	}
	if victim == nil {
		return
	}
	if system { // oom/oom_watcher_linux.go tells of no others
		b.nodeEvent(corev1.EventTypeWarning, "SystemOOM", fmt.Sprintf("System OOM encountered, victim process: %s, pid: %d", chosen.program, processID(chosen.state.ID)))
	}
	victim.oomKill(chosen)
}

// processID is a number for a process that has none here.
func processID(containerID string) int {
	n := 0
	for _, c := range containerID {
		n = (n*31 + int(c)) % 30_000
	}
	return 1000 + n
}

// oomScoreAdjust follows qos/policy.go, GetContainerOOMScoreAdjust.
func oomScoreAdjust(pod *corev1.Pod, c *corev1.Container, capacity int64) int64 {
	if pod.Spec.PriorityClassName == "system-node-critical" || isStatic(pod) {
		return oomGuaranteed
	}
	switch qosClass(pod) {
	case corev1.PodQOSGuaranteed:
		return oomGuaranteed
	case corev1.PodQOSBestEffort:
		return oomBestEffort
	}
	adjust := oomBestEffort - 1000*c.Resources.Requests.Memory().Value()/capacity
	if sidecar(c) {
		least := int64(math.MaxInt64)
		for i := range pod.Spec.Containers {
			least = min(least, pod.Spec.Containers[i].Resources.Requests.Memory().Value())
		}
		adjust = min(adjust, oomBestEffort-1000*least/capacity)
	}
	return min(max(adjust, 1000+oomGuaranteed), oomBestEffort-1)
}

// cgroupFiles shows a container its own limits and use, as /sys/fs/cgroup does.
func cgroupFiles(fs *memfs.FS, g *cgroup.Group) error {
	number := func(n int64) string {
		if n == 0 {
			return "max"
		}
		return fmt.Sprint(n)
	}
	for name, show := range map[string]func() string{
		"cpu.max": func() string {
			q := g.Limits().CPU * cgroup.Period.Microseconds() / 1000
			return fmt.Sprintf("%s %d", number(q), cgroup.Period.Microseconds())
		},
		"cpu.weight": func() string { return fmt.Sprint(cpuWeight(g.Limits().Weight)) },
		"cpu.stat": func() string {
			s := g.CPUStat()
			return fmt.Sprintf("usage_usec %d\nuser_usec %d\nsystem_usec 0\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d",
				s.Usage.Microseconds(), s.Usage.Microseconds(), s.Periods, s.Throttled, s.ThrottledTime.Microseconds())
		},
		"memory.max":     func() string { return number(g.Limits().Memory) },
		"memory.current": func() string { return fmt.Sprint(g.Memory()) },
		"pids.current":   func() string { return fmt.Sprint(g.Pids()) },
		"pids.max":       func() string { return number(g.Limits().Pids) },
	} {
		if err := fs.AddDevice("/sys/fs/cgroup/"+name, loaded(name, func() ([]byte, error) { return []byte(show() + "\n"), nil })); err != nil {
			return err
		}
	}
	return nil
}

// cpuWeight makes a weight of cgroup v2 of CPU shares, as runc has done since 1.3.2.
func cpuWeight(shares int64) int64 {
	l := math.Log2(float64(min(max(shares, minShares), maxShares)))
	return int64(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34)))
}
