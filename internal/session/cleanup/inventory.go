package cleanup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// atOnce is how many requests run at the same time.
const atOnce = 8

type client struct {
	dynamic   dynamic.Interface
	discovery *discovery.DiscoveryClient
	own       func(node string) bool // nil: all nodes are
}

func newClient(cfg *rest.Config) (*client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, 0
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cleanup: client: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cleanup: client: %w", err)
	}
	return &client{dynamic: dyn, discovery: disco}, nil
}

// item is an object of the cluster now.
type item struct {
	id         id
	version    string
	namespaced bool
	object     *unstructured.Unstructured
}

func (i item) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: i.id.group, Version: i.version, Resource: i.id.resource}
}

// kinds are the resources whose objects can be listed and deleted. Groups that
// can't be discovered (an APIService that points nowhere) are left out.
func (c *client) kinds() ([]item, error) {
	lists, err := c.discovery.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("cleanup: discovery: %w", err)
	}
	var out []item
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || selfMade(gv.Group, r.Name) {
				continue
			}
			out = append(out, item{id: id{group: gv.Group, resource: r.Name}, version: gv.Version, namespaced: r.Namespaced})
		}
	}
	return out, nil
}

// selfMade kinds come and go by the cluster's own doing.
func selfMade(group, resource string) bool {
	switch group + "/" + resource {
	case "/events", "events.k8s.io/events", "/endpoints", "discovery.k8s.io/endpointslices", "coordination.k8s.io/leases",
		"apps/controllerrevisions", "networking.k8s.io/ipaddresses", "storage.k8s.io/csinodes", "storage.k8s.io/csistoragecapacities",
		"flowcontrol.apiserver.k8s.io/flowschemas", "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
		"/componentstatuses", "coordination.k8s.io/leasecandidates", "certificates.k8s.io/certificatesigningrequests":
		return true
	}
	return group == "metrics.k8s.io"
}

// inventory lists every object of every kind.
func (c *client) inventory(ctx context.Context) ([]item, error) {
	kinds, err := c.kinds()
	if err != nil {
		return nil, err
	}
	return c.list(ctx, kinds)
}

func (c *client) list(ctx context.Context, kinds []item) ([]item, error) {
	var mu sync.Mutex
	var all []item
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, k := range kinds {
		g.Go(func() error {
			list, err := c.dynamic.Resource(k.gvr()).List(ctx, metav1.ListOptions{})
			switch {
			case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
				return nil // its definition has just gone
			case err != nil:
				return fmt.Errorf("cleanup: list %s: %w", k.id.resource, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range list.Items {
				o := &list.Items[i]
				v := k
				v.id.namespace, v.id.name, v.object = o.GetNamespace(), o.GetName(), o
				all = append(all, v)
			}
			return nil
		})
	}
	return all, g.Wait()
}

// transient objects are made by the cluster's own parts: they are neither
// restored nor, in the system's namespaces, removed.
func (i item) transient() bool {
	if i.id.resource == "configmaps" {
		switch i.id.name {
		case "kube-root-ca.crt", "extension-apiserver-authentication", "kube-apiserver-legacy-service-account-token-tracking":
			return true
		}
	}
	if i.id.resource == "serviceaccounts" && i.id.name == "default" {
		return true
	}
	if i.id.namespace == "local-path-storage" && i.id.resource == "pods" && strings.HasPrefix(i.id.name, "helper-pod-") {
		return true // removes the data of a claim and goes by itself
	}
	return system(i.id.namespace) && metav1.GetControllerOf(i.object) != nil
}

func system(namespace string) bool {
	switch namespace {
	case "kube-system", "kube-public", "kube-node-lease", "local-path-storage":
		return true
	}
	return false
}

// of is the API for one object.
func (c *client) of(i item) dynamic.ResourceInterface {
	if i.id.namespace != "" {
		return c.dynamic.Resource(i.gvr()).Namespace(i.id.namespace)
	}
	return c.dynamic.Resource(i.gvr())
}
