package clusterautoscaler

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Annotations that have a say in what is closed.
const (
	safeToEvict       = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	safeVolumes       = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
	scaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
)

// stays reports Pods that a drain leaves alone: of DaemonSets, mirror Pods, ended ones.
func stays(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || terminal(p) || owner != nil && owner.Kind == "DaemonSet"
}

// blocks says why a Pod keeps its node from being closed, "" when it doesn't: simulator/drainability/rules.
func (a *autoscaler) blocks(p *corev1.Pod) string {
	if stays(p) || p.DeletionTimestamp != nil {
		return ""
	}
	safe := p.Annotations[safeToEvict]
	budgets := a.budgetsOf(p)
	owner := metav1.GetControllerOf(p)
	switch {
	case safe == "false":
		return "NotSafeToEvictAnnotation"
	case safe != "true" && owner == nil:
		return "NotReplicated"
	case safe != "true" && a.o.skipOrphans && !wellKnownOwner(owner.Kind):
		return "NotReplicated"
	case safe != "true" && a.o.skipSystem && p.Namespace == metav1.NamespaceSystem && budgets == 0:
		return "UnmovableKubeSystemPod"
	case safe != "true" && a.o.skipLocal && localStorage(p):
		return "LocalStorageRequested"
	case budgets < 0:
		return "NotEnoughPdb"
	}
	return ""
}

func wellKnownOwner(kind string) bool {
	switch kind {
	case "ReplicationController", "ReplicaSet", "StatefulSet", "Job":
		return true
	}
	return false
}

func localStorage(p *corev1.Pod) bool {
	fine := map[string]bool{}
	for _, name := range strings.Split(p.Annotations[safeVolumes], ",") {
		fine[strings.TrimSpace(name)] = true
	}
	for _, v := range p.Spec.Volumes {
		if (v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory) && !fine[v.Name] {
			return true
		}
	}
	return false
}

// budgetsOf is how many budgets a Pod is under, -1 when one of them allows no disruption.
func (a *autoscaler) budgetsOf(p *corev1.Pod) (n int) {
	all, err := a.budgets.PodDisruptionBudgets(p.Namespace).List(labels.Everything())
	if err != nil {
		return -1
	}
	for _, b := range all {
		if b.Spec.Selector == nil || !selects(b.Spec.Selector, p.Labels) {
			continue
		}
		if n++; b.Status.DisruptionsAllowed < 1 {
			return -1
		}
	}
	return n
}
