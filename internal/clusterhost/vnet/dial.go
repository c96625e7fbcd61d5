package vnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
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
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6":
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
		if strings.HasSuffix(network, "4") && !ip.Is4() || strings.HasSuffix(network, "6") && ip.Is4() {
			continue
		}
		to := netip.AddrPortFrom(ip, port)
		var c net.Conn
		var err error
		udp := strings.HasPrefix(network, "udp")
		if udp {
			c, err = i.connectUDP(to)
		} else {
			c, err = i.dialTCP(ctx, to)
		}
		if err == nil {
			return c, nil
		}
		if errno, ok := err.(syscall.Errno); ok {
			err = os.NewSyscallError("connect", errno)
		}
		if first == nil {
			first = &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(to), Err: err}
			if udp {
				first = &net.OpError{Op: "dial", Net: network, Addr: net.UDPAddrFromAddrPort(to), Err: err}
			}
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

// dialTCP is dial as a net.Conn that is nil with an error.
func (i *Interface) dialTCP(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	c, err := i.dial(ctx, to)
	if err != nil {
		return nil, err
	}
	return c, nil
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
			if r, err = i.stack.route("TCP", to, choice{}); err != nil {
				return nil, err
			}
		}
		if !r.lost && i.stack.passes("TCP", r) {
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
