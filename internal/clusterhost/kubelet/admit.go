package kubelet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"
)

// admit checks whether the node has room for a Pod that the scheduler may not
// have seen (spec.nodeName written by hand): lifecycle/predicate.go. A refused Pod fails.
func (w *worker) admit() bool {
	w.b.admission.Lock()
	defer w.b.admission.Unlock()
	if w.static || w.pod.Status.StartTime != nil || terminalPhase(w.pod.Status.Phase) || w.b.frozen[w.uid] != nil {
		return true
	}
	reason, message := "Evicted", w.b.evictor.refuses(w.pod)
	if message == "" {
		reason, message = w.misfit()
	}
	if reason == "" {
		w.mu.Lock()
		w.admitted = true
		w.mu.Unlock()
		return true
	}
	w.b.podEvent(w.pod, "", corev1.EventTypeWarning, reason, "%s", message)
	w.mu.Lock()
	w.evict = &podRejection{reason: reason, message: "Pod was rejected: " + message}
	w.terminal = true
	w.mu.Unlock()
	w.push()
	w.mu.Lock()
	w.finished = true
	w.mu.Unlock()
	w.b.statuses.enqueue(w)
	return false
}

func (w *worker) misfit() (reason, message string) {
	if len(w.pod.Spec.NodeSelector) > 0 {
		if n := w.b.node.get(); n != nil && !labels.SelectorFromSet(w.pod.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
			return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
		}
	}
	pods, used := int64(0), corev1.ResourceList{}
	for _, o := range w.b.all() {
		o.mu.Lock()
		counts := o != w && !o.finished && (o.admitted || o.static || o.pod.Status.StartTime != nil)
		pod := o.incoming
		o.mu.Unlock()
		if !counts {
			continue
		}
		pods++
		for name, q := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
	}
	alloc := w.b.k.cfg.Allocatable
	if max, ok := alloc[corev1.ResourcePods]; ok && pods+1 > max.Value() {
		return "OutOfpods", fmt.Sprintf("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d", pods, max.Value())
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		q, ok := resourcehelper.PodRequests(w.pod, resourcehelper.PodResourcesOptions{})[name]
		have, known := alloc[name]
		if !ok || q.IsZero() || !known {
			continue
		}
		sum := used[name]
		num := func(l corev1.ResourceList) int64 {
			v := l[name]
			if name == corev1.ResourceCPU {
				return v.MilliValue()
			}
			return v.Value()
		}
		left := have.DeepCopy()
		left.Sub(sum)
		if q.Cmp(left) > 0 {
			return "OutOf" + string(name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				name, num(corev1.ResourceList{name: q}), num(used), num(alloc))
		}
	}
	return "", ""
}
