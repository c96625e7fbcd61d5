package vnet

import (
	"net/netip"
	"syscall"
	"time"
)

// How long a node remembers a flow of datagrams: nf_conntrack_udp_timeout and, once
// there were answers, nf_conntrack_udp_timeout_stream. Nothing wakes up when a flow is over; it
// is found to be when it is used again, or pushed out.
const (
	flowTimeout       = 30 * time.Second
	flowTimeoutStream = 120 * time.Second
	maxFlows          = 8192 // of a network
	maxFlowsOut       = 256  // begun by one socket
)

// udpFlow is what connection tracking knows of two sockets that exchange datagrams: where they go after
// translation, and what the answers are to look like. The network's lock guards it.
type udpFlow struct {
	client  *udpSocket
	dst     netip.AddrPort // as the client writes it
	choice  choice         // where that leads
	key     flowKey
	last    time.Time
	replied bool
}

// flowKey is a flow as its server's end sees it.
type flowKey struct {
	server *stack
	port   uint16
	seen   netip.AddrPort // the client's address there
}

func (f *udpFlow) over(now time.Time) bool {
	if f.replied {
		return now.Sub(f.last) >= flowTimeoutStream
	}
	return now.Sub(f.last) >= flowTimeout
}

func (f *udpFlow) forgetLocked() {
	delete(f.client.flows, f.dst)
	if n := f.client.net; n.flows[f.key] == f {
		delete(n.flows, f.key)
	}
}

// send takes a datagram as far as it gets. Its errors are the ones that a kernel gives at once; a
// refusal comes back as with ICMP, and everything else is silence.
func (u *udpSocket) send(b []byte, to netip.AddrPort) error {
	s, n, now := u.stack, u.net, time.Now()
	n.mu.Lock()
	if u.gone {
		n.mu.Unlock()
		return syscall.EBADF
	}
	if f := n.flows[flowKey{s, u.local.Port(), to}]; f != nil && !f.over(now) { // an answer
		defer n.mu.Unlock()
		f.last, f.replied = now, true
		if s.reachesLocked(f.client.stack) {
			f.client.deliver(f.dst, b)
		}
		return nil
	}
	var former choice
	known := u.flows[to]
	if known != nil && known.over(now) {
		known.forgetLocked()
		known = nil
	}
	if known != nil {
		former = known.choice
	}
	n.mu.Unlock()
	r, err := s.route("UDP", to, former)
	switch {
	case err == syscall.ECONNREFUSED:
		u.refuse()
		return nil
	case err != nil:
		return err
	case r.lost || (known == nil || known.choice.at != r.to) && !s.passes("UDP", r):
		return nil // as with TCP, a flow that has been let through goes on
	}
	return u.forward(b, r, now)
}

// forward delivers a datagram to where its route leads, and remembers the flow for the answers.
func (u *udpSocket) forward(b []byte, r route, now time.Time) error {
	s, n := u.stack, u.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if u.gone {
		return syscall.EBADF
	}
	target, source := s, r.to.Addr()
	if !r.local {
		var ok bool
		if source, ok = s.source(r.to.Addr()); !ok {
			return syscall.ENETUNREACH
		}
		if target = n.byIP[r.to.Addr()]; target == nil {
			return nil // "host unreachable" isn't told to sockets of UDP
		}
	}
	if !s.reachesLocked(target) {
		return nil
	}
	peer := target.socketLocked(r.to)
	if peer == nil {
		u.refuse()
		return nil
	}
	if r.from.IsValid() {
		source = r.from
	}
	f := u.flowLocked(r, target, source, now)
	f.last = now
	peer.deliver(f.key.seen, b)
	return nil
}

// flowLocked is the flow to a route's end: the one there is, or a new one in the place of one that
// led elsewhere.
func (u *udpSocket) flowLocked(r route, target *stack, source netip.Addr, now time.Time) *udpFlow {
	n := u.net
	if f := u.flows[r.shown]; f != nil {
		if f.choice.at == r.to && f.key.server == target && f.key.seen.Addr() == source && n.flows[f.key] == f {
			f.choice.via = r.via
			return f
		}
		f.forgetLocked()
	}
	for len(n.flows) >= maxFlows || len(u.flows) >= maxFlowsOut {
		u.pushOutLocked()
	}
	key := flowKey{target, r.to.Port(), netip.AddrPortFrom(source, u.local.Port())}
	for { // who would be taken for another flow gets another port, as in nf_nat_core.c
		old := n.flows[key]
		if old == nil {
			break
		}
		if old.over(now) {
			old.forgetLocked()
			break
		}
		key.seen = netip.AddrPortFrom(source, nextPort(key.seen.Port()))
	}
	f := &udpFlow{client: u, dst: r.shown, choice: choice{r.to, r.via}, key: key}
	if u.flows == nil {
		u.flows = make(map[netip.AddrPort]*udpFlow)
	}
	u.flows[f.dst], n.flows[key] = f, f
	return f
}

func nextPort(p uint16) uint16 {
	if p < firstEphemeral || p >= lastEphemeral {
		return firstEphemeral
	}
	return p + 1
}

// pushOutLocked forgets some flow: of this socket when it has any, so that who sends to many
// addresses is the first to lose.
func (u *udpSocket) pushOutLocked() {
	for _, f := range u.flows {
		f.forgetLocked()
		return
	}
	for _, f := range u.net.flows {
		f.forgetLocked()
		return
	}
}
