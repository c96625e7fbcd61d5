package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"kubistro/internal/session/stream"
)

// manifests reads the objects of an exercise's start state, in order.
func manifests(files fs.FS, paths []string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, path := range paths {
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, fmt.Errorf("session: start state: %w", err)
		}
		dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			o := &unstructured.Unstructured{}
			if err := dec.Decode(o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("session: start state: %s: %w", path, err)
			}
			if len(o.Object) > 0 {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// apply makes the objects exist as they are written. Something in the way
// that can't be changed into them is removed first.
func (r *running) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := r.applyOne(ctx, o); err != nil {
			return fmt.Errorf("session: apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func (r *running) applyOne(ctx context.Context, o *unstructured.Unstructured) error {
	const tries, pause = 40, 100 * time.Millisecond
	var err error
	for try := range tries {
		var res dynamic.ResourceInterface
		if res, err = r.of(o); err == nil {
			_, err = res.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: stream.LabUserAgent, Force: true})
			if err == nil {
				return nil
			}
			if apierrors.IsInvalid(err) && try == 0 {
				err = res.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
			} else if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
				return err
			}
		}
		if meta.IsNoMatchError(err) {
			r.mapper.Reset()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
	return err
}

// of finds the API of an object.
func (r *running) of(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	m, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() != meta.RESTScopeNameNamespace {
		return r.dynamic.Resource(m.Resource), nil
	}
	ns := o.GetNamespace()
	if ns == "" {
		ns = metav1.NamespaceDefault
		o.SetNamespace(ns)
	}
	return r.dynamic.Resource(m.Resource).Namespace(ns), nil
}
