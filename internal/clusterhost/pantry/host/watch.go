package host

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// retryStart is the pause after a configuration of the client failed.
const retryStart = time.Second

// sliceIndex finds the EndpointSlices of a Service by namespace/name.
const sliceIndex = "service"

// kind is what the informers of one resource hold: one informer for the whole
// cluster, or one for each namespace that a flag names.
type kind struct{ stores []cache.Indexer }

// get returns an object by key (namespace/name, or name).
func get[T runtime.Object](k *kind, namespace, name string) (found T, ok bool) {
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	for _, s := range k.stores {
		if o, exists, err := s.GetByKey(key); err == nil && exists {
			found, ok = o.(T)
			return found, ok
		}
	}
	return found, false
}

// all returns the objects in the order of their keys.
func all[T runtime.Object](k *kind) []T {
	var keys []string
	byKey := map[string]T{}
	for _, s := range k.stores {
		for _, key := range s.ListKeys() {
			if o, exists, err := s.GetByKey(key); err == nil && exists {
				keys = append(keys, key)
				byKey[key] = o.(T)
			}
		}
	}
	slices.Sort(keys)
	out := make([]T, len(keys))
	for i, key := range keys {
		out[i] = byKey[key]
	}
	return out
}

// world is what the controller knows of the cluster.
type world struct {
	clients
	services, endpoints, secrets, nodes kind
	ingresses, ingressClasses           kind
	classes, gateways, routes, grants   kind
	namespaces                          kind

	base, gateway []cache.DoneChecker // what has to be there before the first configuration
}

// resource says how a kind is watched.
type resource struct {
	into       *kind
	client     rest.Interface
	name       string
	example    runtime.Object
	namespaces []string
	selector   string
	same       func(old, new any) bool // nil: every change counts
	gateway    bool
}

// watch connects to the API and keeps the configuration up to date until ctx ends.
func (c *controller) watch(ctx context.Context) {
	var a *api
	for pause := retryStart; ; pause = min(2*pause, time.Minute) {
		var err error
		if a, err = newAPI(c.env, c.opts); err == nil {
			break
		}
		c.log.error("Provider connection error, retrying in "+pause.String(), "error", err)
		timer := c.env.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
	defer a.close()
	w := &world{}
	var err error
	if w.clients, err = a.clients(); err != nil {
		c.log.error("Cannot connect to Provider", "error", err)
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, r := range w.resources(c.opts) {
		c.inform(ctx, &wg, w, r)
	}
	if !synced(ctx, w.base) {
		return
	}
	wg.Go(func() { // its kinds may be missing for good: the rest doesn't wait for it
		if len(w.gateway) > 0 && synced(ctx, w.gateway) {
			c.changed()
		}
	})
	c.changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.dirty:
		}
		c.rebuild(ctx, w)
		timer := c.env.Clock.NewTimer(c.opts.throttle)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

func (w *world) resources(o options) []resource {
	all := []string{metav1.NamespaceAll}
	spaces := func(names []string) []string {
		if len(names) == 0 {
			return all
		}
		return names
	}
	both := spaces(slices.Concat(o.ingressNamespaces, o.gatewayNamespaces))
	if o.ingress && len(o.ingressNamespaces) == 0 || o.gateway && len(o.gatewayNamespaces) == 0 {
		both = all
	}
	slices.Sort(both)
	both = slices.Compact(both)
	out := []resource{
		{into: &w.services, client: w.core, name: "services", example: &corev1.Service{}, namespaces: both},
		{into: &w.endpoints, client: w.discovery, name: "endpointslices", example: &discoveryv1.EndpointSlice{}, namespaces: both},
		{into: &w.secrets, client: w.core, name: "secrets", example: &corev1.Secret{}, namespaces: both, same: sameSecret},
	}
	if !o.ingress && !o.gateway {
		return nil
	}
	if o.ingress {
		out = append(out,
			resource{into: &w.ingresses, client: w.networking, name: "ingresses", example: &networkingv1.Ingress{}, namespaces: spaces(o.ingressNamespaces), selector: o.ingressSelector},
			resource{into: &w.ingressClasses, client: w.networking, name: "ingressclasses", example: &networkingv1.IngressClass{}, namespaces: all})
	}
	if o.publishedService != "" || o.gatewayService != "" {
		out = append(out, resource{into: &w.nodes, client: w.core, name: "nodes", example: &corev1.Node{}, namespaces: all, same: sameNode})
	}
	if o.gateway {
		for _, r := range []resource{
			{into: &w.classes, client: w.clients.gateway, name: "gatewayclasses", example: &gatewayv1.GatewayClass{}, namespaces: all},
			{into: &w.gateways, client: w.clients.gateway, name: "gateways", example: &gatewayv1.Gateway{}, namespaces: spaces(o.gatewayNamespaces)},
			{into: &w.routes, client: w.clients.gateway, name: "httproutes", example: &gatewayv1.HTTPRoute{}, namespaces: spaces(o.gatewayNamespaces), selector: o.gatewaySelector},
			{into: &w.grants, client: w.clients.gateway, name: "referencegrants", example: &gatewayv1.ReferenceGrant{}, namespaces: spaces(o.gatewayNamespaces)},
			{into: &w.namespaces, client: w.core, name: "namespaces", example: &corev1.Namespace{}, namespaces: all, same: sameLabels},
		} {
			r.gateway = true
			out = append(out, r)
		}
	}
	return out
}

// inform starts the informers of a resource.
func (c *controller) inform(ctx context.Context, wg *sync.WaitGroup, w *world, r resource) {
	for _, ns := range r.namespaces {
		lw := cache.NewFilteredListWatchFromClient(r.client, r.name, ns, func(o *metav1.ListOptions) { o.LabelSelector = r.selector })
		indexers := cache.Indexers{}
		if r.into == &w.endpoints {
			indexers[sliceIndex] = bySlice
		}
		inf := cache.NewSharedIndexInformer(lw, r.example, 0, indexers)
		inf.SetTransform(trim)
		inf.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			if ctx.Err() == nil && !isEnd(err) {
				c.log.error("Failed to watch", "resource", r.name, "error", err)
			}
		})
		h, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { c.changed() },
			DeleteFunc: func(any) { c.changed() },
			UpdateFunc: func(old, new any) {
				if r.same == nil || !r.same(old, new) {
					c.changed()
				}
			},
		})
		if err != nil {
			c.log.error("Failed to watch", "resource", r.name, "error", err)
			continue
		}
		r.into.stores = append(r.into.stores, inf.GetIndexer())
		if r.gateway {
			w.gateway = append(w.gateway, h.HasSyncedChecker())
		} else {
			w.base = append(w.base, h.HasSyncedChecker())
		}
		wg.Go(func() { inf.RunWithContext(ctx) })
	}
}

