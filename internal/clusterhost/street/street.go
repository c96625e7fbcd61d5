// Package street is the world before a learner's cluster, as the cluster's owner would have set it up: which
// names lead where. It holds the rules; who asks the cluster for its objects is up to the driver.
package street

import (
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds of Gateway API that have doors. They come and go with their CRDs.
var (
	Gateways   = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}
	HTTPRoutes = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}
)

// Door is an entrance that somebody set up: hosts (in lower case, *.example.com) that lead to addresses.
type Door struct {
	Hosts []string
	IPs   []netip.Addr
}

// Lookup resolves a name as somebody outside does: it leads where the doors that name it are; any other name with a
// dot leads to the one entrance that there is (of all doors, else of the only load balancer), as a
// wildcard record would. The cluster's own names mean nothing outside. Nodes' names are up to the caller.
func Lookup(host string, doors []Door, balancers []netip.Addr) []netip.Addr {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	var own, all []netip.Addr
	_, parent, _ := strings.Cut(host, ".")
	for _, d := range doors {
		all = append(all, d.IPs...)
		if slices.Contains(d.Hosts, host) || parent != "" && slices.Contains(d.Hosts, "*."+parent) {
			own = append(own, d.IPs...)
		}
	}
	own, all, balancers = distinct(own), distinct(all), distinct(slices.Clone(balancers))
	switch {
	case len(own) > 0:
		return own
	case !strings.Contains(host, ".") || host == zone || strings.HasSuffix(host, "."+zone) || strings.HasSuffix(host, ".svc"):
		return nil
	case len(all) > 0:
		return all
	case len(balancers) == 1:
		return balancers
	}
	return nil
}

const zone = "cluster.local"

func distinct(ips []netip.Addr) []netip.Addr {
	slices.SortFunc(ips, netip.Addr.Compare)
	return slices.Compact(ips)
}

// OfIngress is an Ingress' door.
func OfIngress(o *networkingv1.Ingress) Door {
	var d Door
	for _, r := range o.Spec.Rules {
		if r.Host != "" {
			d.Hosts = append(d.Hosts, strings.ToLower(r.Host))
		}
	}
	for _, in := range o.Status.LoadBalancer.Ingress {
		if ip, err := netip.ParseAddr(in.IP); err == nil {
			d.IPs = append(d.IPs, ip.Unmap())
		}
	}
	return d
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

// OfGateways are the doors of Gateways, with the hosts of their listeners and of the HTTPRoutes that name them.
func OfGateways(gws, routes []unstructured.Unstructured) []Door {
	at := map[string]*Door{} // by namespace/name of the Gateway
	for _, o := range gws {
		var g gatewayObject
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &g) != nil {
			continue
		}
		d := &Door{}
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
	var out []Door
	for _, d := range at {
		out = append(out, *d)
	}
	return out
}
