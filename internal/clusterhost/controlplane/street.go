package controlplane

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"kubistro/internal/clusterhost/vnet"
)

// streetNews is how long the street believes what it heard of Gateways; a guest who comes
// later asks again.
const streetNews = time.Second

var (
	gateways   = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}
	httpRoutes = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}
)

// gatewayDoors lists where the hosts of Gateways and HTTPRoutes lead. It asks the API server while
// somebody looks names up, and not more often than once a second: the kinds come and go with
// their CRDs, and most clusters never have them.
type gatewayDoors struct {
	mu     sync.Mutex
	client dynamic.Interface // nil until there is an API server to ask
	asked  time.Time
	doors  []vnet.StreetDoor
}

// ask says whom list asks.
func (g *gatewayDoors) ask(c *rest.Config) (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.client, err = dynamic.NewForConfig(c)
	return err
}

func (g *gatewayDoors) list(ctx context.Context) []vnet.StreetDoor {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.client == nil || time.Since(g.asked) < streetNews {
		return g.doors
	}
	ctx, cancel := context.WithTimeout(ctx, streetNews)
	defer cancel()
	gws, err := g.client.Resource(gateways).List(ctx, metav1.ListOptions{})
	if err != nil {
		if ctx.Err() == nil {
			g.asked, g.doors = time.Now(), nil // mostly: there is no such kind
		}
		return g.doors
	}
	var routes []unstructured.Unstructured
	if list, err := g.client.Resource(httpRoutes).List(ctx, metav1.ListOptions{}); err == nil {
		routes = list.Items
	}
	g.asked, g.doors = time.Now(), doorsOf(gws.Items, routes)
	return g.doors
}

// What the street reads of Gateway API.
type (
	gatewayObject struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Listeners []struct {
				Hostname string `json:"hostname"`
			} `json:"listeners"`
		} `json:"spec"`
		Status struct {
			Addresses []struct {
				Type  string `json:"type"`
				Value string `json:"value"`
			} `json:"addresses"`
		} `json:"status"`
	}
	routeObject struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Hostnames  []string `json:"hostnames"`
			ParentRefs []struct {
				Kind      string `json:"kind"`
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
			} `json:"parentRefs"`
		} `json:"spec"`
	}
)

func doorsOf(gws, routes []unstructured.Unstructured) []vnet.StreetDoor {
	at := map[string]*vnet.StreetDoor{} // by namespace/name of the Gateway
	for _, o := range gws {
		var g gatewayObject
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &g) != nil {
			continue
		}
		d := &vnet.StreetDoor{}
		for _, a := range g.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Value); err == nil {
				d.IPs = append(d.IPs, ip.Unmap())
			}
		}
		for _, l := range g.Spec.Listeners {
			if l.Hostname != "" {
				d.Hosts = append(d.Hosts, strings.ToLower(l.Hostname))
			}
		}
		at[g.Namespace+"/"+g.Name] = d
	}
	for _, o := range routes {
		var r routeObject
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &r) != nil {
			continue
		}
		for _, p := range r.Spec.ParentRefs {
			if p.Namespace == "" {
				p.Namespace = r.Namespace
			}
			d := at[p.Namespace+"/"+p.Name]
			if d == nil || p.Kind != "" && p.Kind != "Gateway" {
				continue
			}
			for _, h := range r.Spec.Hostnames {
				d.Hosts = append(d.Hosts, strings.ToLower(h))
			}
		}
	}
	var out []vnet.StreetDoor
	for _, d := range at {
		out = append(out, *d)
	}
	return out
}