// rebuild makes the configuration anew and writes status.
func (c *controller) rebuild(ctx context.Context, w *world) {
	defer func() {
		if p := recover(); p != nil && ctx.Err() == nil {
			c.log.error("Recovered from a panic while making the configuration", "error", p, "stack", string(debug.Stack()))
		}
	}()
	b := &builder{c: c, w: w, cfg: &config{entries: map[string]*table{}}}
	for name := range c.opts.entryPoints {
		b.cfg.entries[name] = &table{}
	}
	if c.opts.ingress {
		b.addIngresses()
	}
	if c.opts.gateway && done(w.gateway) {
		b.addGateways()
	}
	b.cfg.order()
	c.current.Store(b.cfg)
	c.ready.Store(true)
	c.log.built()
	b.writeStatus(ctx)
}

func synced(ctx context.Context, checkers []cache.DoneChecker) bool {
	for _, d := range checkers {
		select {
		case <-ctx.Done():
			return false
		case <-d.Done():
		}
	}
	return true
}

func done(checkers []cache.DoneChecker) bool {
	for _, d := range checkers {
		if !cache.IsDone(d) {
			return false
		}
	}
	return true
}

// trim drops what isn't needed here: field managers, and of Secrets all but certificates.
func trim(o any) (any, error) {
	if a, err := meta.Accessor(o); err == nil {
		a.SetManagedFields(nil)
	}
	if s, ok := o.(*corev1.Secret); ok {
		kept := map[string][]byte{}
		for _, k := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if v, ok := s.Data[k]; ok {
				kept[k] = v
			}
		}
		s.Data, s.Annotations = kept, nil
	}
	return o, nil
}

func bySlice(o any) ([]string, error) {
	s, ok := o.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, fmt.Errorf("%T is no EndpointSlice", o)
	}
	return []string{s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]}, nil
}

func sameSecret(old, new any) bool {
	return equality.Semantic.DeepEqual(old.(*corev1.Secret).Data, new.(*corev1.Secret).Data)
}

// sameNode: a node's heartbeat changes nothing here.
func sameNode(old, new any) bool {
	return equality.Semantic.DeepEqual(old.(*corev1.Node).Status.Addresses, new.(*corev1.Node).Status.Addresses)
}

func sameLabels(old, new any) bool {
	return equality.Semantic.DeepEqual(old.(*corev1.Namespace).Labels, new.(*corev1.Namespace).Labels)
}
