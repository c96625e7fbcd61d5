package clusterautoscaler

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// place is a node, or one that might be opened, with the Pods on it.
type place struct {
	node *corev1.Node
	pods []*corev1.Pod
	free corev1.ResourceList
}

func newPlace(n *corev1.Node, pods []*corev1.Pod) *place {
	p := &place{node: n, free: n.Status.Allocatable.DeepCopy()}
	for _, pod := range pods {
		p.add(pod)
	}
	return p
}

// requests is what a Pod takes of a node.
func requests(pod *corev1.Pod) corev1.ResourceList {
	out := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	one := out[corev1.ResourcePods]
	one.Set(1)
	out[corev1.ResourcePods] = one
	return out
}

func (p *place) add(pod *corev1.Pod) {
	p.pods = append(p.pods, pod)
	for name, q := range requests(pod) {
		left := p.free[name]
		left.Sub(q)
		p.free[name] = left
	}
}

// world is all places, among which affinity and spread are decided.
type world struct {
	places     []*place
	namespaces map[string]labels.Set
}

// put finds a place for a Pod among some and puts it there.
func (w *world) put(pod *corev1.Pod, among []*place) bool {
	for _, p := range among {
		if w.wrong(pod, p) == "" {
			p.add(pod)
			return true
		}
	}
	return false
}

// wrong says why the scheduler wouldn't put a Pod on a place, in its words: the filter
// plugins of pkg/scheduler/framework/plugins. It is "" when it would.
func (w *world) wrong(pod *corev1.Pod, p *place) string {
	if p.node.Spec.Unschedulable && !corev1helpers.TolerationsTolerateTaint(klog.TODO(), pod.Spec.Tolerations, &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, true) {
		return "node(s) were unschedulable"
	}
	if _, bad := corev1helpers.FindMatchingUntoleratedTaint(klog.TODO(), p.node.Spec.Taints, pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, true); bad {
		return "node(s) had untolerated taint(s)"
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(p.node); err != nil || !ok {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	for _, name := range slices.Sorted(maps.Keys(requests(pod))) {
		want := requests(pod)[name]
		if left := p.free[name]; want.Sign() > 0 && want.Cmp(left) > 0 {
			if name == corev1.ResourcePods {
				return "Too many pods"
			}
			return fmt.Sprintf("Insufficient %s", name)
		}
	}
	if portsTaken(pod, p) {
		return "node(s) didn't have free ports for the requested pod ports"
	}
	if reason := w.affinity(pod, p); reason != "" {
		return reason
	}
	if !w.spreads(pod, p) {
		return "node(s) didn't match pod topology spread constraints"
	}
	return ""
}

func portsTaken(pod *corev1.Pod, p *place) bool {
	ports := func(pod *corev1.Pod) (out []corev1.ContainerPort) {
		for _, c := range pod.Spec.Containers {
			for _, port := range c.Ports {
				if port.HostPort > 0 {
					out = append(out, port)
				}
			}
		}
		return out
	}
	for _, mine := range ports(pod) {
		for _, other := range p.pods {
			for _, theirs := range ports(other) {
				if mine.HostPort == theirs.HostPort && mine.Protocol == theirs.Protocol && (mine.HostIP == theirs.HostIP || mine.HostIP == "" || theirs.HostIP == "") {
					return true
				}
			}
		}
	}
	return false
}

// affinity looks at the required terms of the Pod and, for anti-affinity, of those that are there.
func (w *world) affinity(pod *corev1.Pod, p *place) string {
	for _, at := range w.places {
		for _, other := range at.pods {
			for _, term := range antiTerms(other) {
				if sameDomain(term.TopologyKey, at.node, p.node) && w.matches(term, other, pod) {
					return "node(s) didn't satisfy existing pods anti-affinity rules"
				}
			}
			for _, term := range antiTerms(pod) {
				if sameDomain(term.TopologyKey, at.node, p.node) && w.matches(term, pod, other) {
					return "node(s) didn't match pod anti-affinity rules"
				}
			}
		}
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return ""
	}
	for _, term := range pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		anywhere, here := false, false
		for _, at := range w.places {
			for _, other := range at.pods {
				if w.matches(term, pod, other) {
					anywhere = true
					here = here || sameDomain(term.TopologyKey, at.node, p.node)
				}
			}
		}
		_, has := p.node.Labels[term.TopologyKey]
		if first := !anywhere && w.matches(term, pod, pod) && has; !here && !first { // the first of a group may go anywhere
			return "node(s) didn't match pod affinity rules"
		}
	}
	return ""
}

func antiTerms(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func sameDomain(key string, a, b *corev1.Node) bool {
	x, ok1 := a.Labels[key]
	y, ok2 := b.Labels[key]
	return ok1 && ok2 && x == y
}

// matches reports whether a term of owner's means other.
func (w *world) matches(term corev1.PodAffinityTerm, owner, other *corev1.Pod) bool {
	in := len(term.Namespaces) == 0 && term.NamespaceSelector == nil && other.Namespace == owner.Namespace || slices.Contains(term.Namespaces, other.Namespace)
	if !in && term.NamespaceSelector != nil {
		in = selects(term.NamespaceSelector, w.namespaces[other.Namespace])
	}
	return in && selects(term.LabelSelector, other.Labels)
}

func selects(s *metav1.LabelSelector, l map[string]string) bool {
	sel, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && sel.Matches(labels.Set(l))
}

// spreads looks at the constraints with DoNotSchedule.
func (w *world) spreads(pod *corev1.Pod, p *place) bool {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		domain, ok := p.node.Labels[c.TopologyKey]
		if !ok {
			return false
		}
		count := map[string]int{domain: 0}
		for _, at := range w.places {
			d, ok := at.node.Labels[c.TopologyKey]
			if match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(at.node); !ok || err != nil || !match {
				continue
			}
			count[d] += 0
			for _, other := range at.pods {
				if other.Namespace == pod.Namespace && other.DeletionTimestamp == nil && selects(c.LabelSelector, other.Labels) {
					count[d]++
				}
			}
		}
		least := count[domain]
		for _, n := range count {
			least = min(least, n)
		}
		if c.MinDomains != nil && len(count) < int(*c.MinDomains) {
			least = 0
		}
		self := 0
		if selects(c.LabelSelector, pod.Labels) {
			self = 1
		}
		if count[domain]+self-least > int(c.MaxSkew) {
			return false
		}
	}
	return true
}
