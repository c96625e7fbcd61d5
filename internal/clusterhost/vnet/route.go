package vnet

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"syscall"
)

// route is where a connection or a datagram goes.
type route struct {
	to    netip.AddrPort // the real destination, after Service translation
	shown netip.AddrPort // what the client asked for
	from  netip.Addr     // source that the server sees when not the client's own; for node ports
	local bool           // loopback
	lost  bool           // nothing comes back, as long as it is so
	check bool           // a node's health check
	via   string         // the node that a load balancer sent it to
}

// choice is what was chosen for earlier packets of the same flow; zero for the first one.
type choice struct {
	at  netip.AddrPort // endpoint
	via string         // node, of a load balancer
}

// route translates addresses of Services and ports of nodes, once for each dial
// that gets through.
func (s *stack) route(protocol string, to netip.AddrPort, former choice) (route, error) {
	r := route{to: to, shown: to}
	if to.Addr().IsLoopback() || to.Addr().IsUnspecified() {
		s.net.mu.Lock()
		mapped, ok := s.hostPortLocked(protocol, to)
		s.net.mu.Unlock()
		if r.local = !ok; ok { // the portmap plugin's route_localnet
			r.to = mapped
			r.from, _ = s.source(mapped.Addr())
		}
		return r, nil
	}
	s.net.mu.Lock()
	services := s.tableLocked()
	target := s.net.byIP[to.Addr()]
	atNode := target != nil && target.node
	var mapped netip.AddrPort
	if atNode { // the rules are those of the node where the packet arrives
		services = target.tableLocked()
		mapped, _ = target.hostPortLocked(protocol, to)
	}
	o := origin{protocol: protocol, node: s.nodeName, inside: s.nodeName != "", keep: former.at}
	gateway := s.net.nodes[s.nodeName] // where the client's node changes the source
	s.net.mu.Unlock()
	o.client, _ = s.source(to.Addr())
	if services == nil || target != nil && !atNode {
		return r, nil
	}
	var snat bool
	var v verdict
	if atNode {
		o.node, o.inside, gateway = target.nodeName, s.nodeName != "" && !s.node || s == target, target
		r.to, snat, v = services.atNode(o, to)
	} else {
		if s.nodeName == "" {
			var refused bool
			if o.node, gateway, refused = s.balance(services, protocol, to, former.via); refused {
				return r, syscall.ECONNREFUSED
			}
			if gateway != nil {
				r.via = gateway.nodeName
				s.net.mu.Lock()
				services = gateway.tableLocked()
				s.net.mu.Unlock()
			}
		}
		r.to, snat, v = services.translate(o, to)
	}
	switch v {
	case rejects:
		return r, syscall.ECONNREFUSED
	case drops:
		r.lost = true
	case notService:
		r.to = to
		if mapped.IsValid() {
			r.to = mapped
		}
		r.check = protocol == "TCP" && atNode && !mapped.IsValid() && services.checksHealth(to.Port())
	case forwards:
		if ip, ok := gateway.address(to.Addr()); ok && snat && gateway != s {
			r.from = ip
		}
	}
	return r, nil
}

// balance is a load balancer: it chooses one of the nodes that may get the connection and are
// there. refused: the address is a load balancer's and no node is good.
func (s *stack) balance(services *ServiceTable, protocol string, to netip.AddrPort, former string) (node string, at *stack, refused bool) {
	nodes, external := services.external(protocol, to)
	if !external {
		return "", nil, false
	}
	n := s.net
	n.mu.Lock()
	defer n.mu.Unlock()
	var good []*stack
	for _, name := range nodes {
		if t := n.nodes[name]; t != nil && s.reachesLocked(t) {
			good = append(good, t)
		}
	}
	if len(good) == 0 {
		return "", nil, true
	}
	at = good[rand.IntN(len(good))]
	if k := slices.IndexFunc(good, func(t *stack) bool { return t.nodeName == former }); k >= 0 {
		at = good[k]
	}
	return at.nodeName, at, false
}

// address is source for a stack that may be nil.
func (s *stack) address(like netip.Addr) (netip.Addr, bool) {
	if s == nil {
		return netip.Addr{}, false
	}
	return s.source(like)
}

// passes asks the NetworkPolicies. They see the client's own address also where
// the server doesn't.
func (s *stack) passes(protocol string, r route) bool {
	if r.local || r.check {
		return true
	}
	client, ok := s.source(r.to.Addr())
	return !ok || s.net.passes(s, client, r.to, protocol)
}
