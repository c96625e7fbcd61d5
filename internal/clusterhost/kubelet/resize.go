package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resizeRetry is how long a deferred resize waits when nothing happens on the
// node: allocation/allocation_manager.go.
const resizeRetry = 3 * time.Minute

// allocation is what the node has given to a Pod. It lags behind the spec while a
// resize has to wait (KEP 1287): everything that the node does goes by it.
type allocation struct {
	Pod        *corev1.ResourceRequirements           `json:"pod,omitempty"`
	Containers map[string]corev1.ResourceRequirements `json:"containers"`
}

func allocationOf(pod *corev1.Pod) *allocation {
	a := &allocation{Pod: pod.Spec.Resources.DeepCopy(), Containers: map[string]corev1.ResourceRequirements{}}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			a.Containers[list[i].Name] = *list[i].Resources.DeepCopy()
		}
	}
	return a
}

// apply is the Pod with the allocation in place of its spec's resources; it is
// the same object when they don't differ.
func (a *allocation) apply(pod *corev1.Pod) *corev1.Pod {
	if a == nil || apiequality.Semantic.DeepEqual(a, allocationOf(pod)) {
		return pod
	}
	pod = pod.DeepCopy()
	pod.Spec.Resources = a.Pod.DeepCopy()
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if r, ok := a.Containers[list[i].Name]; ok {
				list[i].Resources = *r.DeepCopy()
			}
		}
	}
	return pod
}

// resizeState are the two conditions of a resize; nil where it isn't in that state.
type resizeState struct{ pending, progress *corev1.PodCondition }

func (r resizeState) conditions() []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, c := range []*corev1.PodCondition{r.pending, r.progress} {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}

func (w *worker) resizeCondition(t corev1.PodConditionType, reason, message string, generation int64) *corev1.PodCondition {
	now := metav1.NewTime(w.b.k.clock.Now()).Rfc3339Copy()
	return &corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation, LastProbeTime: now, LastTransitionTime: now}
}

// allocate follows allocation_manager.go, handlePodResourcesResize: a changed spec
// is given what it wants when the node has that much left, else it waits.
func (w *worker) allocate() {
	want := w.taken
	if w.alloc == nil || w.static || w.pod == want {
		w.mu.Lock()
		w.resizing.pending = nil
		w.mu.Unlock()
		return
	}
	w.b.admission.Lock()
	_, why := w.misfit(want)
	if why == "" {
		w.mu.Lock()
		w.alloc = allocationOf(want)
		w.resizing = resizeState{progress: w.resizeCondition(corev1.PodResizeInProgress, "", "", want.Generation)}
		w.mu.Unlock()
		w.takeSpec(want)
	}
	w.b.admission.Unlock()
	if why == "" {
		w.b.podEvent(want, "", corev1.EventTypeNormal, "ResizeStarted", "Pod resize started: %s", resizeSummary(want, want.Generation, ""))
		w.b.retryResizes(w)
		return
	}
	w.after(resizeRetry)
	w.mu.Lock()
	old := w.resizing.pending
	c := w.resizeCondition(corev1.PodResizePending, corev1.PodReasonDeferred, why, want.Generation)
	news := old == nil || old.ObservedGeneration != want.Generation
	if old != nil {
		c.LastTransitionTime = old.LastTransitionTime
		if !news {
			c.LastProbeTime = old.LastProbeTime
		}
	}
	w.resizing.pending = c
	w.mu.Unlock()
	if news {
		w.b.podEvent(want, "", corev1.EventTypeWarning, "ResizeDeferred", "Pod resize %s: %s", c.Reason, resizeSummary(want, want.Generation, why))
	}
}

// retryResizes has the node's deferred resizes looked at again: a Pod gave something back.
func (b *boot) retryResizes(but *worker) {
	for _, w := range b.all() {
		w.mu.Lock()
		waits := w.resizing.pending != nil
		w.mu.Unlock()
		if waits && w != but {
			w.poke()
		}
	}
}

