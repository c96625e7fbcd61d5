package session

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kubistro/internal/checker"
	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// Allowed is part of checker.Inside. A review is answered and not stored.
func (w *world) Allowed(ctx context.Context, a checker.Access) (bool, error) {
	if w.r == nil {
		return false, errNoCluster
	}
	namespace := a.Namespace
	if namespace == checker.AllNamespaces {
		namespace = ""
	}
	resource, subresource, _ := strings.Cut(a.Resource, "/")
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: a.User, Groups: append([]string{"system:authenticated"}, a.Groups...),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: a.Verb, Group: a.Group, Resource: resource, Subresource: subresource, Name: a.Name,
			},
		},
	}
	asked, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return false, fmt.Errorf("access review: %w", err)
	}
	gvr := authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews")
	answer, err := w.r.dynamic.Resource(gvr).Create(ctx, &unstructured.Unstructured{Object: asked}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("access review: %w", err)
	}
	allowed, _, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	if err != nil {
		return false, fmt.Errorf("access review: %w", err)
	}
	return allowed, nil
}

// Stored is part of checker.Inside.
func (w *world) Stored(ctx context.Context, key string) ([]byte, error) {
	if w.r == nil {
		return nil, errNoCluster
	}
	op, ok := w.r.instance.(cluster.StorageOperator)
	if !ok {
		return nil, errUnable
	}
	v, err := op.EtcdValue(ctx, key)
	switch {
	case err == nil && v.Value == nil:
		return []byte{}, nil
	case err == nil:
		return v.Value, nil
	case lab.AsError(err).Code == lab.CodeNotFound:
		return nil, nil
	}
	return nil, fmt.Errorf("etcd key %s: %w", key, err)
}
