package kubelet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
)

// evictionSignal is what of the node may run out: eviction/api/types.go.
type evictionSignal string

const (
	memoryAvailable evictionSignal = "memory.available"
	nodefsAvailable evictionSignal = "nodefs.available"
	inodesFree      evictionSignal = "nodefs.inodesFree"
	pidAvailable    evictionSignal = "pid.available"
)

// pressureTransition is how long a pressure condition stays after it was seen
// last: evictionPressureTransitionPeriod.
const pressureTransition = 5 * time.Minute

// evictionGrace is what a Pod gets to end under a hard threshold, in seconds.
const evictionGrace = 1

// evictionHard are the hard thresholds, in the order in which they are dealt with:
// the kubelet's defaults (eviction/defaults_linux.go), and the one for pids that
// kubeadm clusters add where they limit them. A part below 1 is of the capacity.
var evictionHard = []struct {
	signal    evictionSignal
	condition corev1.NodeConditionType
	resource  corev1.ResourceName
	value     float64
}{
	{memoryAvailable, corev1.NodeMemoryPressure, corev1.ResourceMemory, MemoryReserve},
	{nodefsAvailable, corev1.NodeDiskPressure, corev1.ResourceEphemeralStorage, 0.1},
	{inodesFree, corev1.NodeDiskPressure, "inodes", 0.05},
	{pidAvailable, corev1.NodePIDPressure, "pids", 0.1},
}

// MemoryReserve is the threshold of memory.available in bytes: a node's allocatable
// memory is its capacity without it.
const MemoryReserve = 100 << 20

// observation is what is left of something.
type observation struct{ available, capacity int64 }

// podStats is what a Pod uses now; disk is its containers' layers and logs, and its emptyDirs.
type podStats struct {
	pod                        *corev1.Pod
	memory, disk, inodes, pids int64
	containers                 []containerStats
	emptyDirs                  map[string]int64
}

type containerStats struct {
	name         string
	memory, disk int64
}

// eviction is a Pod that has to go.
type eviction struct {
	pod         *corev1.Pod
	message     string
	disruption  bool // told by the DisruptionTarget condition: not where the Pod broke its own limits
	annotations map[string]string
}

// evictor is the eviction manager: eviction/eviction_manager.go. It decides; the boot acts.
type evictor struct {
	mu   sync.Mutex
	seen map[corev1.NodeConditionType]time.Time // when a threshold was last met
	now  func() time.Time
}

// conditions are the pressures that hold now, in the order of the thresholds.
func (e *evictor) conditions() []corev1.NodeConditionType {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []corev1.NodeConditionType
	for _, t := range evictionHard {
		if at, ok := e.seen[t.condition]; ok && e.now().Sub(at) < pressureTransition && !slices.Contains(out, t.condition) {
			out = append(out, t.condition)
		}
	}
	return out
}

// synchronize follows eviction_manager.go: Pods over limits of their own go first,
// all of them; else, if a threshold is met, starved names what is to be reclaimed
// and one Pod goes.
func (e *evictor) synchronize(seen map[evictionSignal]observation, pods []podStats) (starved corev1.ResourceName, out []eviction) {
	met, threshold := -1, int64(0)
	e.mu.Lock()
	for i, t := range evictionHard {
		o := seen[t.signal]
		value := int64(t.value)
		if t.value < 1 {
			value = int64(t.value * float64(o.capacity))
		}
		if o.capacity > 0 && o.available < value {
			e.seen[t.condition] = e.now()
			if met < 0 {
				met, threshold = i, value
			}
		}
	}
	e.mu.Unlock()
	for _, p := range pods {
		if msg := localLimit(p); msg != "" && !critical(p.pod) {
			out = append(out, eviction{pod: p.pod, message: msg})
		}
	}
	if len(out) > 0 || met < 0 {
		return "", out
	}
	t := evictionHard[met]
	rank(pods, t.resource)
	for _, p := range pods {
		if !critical(p.pod) {
			v := eviction{pod: p.pod, disruption: true}
			v.message, v.annotations = lowMessage(t.resource, threshold, seen[t.signal].available, p)
			return t.resource, []eviction{v}
		}
	}
	return t.resource, nil
}

