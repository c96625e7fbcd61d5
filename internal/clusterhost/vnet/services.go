package vnet

import (
	"math/rand/v2"
	"net/netip"
	"slices"
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
	vips       map[vip]target
	vipCount   map[netip.Addr]int // ports by address; a known address refuses other ports
	nodePorts  map[nodePort]target
	health     map[uint16]*service // by healthCheckNodePort
	namespaces map[string]struct{}
	nodes      map[string]nodeFacts
}

// vip is a port of a Service's address, nodePort one of every node's. TCP and UDP
// have ports of their own.
type (
	vip struct {
		protocol string
		at       netip.AddrPort
	}
	nodePort struct {
		protocol string
		port     uint16
	}
)

// nodeFacts is what of a Node's object traffic depends on.
type nodeFacts struct {
	zone  string
	ip    netip.Addr
	entry bool // load balancers may send to it
}

// objectKey is a namespace and a name.
type objectKey struct{ namespace, name string }

// target is what an address of a Service stands for.
type target struct {
	service  *service
	port     int  // index into service.ports
	external bool // a load balancer's or external address: externalTrafficPolicy counts
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

	internalLocal, externalLocal bool
	sourceRanges                 []netip.Prefix // of load balancer addresses; none: all
	healthPort                   uint16
}

// servicePort is a port with the addresses that connections go to.
type servicePort struct {
	name     string
	protocol string // TCP, UDP, SCTP
	port     uint16
	nodePort uint16
	// Where connections can go.
	endpoints4, endpoints6 []portEndpoint
}

// endpoint is one address of an EndpointSlice.
type endpoint struct {
	ip                          netip.Addr
	hostname                    string
	ready, serving, terminating bool
	ports                       []endpointPort
	node                        string
	nodeHints, zoneHints        []string
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
		vips:       make(map[vip]target),
		vipCount:   make(map[netip.Addr]int),
		nodePorts:  make(map[nodePort]target),
		health:     make(map[uint16]*service),
		namespaces: make(map[string]struct{}),
		nodes:      make(map[string]nodeFacts),
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

// translate is kube-proxy's work for addresses of Services; snat says that the
// server sees the node's address in place of the client's.
func (t *ServiceTable) translate(o origin, to netip.AddrPort) (at netip.AddrPort, snat bool, v verdict) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	tg, ok := t.vips[vip{o.protocol, to}]
	if !ok {
		if t.vipCount[to.Addr()] > 0 {
			return at, false, rejects
		}
		return at, false, notService
	}
	if tg.external && !tg.service.admits(o.client) {
		return at, false, drops
	}
	at, v = t.pickLocked(tg, o, to.Addr())
	return at, tg.external && !tg.service.externalLocal, v
}

// atNode is translate for a port on a node's address.
func (t *ServiceTable) atNode(o origin, node netip.AddrPort) (at netip.AddrPort, snat bool, v verdict) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	tg, ok := t.nodePorts[nodePort{o.protocol, node.Port()}]
	if !ok {
		return at, false, notService
	}
	at, v = t.pickLocked(tg, o, node.Addr())
	return at, !tg.service.externalLocal, v
}

// admits follows loadBalancerSourceRanges.
func (s *service) admits(client netip.Addr) bool {
	return len(s.sourceRanges) == 0 || slices.ContainsFunc(s.sourceRanges, func(p netip.Prefix) bool { return p.Contains(client) })
}

// pickLocked chooses an endpoint of like's family, at random or by the client's affinity.
func (t *ServiceTable) pickLocked(tg target, o origin, like netip.Addr) (netip.AddrPort, verdict) {
	p := &tg.service.ports[tg.port]
	all, local := p.endpoints4, tg.service.internalLocal
	if !like.Is4() {
		all = p.endpoints6
	}
	if tg.external {
		local = tg.service.externalLocal && !o.inside
	}
	if o.keep.IsValid() && slices.ContainsFunc(all, func(e portEndpoint) bool { return e.at == o.keep && e.serving }) {
		return o.keep, forwards
	}
	found, somewhere := usable(all, local, o.node, t.nodes[o.node].zone)
	switch {
	case len(found) == 0 && somewhere:
		return netip.AddrPort{}, drops
	case len(found) == 0:
		return netip.AddrPort{}, rejects
	}
	random := func() netip.AddrPort { return found[rand.IntN(len(found))] }
	if tg.service.affinity == 0 {
		return random(), forwards
	}
	key := sessionKey{o.client, p.protocol, p.port, like.Is4()}
	return tg.service.sessions.pick(key, found, t.now(), tg.service.affinity, random), forwards
}

// external reports whether an address is a load balancer's or external one of a
// Service, and which nodes it may send to: those that are ready and, for
// policy Local, pass the Service's health check.
func (t *ServiceTable) external(protocol string, to netip.AddrPort) (nodes []string, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	tg, ok := t.vips[vip{protocol, to}]
	if !ok || !tg.external {
		return nil, false
	}
	for name, facts := range t.nodes {
		if facts.entry && (!tg.service.externalLocal || tg.service.localEndpoints(name) > 0) {
			nodes = append(nodes, name)
		}
	}
	return nodes, true
}

// localEndpoints counts the ready endpoints on a node as kube-proxy's health check does.
func (s *service) localEndpoints(node string) int {
	ips := make(map[netip.Addr]bool)
	for _, e := range s.endpoints {
		if e.ready && e.node == node {
			ips[e.ip] = true
		}
	}
	return len(ips)
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
	for list, ips := range [][]netip.Addr{s.clusterIPs, s.otherIPs} {
		for _, ip := range ips {
			for k, p := range s.ports {
				t.vipCount[ip]++
				t.vips[vip{p.protocol, netip.AddrPortFrom(ip, p.port)}] = target{s, k, list == 1}
			}
		}
	}
	for k, p := range s.ports {
		if p.nodePort != 0 {
			t.nodePorts[nodePort{p.protocol, p.nodePort}] = target{s, k, true}
		}
	}
	if s.healthPort != 0 {
		t.health[s.healthPort] = s
	}
}

func (t *ServiceTable) unindexLocked(s *service) {
	for _, ips := range [][]netip.Addr{s.clusterIPs, s.otherIPs} {
		for _, ip := range ips {
			for _, p := range s.ports {
				if t.vipCount[ip]--; t.vipCount[ip] <= 0 {
					delete(t.vipCount, ip)
				}
				if at := (vip{p.protocol, netip.AddrPortFrom(ip, p.port)}); t.vips[at].service == s {
					delete(t.vips, at)
				}
			}
		}
	}
	for _, p := range s.ports {
		if at := (nodePort{p.protocol, p.nodePort}); t.nodePorts[at].service == s {
			delete(t.nodePorts, at)
		}
	}
	if t.health[s.healthPort] == s {
		delete(t.health, s.healthPort)
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
