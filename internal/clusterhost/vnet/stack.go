package vnet

import (
	"math/rand/v2"
	"net/netip"
	"syscall"
	"time"
)

// Ephemeral ports, as Linux has them.
const (
	firstEphemeral = 32768
	lastEphemeral  = 60999
)

// stack is the kernel's part of an interface. The network's lock guards all
// fields but the first three, which don't change.
type stack struct {
	net  *Network
	name string
	ips  []netip.Addr

	node      bool                     // serves node ports
	host      *stack                   // the node that a Pod's interface is on; nil for others
	cut       bool                     // of a node: nothing passes between its own interfaces and others
	table     *ServiceTable            // of a node whose kube-proxy is away: its last rules; nil: the network's
	nodeName  string                   // the node that it is, or that the Pod runs on; "" outside
	key       objectKey                // the Pod's
	hostPorts map[hostPortKey]hostPort // of a node
	mappedAt  *stack                   // the node that has host ports of this Pod
	down      bool
	detached  bool
	dns       DNSConfig
	listeners map[netip.AddrPort]*listener // zero Addr: wildcard
	conns     map[*conn]struct{}
	connsIn   int
	connsOut  int
	ports     map[uint16]struct{} // ephemeral ports in use
	nextPort  uint16
	silence   *time.Timer                   // ends silent connections
	sockets   map[netip.AddrPort]*udpSocket // zero Addr: wildcard
	nextUDP   uint16
	lost      []*conn // peers of connections that this end closed in silence
}

func newStack(n *Network, name string, ips []netip.Addr) *stack {
	return &stack{
		net: n, name: name, ips: ips,
		listeners: make(map[netip.AddrPort]*listener),
		conns:     make(map[*conn]struct{}),
		ports:     make(map[uint16]struct{}),
		nextUDP:   uint16(firstEphemeral + rand.IntN(lastEphemeral-firstEphemeral)),
		nextPort:  uint16(firstEphemeral + rand.IntN(lastEphemeral-firstEphemeral)),
	}
}

// source is the stack's address for talking to an address of dst's family.
func (s *stack) source(dst netip.Addr) (netip.Addr, bool) {
	for _, ip := range s.ips {
		if ip.Is4() == dst.Is4() {
			return ip, true
		}
	}
	return netip.Addr{}, false
}

func (s *stack) owns(ip netip.Addr) bool {
	for _, own := range s.ips {
		if own == ip {
			return true
		}
	}
	return false
}

// listenerLocked finds who listens on an address of this stack.
func (s *stack) listenerLocked(a netip.AddrPort) *listener {
	if l := s.listeners[a]; l != nil {
		return l
	}
	return s.listeners[netip.AddrPortFrom(netip.Addr{}, a.Port())]
}

// portTakenLocked reports whether listening on a would collide.
func (s *stack) portTakenLocked(a netip.AddrPort) bool {
	if s.listenerLocked(a) != nil {
		return true
	}
	if !a.Addr().IsValid() {
		for b := range s.listeners {
			if b.Port() == a.Port() {
				return true
			}
		}
	}
	return false
}

// ephemeralLocked finds a free port.
func (s *stack) ephemeralLocked() (uint16, bool) {
	for range lastEphemeral - firstEphemeral + 1 {
		p := s.nextPort
		if s.nextPort++; s.nextPort > lastEphemeral {
			s.nextPort = firstEphemeral
		}
		if _, used := s.ports[p]; !used && !s.portTakenLocked(netip.AddrPortFrom(netip.Addr{}, p)) {
			return p, true
		}
	}
	return 0, false
}

func (s *stack) setDownLocked(down bool) {
	if s.detached {
		if !down { // the sockets are gone: retransmissions are answered by RST
			s.buryLocked(syscall.ECONNRESET)
		}
		return
	}
	if s.down == down {
		return
	}
	s.down = down
	for c := range s.conns {
		c.setSilentLocked()
	}
	s.silenceLocked()
}

// silenceLocked begins or ends the silence of a stack whose down or cut has changed.
func (s *stack) silenceLocked() {
	var lost []*conn
	for _, peer := range s.lost { // what was sent at the end arrives now
		if peer.setSilentLocked(); !peer.stack.reachesLocked(peer.peer) {
			lost = append(lost, peer)
		}
	}
	s.lost = lost
	if !s.down && !s.cut {
		s.endSilenceLocked()
		return
	}
	if s.silence != nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(keepAlive, func() {
		s.net.mu.Lock()
		defer s.net.mu.Unlock()
		if s.silence == timer {
			s.buryLocked(syscall.ETIMEDOUT)
		}
	})
	s.silence = timer
}

func (s *stack) endSilenceLocked() {
	if s.silence != nil {
		s.silence.Stop()
		s.silence = nil
	}
}

// setSilentLocked follows the state of both ends; loopback is never silent.
func (c *conn) setSilentLocked() {
	silent := !c.stack.reachesLocked(c.peer)
	c.in.setSilent(silent)
	c.out.setSilent(silent)
}

// detachLocked takes the stack out of the network, see Interface.Close.
func (s *stack) detachLocked() {
	if s.detached {
		return
	}
	s.detached = true
	delete(s.net.stacks, s)
	for _, ip := range s.ips {
		delete(s.net.byIP, ip)
	}
	if s.net.nodes[s.nodeName] == s {
		delete(s.net.nodes, s.nodeName)
	}
	s.unmapLocked()
	for _, l := range s.listeners {
		l.closeLocked()
	}
	for _, u := range s.sockets {
		u.closeLocked()
		u.owner.remove(u)
	}
	for c := range s.conns {
		if !s.down {
			c.other.fail(syscall.ECONNRESET, false)
		}
		c.in.closeRead()
		c.out.closeWrite(true)
		c.releaseLocked()
		c.sockets.remove(c)
	}
	if s.down && len(s.lost) > 0 {
		for _, ip := range s.ips {
			s.net.ghosts[ip] = s
		}
		return
	}
	s.buryLocked(syscall.ECONNRESET)
}

// buryLocked ends, with err, the connections that wait for this silent stack.
func (s *stack) buryLocked(err error) {
	s.endSilenceLocked()
	for _, peer := range s.lost {
		peer.fail(err, true)
	}
	s.lost = nil
	if s.detached {
		for _, ip := range s.ips {
			if s.net.ghosts[ip] == s {
				delete(s.net.ghosts, ip)
			}
		}
		return
	}
	end := func(c *conn) {
		if !c.stack.reachesLocked(c.peer) {
			c.fail(err, true)
			c.other.fail(err, true)
		}
	}
	for c := range s.conns {
		end(c)
	}
	if s.cut {
		s.eachOfNodeLocked(end)
	}
}
