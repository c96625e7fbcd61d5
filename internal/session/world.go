package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
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

const (
	requestTimeout = 2 * time.Second
	requestBody    = 64 << 10
	recordReach    = 5000 // newest frames that a check over the record sees
)

// world is what the checks of one exercise look at. Without a cluster every
// look at it fails, so that the checks are unknown.
type world struct {
	l     *live
	r     *running // may be nil
	live  bool     // read from the API server, not from the watch cache
	since uint64   // number of the last event before the exercise's start
	typed map[string]string
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

// Request is part of checker.Cluster.
func (w *world) Request(ctx context.Context, q checker.Request) (checker.Response, error) {
	if w.r == nil {
		return checker.Response{}, errNoCluster
	}
	timeout, method := q.Timeout, q.Method
	if timeout == 0 {
		timeout = requestTimeout
	}
	if method == "" {
		method = http.MethodGet
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, q.URL, strings.NewReader(q.Body))
	if err != nil {
		return checker.Response{}, fmt.Errorf("request: %w", err)
	}
	for k, v := range q.Headers {
		if strings.EqualFold(k, "Host") {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	client := &http.Client{
		Transport:     &http.Transport{DialContext: w.r.instance.Dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return w.failure(parent, ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, requestBody))
	if err != nil {
		return w.failure(parent, ctx, err)
	}
	out := checker.Response{Code: resp.StatusCode, Body: string(body), Headers: map[string]string{}}
	for k, v := range resp.Header {
		out.Headers[k] = v[0]
	}
	return out, nil
}

// failure tells what a guest would have seen apart from what the lab couldn't do.
func (w *world) failure(parent, ctx context.Context, err error) (checker.Response, error) {
	select {
	case <-w.r.instance.Lost():
		return checker.Response{}, errNoCluster.Because(err)
	default:
	}
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case parent.Err() != nil:
		return checker.Response{}, errNoCluster.Because(err)
	case errors.As(err, &dns) && !dns.IsTimeout:
		return checker.Response{Failure: "no such host"}, nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return checker.Response{Failure: "refused"}, nil
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return checker.Response{Failure: "reset"}, nil
	case ctx.Err() != nil, errors.As(err, &netErr) && netErr.Timeout():
		return checker.Response{Failure: "timeout"}, nil
	}
	return checker.Response{Failure: "failed"}, nil
}

// Record is part of checker.Cluster.
func (w *world) Record(ctx context.Context) ([]lab.Event, error) {
	return w.l.record.Since(ctx, w.since, recordReach)
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
