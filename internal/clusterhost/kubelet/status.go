package kubelet

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

// podView is what the node knows of a Pod: the input of composeStatus.
type podView struct {
	sandbox    bool // the Pod has its place in the network
	ips        []string
	hostIP     string
	containers map[string]containerView
	terminal   bool          // nothing runs any more and nothing will
	evict      *podRejection // the Pod was ended by the node
	resize     []corev1.PodCondition
}

// podRejection is why the node ends a Pod.
type podRejection struct {
	reason, message string
	grace           *int64 // how long its containers may take; nil: as the Pod says
	disruption      bool   // told by a condition too
}

// containerView is what the node knows of one container of the spec.
type containerView struct {
	cur       *containerState // nil: never made
	prev      *containerState // the one before
	restarts  int32
	waiting   *corev1.ContainerStateWaiting // why the next start waits
	image     string                        // as the runtime names it
	imageID   string
	imageUser int64
	started   bool // running, and its startup probe has succeeded
	ready     bool
	renewed   bool // starts again whatever the restart policy says

	resources *corev1.ResourceRequirements // what a running one has
}

type containerPhase int

const (
	containerCreated containerPhase = iota
	containerRunning
	containerExited
)

// containerState is one life of a container.
type containerState struct {
	ID       string         `json:"id"`
	Phase    containerPhase `json:"phase"`
	Started  time.Time      `json:"started"`
	Finished time.Time      `json:"finished"`
	ExitCode int32          `json:"exitCode"`
	Reason   string         `json:"reason,omitempty"`
	Message  string         `json:"message,omitempty"`
}

const runtimePrefix = "containerd://"

func (s *containerState) api() corev1.ContainerState {
	switch {
	case s == nil:
		return corev1.ContainerState{}
	case s.Phase == containerRunning:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(s.Started)}}
	case s.Phase == containerExited:
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: s.ExitCode, Reason: s.Reason, Message: s.Message,
			StartedAt: metav1.NewTime(s.Started), FinishedAt: metav1.NewTime(s.Finished),
			ContainerID: runtimePrefix + s.ID,
		}}
	}
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
}

// composeStatus makes the status of a Pod from what the node knows and the
// status before: kubelet_pods.go, generateAPIPodStatus. It changes neither.
func composeStatus(pod *corev1.Pod, v podView, old corev1.PodStatus, now time.Time) corev1.PodStatus {
	s := corev1.PodStatus{
		ObservedGeneration: pod.Generation,
		QOSClass:           old.QOSClass,
		HostIP:             v.hostIP,
		HostIPs:            []corev1.HostIP{{IP: v.hostIP}},
		StartTime:          old.StartTime,
		NominatedNodeName:  old.NominatedNodeName,
		Resize:             old.Resize,

		ResourceClaimStatuses:                old.ResourceClaimStatuses,
		ExtendedResourceClaimStatus:          old.ExtendedResourceClaimStatus,
		NodeAllocatableResourceClaimStatuses: old.NodeAllocatableResourceClaimStatuses,
	}
	if s.QOSClass == "" {
		s.QOSClass = qosClass(pod)
	}
	for _, ip := range v.ips {
		s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: ip})
	}
	if len(v.ips) > 0 {
		s.PodIP = v.ips[0]
	}
	if s.StartTime.IsZero() {
		s.StartTime = &metav1.Time{Time: now}
	}
	s.AllocatedResources = resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	s.Resources = podResources(pod, old.Phase == corev1.PodRunning)
	s.InitContainerStatuses = containerStatuses(pod, pod.Spec.InitContainers, v, true)
	s.ContainerStatuses = containerStatuses(pod, pod.Spec.Containers, v, false)
	s.EphemeralContainerStatuses = containerStatuses(pod, ephemeralContainers(pod), v, false)
	for i := range s.EphemeralContainerStatuses {
		// Only the probes' manager sets it, which knows no ephemeral containers: prober_manager.go, UpdatePodStatus.
		s.EphemeralContainerStatuses[i].Started = nil
	}
	all := slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)

	s.Phase = podPhase(pod, all, v)
	if terminalPhase(old.Phase) {
		s.Phase = old.Phase // no way back from a terminal phase
	}
	if s.Phase == old.Phase {
		s.Reason, s.Message = old.Reason, old.Message
	}
	if v.evict != nil && v.terminal {
		s.Phase, s.Reason, s.Message = corev1.PodFailed, v.evict.reason, v.evict.message
	}
	for _, c := range old.Conditions {
		if !kubeletCondition(c.Type) {
			s.Conditions = append(s.Conditions, c)
		}
	}
	if v.evict != nil && v.terminal && v.evict.disruption && findCondition(s.Conditions, corev1.DisruptionTarget) == nil {
		c := disrupted(pod, v.evict.message)
		c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		s.Conditions = append(s.Conditions, c)
	}
	if !v.terminal {
		s.Conditions = append(s.Conditions, v.resize...)
	}
	s.Conditions = append(s.Conditions, podConditions(pod, s, all, v.sandbox)...)
	setTransitions(&s, old, now)
	normalize(&s, len(all))
	return s
}

