package clusterautoscaler

import (
	"context"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"
)

// Taints of nodes that are to go, and of those that may: utils/taints/taints.go.
const (
	taintDeleted   = "ToBeDeletedByClusterAutoscaler"
	taintCandidate = "DeletionCandidateOfClusterAutoscaler"
)

// mark gives a node a taint with the time as its value, or takes it away.
func (a *autoscaler) mark(ctx context.Context, n *corev1.Node, key string, effect corev1.TaintEffect, on bool) error {
	is := func(t corev1.Taint) bool { return t.Key == key }
	if slices.ContainsFunc(n.Spec.Taints, is) == on {
		return nil
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		fresh, err := a.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil || slices.ContainsFunc(fresh.Spec.Taints, is) == on {
			return err
		}
		fresh.Spec.Taints = slices.DeleteFunc(fresh.Spec.Taints, is)
		if on {
			fresh.Spec.Taints = append(fresh.Spec.Taints, corev1.Taint{Key: key, Value: strconv.FormatInt(a.env.Clock.Now().Unix(), 10), Effect: effect})
		}
		_, err = a.client.CoreV1().Nodes().Update(ctx, fresh, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		a.logf("Failed to change the taint %s of %s: %v", key, n.Name, err)
		return err
	}
	return nil
}

// cleanUp takes marks away that a former run has left, once.
func (a *autoscaler) cleanUp(ctx context.Context) {
	if a.cleaned {
		return
	}
	all, err := a.nodes.List(labels.Everything())
	for _, n := range all {
		a.mark(ctx, n, taintDeleted, corev1.TaintEffectNoSchedule, false)
		a.mark(ctx, n, taintCandidate, corev1.TaintEffectPreferNoSchedule, false)
	}
	a.cleaned = err == nil
}
