package cleanup

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// mendNode brings a node's labels, taints and schedulability back. ok: it was
// in order already and is Ready.
func (c *client) mendNode(ctx context.Context, o original, now item) (ok bool, err error) {
	var was, is corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &was); err != nil {
		return false, fmt.Errorf("cleanup: node %s: %w", o.Name, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(now.object.Object, &is); err != nil {
		return false, fmt.Errorf("cleanup: node %s: %w", o.Name, err)
	}
	if is.DeletionTimestamp != nil {
		return false, &hopelessError{"node " + o.Name + " is being deleted"}
	}
	labels := map[string]any{}
	for k, v := range was.Labels {
		if is.Labels[k] != v {
			labels[k] = v
		}
	}
	for k := range is.Labels {
		if _, ours := was.Labels[k]; !ours {
			labels[k] = nil
		}
	}
	taints := wanted(was.Spec.Taints, is.Spec.Taints)
	if len(labels) == 0 && is.Spec.Unschedulable == was.Spec.Unschedulable && sameTaints(taints, is.Spec.Taints) {
		return readyNode(is), nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": labels, "resourceVersion": is.ResourceVersion},
		"spec":     map[string]any{"unschedulable": was.Spec.Unschedulable, "taints": taints},
	})
	if err != nil {
		return false, fmt.Errorf("cleanup: node %s: %w", o.Name, err)
	}
	_, err = c.of(now).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsConflict(err) {
		return false, fmt.Errorf("cleanup: node %s: %w", o.Name, err)
	}
	return false, nil
}

// wanted taints are the original ones and those that controllers keep by the node's condition.
func wanted(was, is []corev1.Taint) []corev1.Taint {
	out := []corev1.Taint{}
	for _, t := range was {
		if !condition(t) {
			out = append(out, t)
		}
	}
	for _, t := range is {
		if condition(t) && t.Key != corev1.TaintNodeUnschedulable {
			out = append(out, t)
		}
	}
	return out
}

func condition(t corev1.Taint) bool {
	return strings.HasPrefix(t.Key, "node.kubernetes.io/")
}

func sameTaints(a, b []corev1.Taint) bool {
	if len(a) != len(b) {
		return false
	}
	seen := map[corev1.Taint]int{}
	for i := range a {
		x, y := a[i], b[i]
		x.TimeAdded, y.TimeAdded = nil, nil
		seen[x]++
		seen[y]--
	}
	for _, n := range seen {
		if n != 0 {
			return false
		}
	}
	return true
}

func readyNode(n corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
