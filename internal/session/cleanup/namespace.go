package cleanup

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// leftovers are what the cluster itself keeps in every namespace.
var leftovers = []schema.GroupVersionResource{
	{Version: "v1", Resource: "events"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "serviceaccounts"},
}

// finalizeEmpty ends those of the namespaces that are terminating and hold
// nothing of the learner's any more. The namespace controller would do so too, but waits ever longer
// while a dead APIService breaks its discovery.
func (c *client) finalizeEmpty(ctx context.Context, extra, all []item) error {
	content := map[string]int{}
	for _, i := range all {
		if i.id.namespace != "" && !i.transient() {
			content[i.id.namespace]++
		}
	}
	var failed error
	for _, i := range extra {
		if i.id.resource == "namespaces" && i.object.GetDeletionTimestamp() != nil && content[i.id.name] == 0 {
			failed = errors.Join(failed, c.finalize(ctx, i.object))
		}
	}
	return failed
}

func (c *client) finalize(ctx context.Context, namespace *unstructured.Unstructured) error {
	name := namespace.GetName()
	for _, gvr := range leftovers {
		err := c.dynamic.Resource(gvr).Namespace(name).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cleanup: empty namespace %s: %w", name, err)
		}
	}
	end := namespace.DeepCopy()
	unstructured.RemoveNestedField(end.Object, "spec", "finalizers")
	_, err := c.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Update(ctx, end, metav1.UpdateOptions{}, "finalize")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("cleanup: finalize namespace %s: %w", name, err)
	}
	return nil
}
