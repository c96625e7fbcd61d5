package cleanup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

const (
	pause   = 100 * time.Millisecond // between two rounds
	tooMany = 1500                   // objects to remove; a fresh cluster is faster
	rounds  = 25                     // then what is left won't go; about 5 s where the machine isn't overloaded
)

// hooks are what can refuse or divert every other request; they go first.
var hooks = []schema.GroupVersionResource{
	// Policies first: nothing can refuse their deletion, and they can refuse that of webhook configurations.
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	// Policies are forgotten a moment after they are gone and may still refuse the others; the rounds come back to them.
	apiServices,
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Restore makes the cluster what it was when Keep looked. It works in rounds
// until nothing is left to do; when that takes too many or ctx ends, or when it meets what it
// can't mend, the error says what is left. Nodes that own doesn't know aren't the new cluster's: they
// are let be, there or not. A nil own knows all.
func Restore(ctx context.Context, cfg *rest.Config, path string, own func(node string) bool, log *slog.Logger) error {
	baseline, err := read(path)
	if err != nil {
		return err
	}
	for key := range baseline {
		if key.resource == "nodes" && own != nil && !own(key.name) {
			delete(baseline, key)
		}
	}
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	c.own = own
	if err := c.unhook(ctx, baseline); err != nil {
		return err
	}
	for round := 1; ; round++ {
		left, err := c.round(ctx, baseline)
		if err == nil && len(left) == 0 {
			c.forgetEvents(ctx)
			log.Debug("cluster cleaned", "rounds", round)
			return nil
		}
		var hopeless *hopelessError
		if errors.As(err, &hopeless) {
			return err
		}
		if round < rounds {
			select {
			case <-time.After(pause):
				continue
			case <-ctx.Done():
			}
		}
		return errors.Join(fmt.Errorf("cleanup: not clean after %d rounds, %d objects left, the first %v", round, len(left), first(left)), err)
	}
}

func first(left []id) string {
	if len(left) == 0 {
		return "unknown"
	}
	return left[0].String()
}

// hopelessError is a state that rounds can't mend.
type hopelessError struct{ reason string }

func (e *hopelessError) Error() string { return "cleanup: " + e.reason }

func (c *client) unhook(ctx context.Context, baseline map[id]original) error {
	for _, gvr := range hooks {
		list, err := c.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // not served by this version
		} else if err != nil {
			return fmt.Errorf("cleanup: list %s: %w", gvr.Resource, err)
		}
		for i := range list.Items {
			name := list.Items[i].GetName()
			if _, ours := baseline[id{gvr.Group, gvr.Resource, "", name}]; ours {
				continue
			}
			err := c.remove(ctx, item{id: id{gvr.Group, gvr.Resource, "", name}, version: gvr.Version, object: &list.Items[i]})
			if err != nil && !apierrors.IsForbidden(err) {
				return err
			}
		}
	}
	return nil
}

// round looks at everything once, mends what it can and returns what wasn't in order.
func (c *client) round(ctx context.Context, baseline map[id]original) ([]id, error) {
	all, err := c.inventory(ctx)
	if err != nil {
		return nil, err
	}
	present := make(map[id]item, len(all))
	var extra, pods, left []item
	for _, i := range all {
		present[i.id] = i
		if _, ours := baseline[i.id]; ours || i.transient() || i.id.resource == "nodes" && c.own != nil && !c.own(i.id.name) {
			continue
		}
		if i.id.resource == "pods" {
			pods = append(pods, i)
			continue
		}
		extra = append(extra, i)
	}
	if len(extra)+len(pods) > tooMany {
		return nil, &hopelessError{fmt.Sprintf("%d objects are too many to remove one by one", len(extra)+len(pods))}
	}
	left = append(append(left, extra...), pods...)
	err = errors.Join(c.removeAll(ctx, extra), c.removeAll(ctx, pods), c.finalizeEmpty(ctx, extra, all))
	names := make([]id, 0, len(left))
	for _, i := range left {
		names = append(names, i.id)
	}
	for key, o := range baseline {
		now, there := present[key]
		if there && key.resource == "nodes" {
			ok, e := c.mendNode(ctx, o, now)
			if err = errors.Join(err, e); !ok {
				names = append(names, key)
			}
			continue
		}
		if there && (hash(now.object) == o.Hash || key.resource == "pods") && now.object.GetDeletionTimestamp() == nil {
			continue
		}
		if !there && key.resource == "nodes" {
			return nil, &hopelessError{"node " + key.name + " is gone"}
		}
		if key.resource == "pods" && !there {
			continue // the control plane's own Pods come back by themselves
		}
		names = append(names, key)
		err = errors.Join(err, c.restore(ctx, o, now.object))
	}
	return names, err
}

func (c *client) removeAll(ctx context.Context, items []item) error {
	var mu sync.Mutex
	var all error
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for _, i := range items {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := c.remove(ctx, i); err != nil {
				mu.Lock()
				all = errors.Join(all, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all
}

// remove deletes an object at once, and takes the finalizers away that nobody serves.
func (c *client) remove(ctx context.Context, i item) error {
	api := c.of(i)
	if i.object.GetDeletionTimestamp() == nil {
		now, policy := int64(0), metav1.DeletePropagationBackground
		err := api.Delete(ctx, i.id.name, metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &policy})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("cleanup: delete %s: %w", i.id, err)
		}
	}
	if len(i.object.GetFinalizers()) == 0 || i.id.resource == "customresourcedefinitions" {
		return nil
	}
	_, err := api.Patch(ctx, i.id.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("cleanup: finalizers of %s: %w", i.id, err)
	}
	return nil
}

// restore brings an object of the new cluster back.
func (c *client) restore(ctx context.Context, o original, now *unstructured.Unstructured) error {
	key := id{o.Group, o.Resource, o.Namespace, o.Name}
	if o.Object == nil {
		if now == nil {
			return &hopelessError{key.String() + " is gone"}
		}
		return &hopelessError{key.String() + " was changed"}
	}
	if now != nil && now.GetDeletionTimestamp() != nil {
		return c.remove(ctx, item{id: key, version: o.Version, object: now})
	}
	api := c.of(item{id: key, version: o.Version})
	want := &unstructured.Unstructured{Object: o.Object}
	want = want.DeepCopy()
	if now == nil {
		_, err := api.Create(ctx, want, metav1.CreateOptions{FieldManager: "kubistro-lab"})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cleanup: restore %s: %w", key, err)
		}
		return nil
	}
	want.SetResourceVersion(now.GetResourceVersion())
	_, err := api.Update(ctx, want, metav1.UpdateOptions{FieldManager: "kubistro-lab"})
	if apierrors.IsInvalid(err) {
		return c.remove(ctx, item{id: key, version: o.Version, object: now})
	}
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cleanup: restore %s: %w", key, err)
	}
	return nil
}

// forgetEvents empties the lists that kubectl get events shows.
func (c *client) forgetEvents(ctx context.Context) {
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	namespaces, err := c.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, ns := range namespaces.Items {
		if !system(ns.GetName()) {
			// Old Events are a blemish, not a fault of the start state.
			_ = c.dynamic.Resource(events).Namespace(ns.GetName()).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		}
	}
}
