package vnet

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/informers"

	"kubistro/internal/clusterhost/street"
)

// StreetTable is the public name service of the world before the cluster, as its owner would
// have set it up: the hosts of Ingresses lead to the addresses in their status, those of Gateways and their routes to
// the Gateway's. It is safe for concurrent use.
type StreetTable struct {
	gateways func(ctx context.Context) []street.Door

	mu        sync.RWMutex
	ingresses map[objectKey]street.Door
}

// NewStreetTable fills a table from the Ingresses of a shared informer factory. The
// caller starts and stops the factory. gateways lists the doors of Gateways; it is asked when a name is looked
// up, so that a cluster without Gateway API watches nothing. Nil: there are none.
func NewStreetTable(factory informers.SharedInformerFactory, gateways func(ctx context.Context) []street.Door) *StreetTable {
	t := newStreetTable()
	t.gateways = gateways
	follow(factory.Networking().V1().Ingresses().Informer(), t.setIngress, t.deleteIngress)
	return t
}

func newStreetTable() *StreetTable {
	return &StreetTable{ingresses: make(map[objectKey]street.Door)}
}

func (t *StreetTable) setIngress(o *networkingv1.Ingress) {
	d := street.OfIngress(o)
	t.mu.Lock()
	t.ingresses[objectKey{o.Namespace, o.Name}] = d
	t.mu.Unlock()
}

func (t *StreetTable) deleteIngress(o *networkingv1.Ingress) {
	t.mu.Lock()
	delete(t.ingresses, objectKey{o.Namespace, o.Name})
	t.mu.Unlock()
}

// doors lists those of Ingresses and Gateways.
func (t *StreetTable) doors(ctx context.Context) []street.Door {
	var doors []street.Door
	if t.gateways != nil {
		doors = slices.Clone(t.gateways(ctx))
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.AppendSeq(doors, maps.Values(t.ingresses))
}

func distinct(ips []netip.Addr) []netip.Addr {
	slices.SortFunc(ips, netip.Addr.Compare)
	return slices.Compact(ips)
}

// SetStreet makes the names of Ingresses and Gateways known outside; nil takes them away.
func (n *Network) SetStreet(t *StreetTable) {
	n.mu.Lock()
	n.street = t
	n.mu.Unlock()
}

// DialStreet connects as somebody who isn't in the cluster: to nodes by address or name, and to
// addresses of load balancers. Other addresses have no route from outside. A host name leads where
// the Ingresses and Gateways that name it are; any other name with a dot leads to the one entrance that there is (of
// all of these, else of the only load balancer), as a wildcard record would. Errors are those of DialContext.
func (i *Interface) DialStreet(ctx context.Context, address string) (net.Conn, error) {
	fail := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fail(err)
	}
	if _, err := parsePort(service); err != nil {
		return nil, fail(err)
	}
	var ips []netip.Addr
	if ip, err := netip.ParseAddr(host); err == nil {
		ips = []netip.Addr{ip.Unmap().WithZone("")}
	} else if ips = i.stack.net.streetLookup(ctx, host); len(ips) == 0 {
		return nil, fail(&net.DNSError{Err: "no such host", Name: host, IsNotFound: true})
	}
	var first error
	for _, ip := range ips {
		if !i.stack.net.public(ip) {
			err = fail(os.NewSyscallError("connect", syscall.EHOSTUNREACH))
		} else {
			var c net.Conn
			if c, err = i.DialContext(ctx, "tcp", net.JoinHostPort(ip.String(), service)); err == nil {
				return c, nil
			}
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// streetLookup resolves a name outside.
func (n *Network) streetLookup(ctx context.Context, host string) []netip.Addr {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	n.mu.Lock()
	names, services := n.street, n.services
	n.mu.Unlock()
	var balancers []netip.Addr
	if services != nil {
		var node netip.Addr
		if node, balancers = services.outside(host); node.IsValid() {
			return []netip.Addr{node}
		}
	}
	var own []street.Door
	if names != nil {
		own = names.doors(ctx)
	}
	return street.Lookup(host, own, balancers)
}

// outside is what of the cluster is known outside: a node's address by name, and those of
// all load balancers.
func (t *ServiceTable) outside(host string) (node netip.Addr, doors []netip.Addr) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, s := range t.services {
		doors = append(doors, s.otherIPs...)
	}
	return t.nodes[host].ip, distinct(doors)
}

// public reports whether an address can be reached from outside.
func (n *Network) public(ip netip.Addr) bool {
	n.mu.Lock()
	s, services := n.byIP[ip], n.services
	node := s != nil && s.node
	n.mu.Unlock()
	if node || services == nil {
		return node
	}
	_, doors := services.outside("")
	return slices.Contains(doors, ip)
}