// keepForeign is own with what the kubelet doesn't own taken from the API's
// status: status/status_manager.go, mergePodStatus. A disruption is shared: the
// kubelet's own is told when nobody else has told one.
func keepForeign(api, own corev1.PodStatus) corev1.PodStatus {
	var out []corev1.PodCondition
	for _, c := range api.Conditions {
		if !kubeletCondition(c.Type) {
			out = append(out, c)
		}
	}
	for _, c := range own.Conditions {
		if kubeletCondition(c.Type) || c.Type == corev1.DisruptionTarget && findCondition(out, c.Type) == nil {
			out = append(out, c)
		}
	}
	own.Conditions = out
	own.NominatedNodeName = api.NominatedNodeName
	own.ResourceClaimStatuses = api.ResourceClaimStatuses
	own.ExtendedResourceClaimStatus = api.ExtendedResourceClaimStatus
	own.NodeAllocatableResourceClaimStatuses = api.NodeAllocatableResourceClaimStatuses
	return own
}

func ephemeralContainers(pod *corev1.Pod) []corev1.Container {
	var out []corev1.Container
	for i := range pod.Spec.EphemeralContainers {
		out = append(out, corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return out
}

// containerStatuses follows kubelet_pods.go, convertToAPIContainerStatuses.
func containerStatuses(pod *corev1.Pod, specs []corev1.Container, v podView, init bool) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range specs {
		out = append(out, containerStatus(pod, &specs[i], v.containers[specs[i].Name], init, v.terminal))
	}
	if !init {
		sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	}
	return out
}

func containerStatus(pod *corev1.Pod, spec *corev1.Container, c containerView, init, terminal bool) corev1.ContainerStatus {
	st := corev1.ContainerStatus{
		Name: spec.Name, Image: spec.Image, RestartCount: c.restarts,
		VolumeMounts: mountStatuses(spec),
		Started:      ptr.To(false),
	}
	if c.cur == nil {
		w := corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		if len(pod.Spec.InitContainers) > 0 {
			w.Reason = "PodInitializing"
		}
		if c.waiting != nil {
			w = *c.waiting
		}
		st.State.Waiting = &w
		st.LastTerminationState = c.prev.api()
		return st
	}
	st.Image, st.ImageID, st.ContainerID = c.image, c.imageID, runtimePrefix+c.cur.ID
	st.State, st.LastTerminationState = c.cur.api(), c.prev.api()
	st.Resources = actual(spec.Resources, c.resources)
	st.AllocatedResources = spec.Resources.Requests
	st.User = containerUser(pod, spec, c.imageUser)
	switch c.cur.Phase {
	case containerRunning:
		st.Started = ptr.To(c.started)
		st.Ready = c.started && c.ready && !(init && !sidecar(spec))
	case containerExited:
		st.Ready = init && !sidecar(spec) && c.cur.ExitCode == 0
		if c.waiting != nil && !terminal {
			st.LastTerminationState = st.State
			st.State = corev1.ContainerState{Waiting: c.waiting}
		}
	default:
		st.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		if len(pod.Spec.InitContainers) > 0 {
			st.State.Waiting.Reason = "PodInitializing"
		}
	}
	return st
}

// actual is what was allocated, but the CPU and memory that a running container has:
// kubelet_pods.go, convertContainerStatusResources.
func actual(allocated corev1.ResourceRequirements, has *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	out := allocated.DeepCopy()
	if has == nil {
		return out
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q, ok := has.Limits[name]; ok && out.Limits != nil {
			out.Limits[name] = q.DeepCopy()
		}
		if q, ok := has.Requests[name]; ok && out.Requests != nil {
			out.Requests[name] = q.DeepCopy()
		}
	}
	return out
}

// podResources is what the Pod as a whole has. While it runs that is what its control
// group says, which has limits only where every container or the Pod has: kubelet_pods.go,
// convertToAPIPodLevelResourcesStatus.
func podResources(pod *corev1.Pod, running bool) *corev1.ResourceRequirements {
	out := &corev1.ResourceRequirements{}
	if pod.Spec.Resources != nil {
		out = pod.Spec.Resources.DeepCopy()
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	if !running {
		out.Requests, out.Limits = requests, limits
		return out
	}
	if out.Requests == nil {
		out.Requests = corev1.ResourceList{}
	}
	if out.Limits == nil {
		out.Limits = corev1.ResourceList{}
	}
	group := podLimits(pod)
	for name, there := range map[corev1.ResourceName]bool{corev1.ResourceCPU: group.Weight > minShares, corev1.ResourceMemory: true} {
		if q, ok := requests[name]; ok && there {
			out.Requests[name] = q
		}
	}
	for name, there := range map[corev1.ResourceName]bool{corev1.ResourceCPU: group.CPU > 0, corev1.ResourceMemory: group.Memory > 0} {
		if q, ok := limits[name]; ok && there {
			out.Limits[name] = q
		}
	}
	return out
}

func mountStatuses(spec *corev1.Container) []corev1.VolumeMountStatus {
	var out []corev1.VolumeMountStatus
	for _, m := range spec.VolumeMounts {
		s := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			s.RecursiveReadOnly = ptr.To(corev1.RecursiveReadOnlyDisabled)
		}
		out = append(out, s)
	}
	return out
}

// setTransitions keeps a condition's time while its status stays: status/status_manager.go, updateLastTransitionTime.
func setTransitions(s *corev1.PodStatus, old corev1.PodStatus, now time.Time) {
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if !kubeletCondition(c.Type) {
			continue
		}
		c.LastTransitionTime = metav1.NewTime(now)
		if o := findCondition(old.Conditions, c.Type); o != nil && o.Status == c.Status {
			c.LastTransitionTime = o.LastTransitionTime
		}
	}
}

func findCondition(cs []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range cs {
		if cs[i].Type == t {
			return &cs[i]
		}
	}
	return nil
}

// normalize cuts times to seconds and messages to size, as status/status_manager.go's normalizeStatus.
func normalize(s *corev1.PodStatus, containers int) {
	limit := 12 << 10
	if containers > 0 {
		limit /= containers
	}
	s.StartTime = ptr.To(s.StartTime.Rfc3339Copy())
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime = s.Conditions[i].LastTransitionTime.Rfc3339Copy()
	}
	state := func(c *corev1.ContainerState) {
		if c.Running != nil {
			c.Running.StartedAt = c.Running.StartedAt.Rfc3339Copy()
		}
		if t := c.Terminated; t != nil {
			t.StartedAt, t.FinishedAt = t.StartedAt.Rfc3339Copy(), t.FinishedAt.Rfc3339Copy()
			if len(t.Message) > limit {
				t.Message = t.Message[:limit]
			}
		}
	}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			state(&list[i].State)
			state(&list[i].LastTerminationState)
		}
	}
}

func formatNames(names []string) string { return fmt.Sprintf("[%s]", strings.Join(names, " ")) }
