package kubelet

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
		reason, message = "SysctlForbidden", forbiddenSysctl(w.pod)
	}
	if message == "" {
		reason, message = w.misfit(w.pod)
	}
	if reason == "" {
		w.mu.Lock()
		w.admitted, w.alloc = true, allocationOf(w.pod)
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

// misfit says what the node lacks for pod, which is the worker's Pod as it is or is to be.
func (w *worker) misfit(pod *corev1.Pod) (reason, message string) {
	if len(pod.Spec.NodeSelector) > 0 {
		if n := w.b.node.get(); n != nil && !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
			return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
		}
	}
	pods, used := int64(0), corev1.ResourceList{}
	for _, o := range w.b.all() {
		o.mu.Lock()
		counts := o != w && !o.finished && (o.admitted || o.static || o.pod.Status.StartTime != nil)
		other := o.pod
		o.mu.Unlock()
		if !counts {
			continue
		}
		pods++
		if sharesHostPort(pod, other) {
			return "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
		}
		for name, q := range resourcehelper.PodRequests(other, resourcehelper.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
	}
	alloc := w.b.k.cfg.Allocatable
	if max, ok := alloc[corev1.ResourcePods]; ok && pods+1 > max.Value() {
		return "OutOfpods", fmt.Sprintf("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d", pods, max.Value())
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	for name := range alloc { // extended resources that the node doesn't know are somebody else's
		if strings.Contains(string(name), "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names[3:])
	for _, name := range names {
		q, ok := requests[name]
		have, known := alloc[name]
		if !ok || q.IsZero() || !known {
			continue
		}
		num := func(q resource.Quantity) int64 {
			if name == corev1.ResourceCPU {
				return q.MilliValue()
			}
			return q.Value()
		}
		left := have.DeepCopy()
		left.Sub(used[name])
		if q.Cmp(left) > 0 {
			return "OutOf" + string(name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				name, num(q), num(used[name]), num(have))
		}
	}
	return "", ""
}

// sharesHostPort says whether two Pods want the same port of the node:
// pkg/scheduler/framework/plugins/nodeports.
func sharesHostPort(a, b *corev1.Pod) bool {
	any := func(ip string) bool { return ip == "" || ip == "0.0.0.0" }
	for _, p := range hostPorts(a) {
		for _, q := range hostPorts(b) {
			if p.HostPort == q.HostPort && p.Protocol == q.Protocol && (p.HostIP == q.HostIP || any(p.HostIP) || any(q.HostIP)) {
				return true
			}
		}
	}
	return false
}

// hostPorts are the ports of the node that a Pod's containers and sidecars take.
func hostPorts(pod *corev1.Pod) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				out = append(out, p)
			}
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if sidecar(&pod.Spec.InitContainers[i]) {
			add(&pod.Spec.InitContainers[i])
		}
	}
	return out
}