// critical Pods are never evicted: types/pod_update.go, IsCriticalPod.
func critical(pod *corev1.Pod) bool {
	return isStatic(pod) || pod.Spec.Priority != nil && *pod.Spec.Priority >= 2_000_000_000
}

// localLimit says which limit of local storage a Pod breaks: eviction_manager.go, localStorageEviction.
func localLimit(p podStats) string {
	for _, v := range p.pod.Spec.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.Medium == corev1.StorageMediumMemory || v.EmptyDir.SizeLimit == nil {
			continue
		}
		if l := v.EmptyDir.SizeLimit; l.Sign() == 1 && p.emptyDirs[v.Name] > l.Value() {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, l.String())
		}
	}
	if l, ok := resourcehelper.PodLimits(p.pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]; ok && p.disk > l.Value() {
		return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", l.String())
	}
	for _, c := range p.containers {
		for i := range p.pod.Spec.Containers {
			if own := &p.pod.Spec.Containers[i]; own.Name == c.name {
				if l := own.Resources.Limits.StorageEphemeral(); !l.IsZero() && c.disk > l.Value() {
					return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.name, l.String())
				}
			}
		}
	}
	return ""
}

// rank orders Pods for eviction: those over their request, low priority, most over
// the request first; for processes, priority and number.
func rank(pods []podStats, name corev1.ResourceName) {
	use := func(p podStats) int64 {
		switch name {
		case corev1.ResourceMemory:
			return p.memory
		case corev1.ResourceEphemeralStorage:
			return p.disk
		case "inodes":
			return p.inodes
		}
		return p.pids
	}
	over := func(p podStats) int64 {
		request := resourcehelper.PodRequests(p.pod, resourcehelper.PodResourcesOptions{})[name]
		return use(p) - request.Value()
	}
	slices.SortStableFunc(pods, func(a, b podStats) int {
		if name != "pids" && (over(a) > 0) != (over(b) > 0) {
			if over(a) > 0 {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(priority(a.pod), priority(b.pod)), cmp.Compare(over(b), over(a)))
	})
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// lowMessage follows eviction/helpers.go, evictionMessage, with the annotations of the Event.
func lowMessage(name corev1.ResourceName, threshold, available int64, p podStats) (string, map[string]string) {
	format := resource.BinarySI
	if name == "pids" || name == "inodes" {
		format = resource.DecimalSI
	}
	msg := fmt.Sprintf("The node was low on resource: %s. Threshold quantity: %s, available: %s. ", name,
		resource.NewQuantity(threshold, resource.BinarySI), resource.NewQuantity(available, format))
	var names, uses []string
	for _, c := range p.containers {
		use := c.memory
		if name == corev1.ResourceEphemeralStorage {
			use = c.disk
		}
		spec := containerSpec(p.pod, c.name)
		if spec == nil || name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
			continue
		}
		if request := spec.Resources.Requests[name]; use > request.Value() {
			used := resource.NewQuantity(use, resource.BinarySI).String()
			msg += fmt.Sprintf("Container %s was using %s, request is %s, has larger consumption of %s. ", c.name, used, request.String(), name)
			names, uses = append(names, c.name), append(uses, used)
		}
	}
	return msg, map[string]string{
		"offending_containers": strings.Join(names, ","), "offending_containers_usage": strings.Join(uses, ","), "starved_resource": string(name),
	}
}

func containerSpec(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// refuses says why a node under pressure doesn't take a Pod: eviction_manager.go, Admit.
func (e *evictor) refuses(pod *corev1.Pod) string {
	under := e.conditions()
	if len(under) == 0 || critical(pod) {
		return ""
	}
	if len(under) == 1 && under[0] == corev1.NodeMemoryPressure {
		if qosClass(pod) != corev1.PodQOSBestEffort {
			return ""
		}
		for _, t := range pod.Spec.Tolerations {
			if t.ToleratesTaint(klog.Logger{}, &corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule}, true) {
				return ""
			}
		}
	}
	return fmt.Sprintf("The node had condition: %v. ", under)
}
