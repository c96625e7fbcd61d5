package vnet

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// SYN is repeated after 1, 2, 4 ... s; Linux gives up after 127 s.
const (
	firstRetransmit = time.Second
	connectTimeout  = 127 * time.Second
)

// DialContext connects to host:port; a host that isn't an IP is looked up with
// the interface's resolver. Errors are *net.OpError around
// syscall.ECONNREFUSED, EHOSTUNREACH, or a timeout; *net.DNSError for names.
func (i *Interface) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.UnknownNetworkError(network)}
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	port, err := parsePort(service)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	ips := []netip.Addr{netip.IPv4Unspecified()}
	if host != "" {
		if ip, err := netip.ParseAddr(host); err == nil {
			ips[0] = ip.Unmap().WithZone("")
		} else if ips, err = i.LookupHost(ctx, host); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
	}
	var first error
	for _, ip := range ips {
		if network == "tcp4" && !ip.Is4() || network == "tcp6" && ip.Is4() {
			continue
		}
		to := netip.AddrPortFrom(ip, port)
		c, err := i.dial(ctx, to)
		if err == nil {
			return c, nil
		}
		if errno, ok := err.(syscall.Errno); ok {
			err = os.NewSyscallError("connect", errno)
		}
		if first == nil {
			first = &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(to), Err: err}
		}
		if ctx.Err() != nil {
			break
		}
	}
	if first == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.AddrError{Err: "no suitable address", Addr: host}}
	}
	return nil, first
}

// route is where a connection goes.
type route struct {
	to    netip.AddrPort // the real destination, after Service translation
	shown netip.AddrPort // what the client asked for
	from  netip.Addr     // source that the server sees when not the client's own; for node ports
	local bool           // loopback
	lost  bool           // nothing comes back, as long as it is so
	check bool           // a node's health check
}

// dial connects to an address and waits where a network would wait.
func (i *Interface) dial(ctx context.Context, to netip.AddrPort) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, contextError(err)
	}
	r := route{lost: true}
	var retransmit, giveUp *time.Timer
	for delay := firstRetransmit; ; delay = min(2*delay, 32*time.Second) {
		var c *conn
		var wait <-chan struct{}
		var err error
		if r.lost {
			if r, err = i.route(to); err != nil {
				return nil, err
			}
		}
		if !r.lost && i.passes(r) {
			if c, wait, err = i.connect(r); err != nil {
				return nil, err
			}
		}
		if c != nil {
			if !i.sockets.add(c) {
				c.Close()
				return nil, net.ErrClosed
			}
			return c, nil
		}
		if giveUp == nil {
			giveUp, retransmit = time.NewTimer(connectTimeout), time.NewTimer(delay)
			defer giveUp.Stop()
			defer retransmit.Stop()
		} else {
			retransmit.Reset(delay)
		}
		select {
		case <-wait: // room in the backlog; nil while silent
		case <-retransmit.C:
		case <-giveUp.C:
			return nil, syscall.ETIMEDOUT
		case <-ctx.Done():
			return nil, contextError(ctx.Err())
		case <-i.stack.net.done:
			return nil, net.ErrClosed
		}
	}
}