// actuate gives running containers what is allocated to them:
// kuberuntime/kuberuntime_manager.go, computePodResizeAction and doPodResizeAction.
func (w *worker) actuate(ctx context.Context) {
	w.mu.Lock()
	progress := w.resizing.progress
	w.mu.Unlock()
	if progress == nil {
		return
	}
	done, failed := true, []error(nil)
	for _, s := range w.slots {
		w.mu.Lock()
		inst := s.cur
		running := s.running() && (s.kind == kindRegular || sidecar(s.spec))
		w.mu.Unlock()
		if !running || sameCompute(inst.resources, s.spec.Resources) {
			continue
		}
		if restartToResize(s.spec, inst.resources) {
			done = false
			w.mu.Lock()
			inst.renewed = true
			w.mu.Unlock()
			grace := int64(minimumGrace)
			if g := w.pod.Spec.TerminationGracePeriodSeconds; g != nil {
				grace = *g
			}
			w.kill(ctx, s, inst, fmt.Sprintf("Container %s resize requires restart", s.name), grace)
			continue
		}
		limit, held := s.spec.Resources.Limits.Memory().Value(), inst.proc.Usage.Memory()
		if before := inst.resources.Limits.Memory().Value(); limit > 0 && limit < before && held >= limit {
			done = false
			failed = append(failed, fmt.Errorf("attempting to set container %q memory limit (%d) below current usage (%d)", s.name, limit, held))
			continue
		}
		inst.proc.Usage.SetLimits(containerLimits(s.spec.Resources))
		w.mu.Lock()
		inst.resources = *s.spec.Resources.DeepCopy()
		w.mu.Unlock()
	}
	if len(failed) > 0 {
		w.resizeFailed(progress, errors.Join(failed...))
		return
	}
	w.b.groups.resize(w.group, w.pod)
	if !done {
		return
	}
	w.mu.Lock()
	w.resizing.progress = nil
	w.mu.Unlock()
	w.b.podEvent(w.pod, "", corev1.EventTypeNormal, "ResizeCompleted", "Pod resize completed: %s", resizeSummary(w.pod, progress.ObservedGeneration, ""))
}

// resizeFailed tells why a resize that the node has granted can't be carried out yet.
func (w *worker) resizeFailed(progress *corev1.PodCondition, err error) {
	w.after(jitter(retryPeriod))
	c := *progress
	c.Reason, c.Message = corev1.PodReasonError, err.Error()
	w.mu.Lock()
	w.resizing.progress = &c
	w.mu.Unlock()
	if progress.Reason != c.Reason || progress.Message != c.Message {
		w.b.podEvent(w.pod, "", corev1.EventTypeWarning, "ResizeError", "Pod resize error: %s", resizeSummary(w.pod, c.ObservedGeneration, c.Message))
	}
}

// sameCompute compares what of resources can be resized.
func sameCompute(a, b corev1.ResourceRequirements) bool {
	return a.Requests.Cpu().Equal(*b.Requests.Cpu()) && a.Limits.Cpu().Equal(*b.Limits.Cpu()) &&
		a.Requests.Memory().Equal(*b.Requests.Memory()) && a.Limits.Memory().Equal(*b.Limits.Memory())
}

func restartToResize(c *corev1.Container, had corev1.ResourceRequirements) bool {
	changed := map[corev1.ResourceName]bool{
		corev1.ResourceCPU:    !had.Requests.Cpu().Equal(*c.Resources.Requests.Cpu()) || !had.Limits.Cpu().Equal(*c.Resources.Limits.Cpu()),
		corev1.ResourceMemory: !had.Requests.Memory().Equal(*c.Resources.Requests.Memory()) || !had.Limits.Memory().Equal(*c.Resources.Limits.Memory()),
	}
	for _, p := range c.ResizePolicy {
		if changed[p.ResourceName] && p.RestartPolicy == corev1.RestartContainer {
			return true
		}
	}
	return false
}

// resizeSummary is the JSON in the Events of a resize: events/resize.go.
func resizeSummary(pod *corev1.Pod, generation int64, problem string) string {
	type container struct {
		Name      string                      `json:"name"`
		Resources corev1.ResourceRequirements `json:"resources"`
	}
	var s struct {
		InitContainers []container `json:"initContainers,omitempty"`
		Containers     []container `json:"containers,omitempty"`
		Generation     int64       `json:"generation"`
		Error          string      `json:"error,omitempty"`
	}
	s.Generation, s.Error = generation, problem
	for i := range pod.Spec.InitContainers {
		s.InitContainers = append(s.InitContainers, container{pod.Spec.InitContainers[i].Name, pod.Spec.InitContainers[i].Resources})
	}
	for i := range pod.Spec.Containers {
		s.Containers = append(s.Containers, container{pod.Spec.Containers[i].Name, pod.Spec.Containers[i].Resources})
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
