package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"kubistro/internal/checker"
	"kubistro/internal/lab"
	"kubistro/internal/session/stream"
)

const recordReach = 5000 // newest frames that a check over the record sees

// world is what the checks of one exercise look at. Without a cluster every
// look at it fails, so that the checks are unknown.
type world struct {
	l     *live
	r     *running  // may be nil
	live  bool      // read from the API server, not from the watch cache
	since uint64    // number of the last event before the exercise's start
	begun time.Time // when it started; zero: writes are told apart by number alone
	typed map[string]string
	// guests are the steady guests of the exercise; nil for one without.
	guests *guests
	left   bool // the exercise is done, so its guests don't come any more
}

var _ checker.World = (*world)(nil)

// Get is part of checker.Cluster.
func (w *world) Get(ctx context.Context, kind, namespace, name string) (map[string]any, error) {
	if w.r == nil {
		return nil, errNoCluster
	}
	if !w.live {
		o, err := w.r.watch.Cache().Get(kind, namespace, name)
		if !errors.Is(err, stream.ErrNotWatched) {
			return o, err
		}
	}
	res, err := w.resource(kind, namespace)
	if res == nil || err != nil {
		return nil, err
	}
	o, err := res.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", kind, name, err)
	}
	return o.Object, nil
}

// List is part of checker.Cluster.
func (w *world) List(ctx context.Context, kind, namespace, labelSelector string) ([]map[string]any, error) {
	if w.r == nil {
		return nil, errNoCluster
	}
	if !w.live {
		selector, err := labels.Parse(labelSelector)
		if err != nil {
			return nil, fmt.Errorf("label selector: %w", err)
		}
		list, err := w.r.watch.Cache().List(kind, namespace, selector)
		if !errors.Is(err, stream.ErrNotWatched) {
			return list, err
		}
	}
	res, err := w.resource(kind, namespace)
	if res == nil || err != nil {
		return nil, err
	}
	list, err := res.List(ctx, metav1.ListOptions{LabelSelector: labelSelector})
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	out := make([]map[string]any, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, list.Items[i].Object)
	}
	return out, nil
}

// resource finds the API of a kind ("Pod", "IngressRoute.traefik.io"); nil when
// the API server has no such kind.
func (w *world) resource(kind, namespace string) (dynamic.ResourceInterface, error) {
	for _, known := range stream.Resources() {
		if known.Kind == kind {
			return w.scoped(known.GroupVersionResource, known.Namespaced, namespace), nil
		}
	}
	name, group, _ := strings.Cut(kind, ".")
	gk := schema.GroupKind{Group: group, Kind: name}
	mapping, err := w.mapping(gk, group == "")
	if meta.IsNoMatchError(err) {
		w.r.mapper.Reset()
		mapping, err = w.mapping(gk, group == "")
	}
	if meta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("kind %s: %w", kind, err)
	}
	return w.scoped(mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, namespace), nil
}

// mapping looks a kind up; a plain one in the built-in groups.
func (w *world) mapping(gk schema.GroupKind, plain bool) (*meta.RESTMapping, error) {
	m, err := w.r.mapper.RESTMapping(gk)
	if err == nil || !plain || !meta.IsNoMatchError(err) {
		return m, err
	}
	for _, group := range []string{"apps", "batch", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "autoscaling", "storage.k8s.io", "scheduling.k8s.io", "apiextensions.k8s.io", "gateway.networking.k8s.io", "coordination.k8s.io", "admissionregistration.k8s.io"} {
		if m, err := w.r.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: gk.Kind}); err == nil {
			return m, nil
		}
	}
	return nil, err
}

func (w *world) scoped(gvr schema.GroupVersionResource, namespaced bool, namespace string) dynamic.ResourceInterface {
	if namespaced {
		return w.r.dynamic.Resource(gvr).Namespace(namespace)
	}
	return w.r.dynamic.Resource(gvr)
}

// Record is part of checker.Cluster.
func (w *world) Record(ctx context.Context) ([]lab.Event, error) {
	events, err := w.l.record.Since(ctx, w.since, recordReach)
	return withoutEarlierWrites(events, w.begun), err
}

// withoutEarlierWrites leaves out what was written before a time and told after it:
// the audit log of a busy cluster comes late, and the last writes of an exercise's
// setup are nothing that the learner did.
func withoutEarlierWrites(events []lab.Event, begun time.Time) []lab.Event {
	return slices.DeleteFunc(events, func(e lab.Event) bool { return e.Type == lab.EventAudit && e.Time.Before(begun) })
}

// Answer is part of checker.Learner.
func (w *world) Answer(_ context.Context, check string) (string, bool) {
	a, ok := w.typed[check]
	return a, ok
}

// File is part of checker.Learner.
func (w *world) File(_ context.Context, path string) ([]byte, error) {
	data, _, err := w.l.home.read(path)
	return data, err
}