// route translates addresses of Services and ports of nodes, once for each dial
// that gets through.
func (i *Interface) route(to netip.AddrPort) (route, error) {
	s := i.stack
	r := route{to: to, shown: to}
	if to.Addr().IsLoopback() || to.Addr().IsUnspecified() {
		r.local = true
		return r, nil
	}
	s.net.mu.Lock()
	services := s.tableLocked()
	target := s.net.byIP[to.Addr()]
	atNode := target != nil && target.node
	var mapped netip.AddrPort
	if atNode { // the rules are those of the node where the packet arrives
		services = target.tableLocked()
		mapped, _ = target.hostPortLocked(to)
	}
	o := origin{node: s.nodeName, inside: s.nodeName != ""}
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
		r.to, snat, v = services.nodePort(o, to)
	} else {
		if s.nodeName == "" {
			var refused bool
			if o.node, gateway, refused = s.balance(services, to); refused {
				return r, syscall.ECONNREFUSED
			}
			if gateway != nil {
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
		r.check = atNode && !mapped.IsValid() && services.checksHealth(to.Port())
	case forwards:
		if ip, ok := gateway.address(to.Addr()); ok && snat && gateway != s {
			r.from = ip
		}
	}
	return r, nil
}

// balance is a load balancer: it chooses one of the nodes that may get the connection and are
// there. refused: the address is a load balancer's and no node is good.
func (s *stack) balance(services *ServiceTable, to netip.AddrPort) (node string, at *stack, refused bool) {
	nodes, external := services.external(to)
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
func (i *Interface) passes(r route) bool {
	if r.local || r.check {
		return true
	}
	client, ok := i.stack.source(r.to.Addr())
	return !ok || i.stack.net.passes(i.stack, client, r.to, "TCP")
}

// connect tries once. With neither a connection nor an error the caller tries again
// later, or when wait has a token.
func (i *Interface) connect(r route) (c *conn, wait <-chan struct{}, err error) {
	s := i.stack
	n := s.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.detached || i.sockets.ended() {
		return nil, nil, net.ErrClosed
	}
	target, at, source := s, r.to, r.to.Addr()
	if r.local {
		if source.IsUnspecified() {
			source = loopback(source)
			at = netip.AddrPortFrom(source, at.Port())
			r.shown = at
		}
	} else {
		var ok bool
		if source, ok = s.source(at.Addr()); !ok {
			return nil, nil, syscall.ENETUNREACH
		}
		if target = n.byIP[at.Addr()]; target == nil {
			if n.ghosts[at.Addr()] != nil || s.down {
				return nil, nil, nil
			}
			return nil, nil, syscall.EHOSTUNREACH
		}
	}
	if !s.reachesLocked(target) {
		return nil, nil, nil
	}
	l := target.listenerLocked(at)
	if l == nil && r.check {
		l = n.healthListenerLocked()
	}
	if l == nil {
		return nil, nil, syscall.ECONNREFUSED
	}
	if len(l.queue) == cap(l.queue) {
		return nil, l.room, nil
	}
	port, err := s.roomLocked(target)
	if err != nil {
		return nil, nil, err
	}
	seen := source // the client's address at the server
	if r.from.IsValid() {
		seen = r.from
	}
	c = pair(s, target, port)
	c.local, c.remote = tcpAddr(source, port), net.TCPAddrFromAddrPort(r.shown)
	c.other.local, c.other.remote = net.TCPAddrFromAddrPort(at), tcpAddr(seen, port)
	c.sockets, c.other.sockets = i.sockets, l.sockets
	l.queue <- c.other
	if len(l.queue) < cap(l.queue) {
		signal(l.room) // others that wait may come too
	}
	return c, nil, nil
}

// roomLocked takes an ephemeral port, within the limits of both ends.
func (s *stack) roomLocked(target *stack) (uint16, error) {
	switch {
	case s.net.conns+2 > 2*maxConns:
		return 0, syscall.ENOBUFS
	case s.connsOut >= maxConnsOut:
		return 0, syscall.EMFILE
	case target.connsIn >= maxConnsIn:
		return 0, syscall.ECONNREFUSED
	}
	port, ok := s.ephemeralLocked()
	if !ok {
		return 0, syscall.EADDRNOTAVAIL
	}
	return port, nil
}

// pair makes the two ends of a connection and enters them in their stacks; it
// returns the client's. The network's lock is held.
func pair(client, server *stack, port uint16) *conn {
	n := client.net
	up, down := newHalf(&n.buffers), newHalf(&n.buffers)
	c := &conn{net: n, stack: client, peer: server, in: down, out: up, port: port}
	c.other = &conn{net: n, stack: server, peer: client, in: up, out: down, other: c}
	client.conns[c], server.conns[c.other] = struct{}{}, struct{}{}
	client.ports[port] = struct{}{}
	client.connsOut++
	server.connsIn++
	n.conns += 2
	return c
}

func tcpAddr(ip netip.Addr, port uint16) *net.TCPAddr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, port))
}

func loopback(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}

// timeout is the error of a dial whose context ended, as package net has it.
type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }
func (timeout) Is(err error) bool {
	return err == context.DeadlineExceeded || err == os.ErrDeadlineExceeded
}

// canceled is the error of a dial whose context was cancelled.
type canceled struct{}

func (canceled) Error() string     { return "operation was canceled" }
func (canceled) Is(err error) bool { return err == context.Canceled }

func contextError(err error) error {
	if errors.Is(err, context.Canceled) {
		return canceled{}
	}
	return timeout{}
}
