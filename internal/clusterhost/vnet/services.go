package vnet

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// ServiceTable is what kube-proxy and CoreDNS know of a cluster: Services,
// their EndpointSlices and the namespaces. Lookups go through indexes that are
// updated on events. It is safe for concurrent use.
type ServiceTable struct {
	now    func() time.Time
	synced func() bool

	mu         sync.RWMutex
	services   map[objectKey]*service
	slices     map[objectKey]map[string]*discoveryv1.EndpointSlice // of a Service, by name
	owner      map[objectKey]objectKey                             // the Service that a slice was filed under
	vips       map[netip.AddrPort]target
	vipCount   map[netip.Addr]int // ports by address; a known address refuses other ports
	nodePorts  map[uint16]target
	namespaces map[string]struct{}
}

// objectKey is a namespace and a name.
type objectKey struct{ namespace, name string }

// target is what an address of a Service stands for.
type target struct {
	service *service
	port    int // index into service.ports
}

// service is a Service with its endpoints; it is replaced, never changed.
type service struct {
	key          objectKey
	externalName string
	headless     bool
	clusterIPs   []netip.Addr
	otherIPs     []netip.Addr // load balancer and external addresses
	ports        []servicePort
	endpoints    []endpoint // of all slices, in the order of their names
	affinity     time.Duration
	sessions     *sessions
}

// servicePort is a port with the addresses that connections go to.
type servicePort struct {
	name     string
	protocol string // TCP, UDP, SCTP
	port     uint16
	nodePort uint16
	usable4  []netip.AddrPort // where connections go; TCP only
	usable6  []netip.AddrPort
}

// endpoint is one address of an EndpointSlice.
type endpoint struct {
	ip                          netip.Addr
	hostname                    string
	ready, serving, terminating bool
	ports                       []endpointPort
}

type endpointPort struct {
	name     string
	protocol string
	port     uint16
}

func newServiceTable() *ServiceTable {
	return &ServiceTable{
		now:        time.Now,
		synced:     func() bool { return true },
		services:   make(map[objectKey]*service),
		slices:     make(map[objectKey]map[string]*discoveryv1.EndpointSlice),
		owner:      make(map[objectKey]objectKey),
		vips:       make(map[netip.AddrPort]target),
		vipCount:   make(map[netip.Addr]int),
		nodePorts:  make(map[uint16]target),
		namespaces: make(map[string]struct{}),
	}
}

// HasSynced reports whether the table has everything that was there when its informers started.
func (t *ServiceTable) HasSynced() bool { return t.synced() }

// Ready reports whether a Service has an endpoint that connections can go to.
func (t *ServiceTable) Ready(namespace, name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.services[objectKey{namespace, name}]
	if s == nil {
		return false
	}
	for _, e := range s.endpoints {
		if e.ready || e.serving && e.terminating {
			return true
		}
	}
	return false
}

// translate is kube-proxy's work: found says that the address is a Service's; an
// invalid result means that the connection is rejected, for want of endpoints or
// because the Service has no such port.
func (t *ServiceTable) translate(client netip.Addr, to netip.AddrPort) (at netip.AddrPort, found bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	tg, ok := t.vips[to]
	if !ok {
		return netip.AddrPort{}, t.vipCount[to.Addr()] > 0
	}
	return tg.pick(client, to.Addr(), t.now()), true
}

// nodePort is translate for a port on a node's address.
func (t *ServiceTable) nodePort(client netip.Addr, node netip.AddrPort) (at netip.AddrPort, found bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	tg, ok := t.nodePorts[node.Port()]
	if !ok {
		return netip.AddrPort{}, false
	}
	return tg.pick(client, node.Addr(), t.now()), true
}

// pick chooses an endpoint of like's family, at random or by the client's affinity.
func (tg target) pick(client, like netip.Addr, now time.Time) netip.AddrPort {
	usable := tg.service.ports[tg.port].usable4
	if !like.Is4() {
		usable = tg.service.ports[tg.port].usable6
	}
	if len(usable) == 0 {
		return netip.AddrPort{}
	}
	random := func() netip.AddrPort { return usable[rand.IntN(len(usable))] }
	if tg.service.affinity == 0 {
		return random()
	}
	key := sessionKey{client, tg.service.ports[tg.port].port, like.Is4()}
	return tg.service.sessions.pick(key, usable, now, tg.service.affinity, random)
}

// setLocked enters or replaces a Service; nil takes it out.
func (t *ServiceTable) setLocked(key objectKey, s *service) {
	if old := t.services[key]; old != nil {
		t.unindexLocked(old)
		delete(t.services, key)
	}
	if s == nil {
		return
	}
	s.attach(t.slices[key])
	t.services[key] = s
	for _, ips := range [][]netip.Addr{s.clusterIPs, s.otherIPs} {
		for _, ip := range ips {
			for k, p := range s.ports {
				t.vipCount[ip]++
				if p.protocol == "TCP" {
					t.vips[netip.AddrPortFrom(ip, p.port)] = target{s, k}
				}
			}
		}
	}
	for k, p := range s.ports {
		if p.nodePort != 0 && p.protocol == "TCP" {
			t.nodePorts[p.nodePort] = target{s, k}
		}
	}
}

func (t *ServiceTable) unindexLocked(s *service) {
	for _, ips := range [][]netip.Addr{s.clusterIPs, s.otherIPs} {
		for _, ip := range ips {
			for _, p := range s.ports {
				if t.vipCount[ip]--; t.vipCount[ip] <= 0 {
					delete(t.vipCount, ip)
				}
				if at := netip.AddrPortFrom(ip, p.port); t.vips[at].service == s {
					delete(t.vips, at)
				}
			}
		}
	}
	for _, p := range s.ports {
		if t.nodePorts[p.nodePort].service == s {
			delete(t.nodePorts, p.nodePort)
		}
	}
}

// refreshLocked gives a Service the endpoints of its present slices.
func (t *ServiceTable) refreshLocked(key objectKey) {
	if old := t.services[key]; old != nil {
		next := *old
		next.ports = append([]servicePort(nil), old.ports...)
		t.setLocked(key, &next)
	}
}
