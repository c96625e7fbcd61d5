package vnet

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// Limits of UDP. What doesn't fit is lost, as on any network.
const (
	maxDatagram       = 65507     // of IPv4
	maxSockets        = 4096      // of a network
	maxSocketsHere    = 512       // of an interface
	receiveBuffer     = 208 << 10 // of a socket, as net.core.rmem_default
	datagramOverhead  = 512       // what a kernel counts besides the data
	datagramBudget    = 8 << 20   // of a network
	maxSocketBacklogs = 256       // datagrams that wait at a socket
)

// udpSocket is a UDP socket: a net.PacketConn, or a net.Conn when it is connected.
// It holds no goroutine and, but for a deadline, no timer.
type udpSocket struct {
	net   *Network
	stack *stack
	owner *socketSet
	key   netip.AddrPort // zero Addr: wildcard
	local netip.AddrPort
	peer  netip.AddrPort // of a connected socket

	flows map[netip.AddrPort]*udpFlow // that this end began, by destination; under the network's lock
	gone  bool                        // under the network's lock

	mu       sync.Mutex
	readable sync.Cond
	queue    []datagram
	bytes    int
	err      error // an ICMP message that nobody has seen yet; connected sockets only
	closed   bool
	limit    deadline  // of reading; writing never waits
	writes   time.Time // deadline of writing
}

type datagram struct {
	from netip.AddrPort
	data []byte
}

var (
	_ net.Conn       = (*udpSocket)(nil)
	_ net.PacketConn = (*udpSocket)(nil)
)

// ListenPacket opens a UDP socket on ":53", "127.0.0.1:53" or an own address; port 0 picks
// one. Errors are those of Listen.
func (i *Interface) ListenPacket(address string) (net.PacketConn, error) {
	key, shown, err := parseListen(address)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "udp", Err: err}
	}
	u, err := i.openUDP(key, shown, netip.AddrPort{})
	if err != nil {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			err = os.NewSyscallError("bind", errno)
		}
		return nil, &net.OpError{Op: "listen", Net: "udp", Addr: net.UDPAddrFromAddrPort(shown), Err: err}
	}
	return u, nil
}

// connectUDP opens a socket that talks to one address; nothing is sent.
func (i *Interface) connectUDP(to netip.AddrPort) (net.Conn, error) {
	if to.Addr().IsUnspecified() {
		to = netip.AddrPortFrom(loopback(to.Addr()), to.Port())
	}
	local := to.Addr()
	if !local.IsLoopback() {
		var ok bool
		if local, ok = i.stack.source(to.Addr()); !ok {
			return nil, syscall.ENETUNREACH
		}
	}
	key := netip.AddrPortFrom(local, 0)
	u, err := i.openUDP(key, key, to)
	if err != nil {
		return nil, err
	}
	return u, nil
}

func (i *Interface) openUDP(key, shown, peer netip.AddrPort) (*udpSocket, error) {
	s := i.stack
	s.net.mu.Lock()
	u, err := s.openUDPLocked(i.sockets, key, shown, peer)
	s.net.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if !i.sockets.add(u) {
		u.Close()
		return nil, net.ErrClosed
	}
	return u, nil
}

func (s *stack) openUDPLocked(owner *socketSet, key, shown, peer netip.AddrPort) (*udpSocket, error) {
	switch ip := key.Addr(); {
	case s.detached:
		return nil, net.ErrClosed
	case ip.IsValid() && !ip.IsLoopback() && !s.owns(ip):
		return nil, syscall.EADDRNOTAVAIL
	case len(s.sockets) >= maxSocketsHere:
		return nil, syscall.EMFILE
	case s.net.udp >= maxSockets:
		return nil, syscall.ENOBUFS
	}
	if key.Port() == 0 {
		p, ok := s.ephemeralUDPLocked()
		if !ok {
			return nil, syscall.EADDRINUSE
		}
		key, shown = netip.AddrPortFrom(key.Addr(), p), netip.AddrPortFrom(shown.Addr(), p)
	} else if s.udpTakenLocked(key) {
		return nil, syscall.EADDRINUSE
	}
	u := &udpSocket{net: s.net, stack: s, owner: owner, key: key, local: shown, peer: peer}
	u.readable.L = &u.mu
	if s.sockets == nil {
		s.sockets = make(map[netip.AddrPort]*udpSocket)
	}
	s.sockets[key] = u
	s.net.udp++
	return u, nil
}

// socketLocked finds who gets what arrives at an address of this stack.
func (s *stack) socketLocked(a netip.AddrPort) *udpSocket {
	if u := s.sockets[a]; u != nil {
		return u
	}
	return s.sockets[netip.AddrPortFrom(netip.Addr{}, a.Port())]
}

func (s *stack) udpTakenLocked(a netip.AddrPort) bool {
	if s.socketLocked(a) != nil {
		return true
	}
	if !a.Addr().IsValid() {
		for b := range s.sockets {
			if b.Port() == a.Port() {
				return true
			}
		}
	}
	return false
}

func (s *stack) ephemeralUDPLocked() (uint16, bool) {
	for range lastEphemeral - firstEphemeral + 1 {
		p := s.nextUDP
		if s.nextUDP++; s.nextUDP > lastEphemeral {
			s.nextUDP = firstEphemeral
		}
		if !s.udpTakenLocked(netip.AddrPortFrom(netip.Addr{}, p)) {
			return p, true
		}
	}
	return 0, false
}

func (u *udpSocket) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(u.local) }

func (u *udpSocket) RemoteAddr() net.Addr {
	if !u.peer.IsValid() {
		return nil
	}
	return net.UDPAddrFromAddrPort(u.peer)
}

// Read returns one datagram; what doesn't fit into b is lost.
func (u *udpSocket) Read(b []byte) (int, error) {
	n, _, err := u.receive(b)
	return n, err
}

func (u *udpSocket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := u.receive(b)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

func (u *udpSocket) receive(b []byte) (int, netip.AddrPort, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for {
		switch {
		case u.closed:
			return 0, netip.AddrPort{}, u.opError("read", net.ErrClosed)
		case u.limit.expired:
			return 0, netip.AddrPort{}, u.opError("read", os.ErrDeadlineExceeded)
		case u.err != nil:
			err := u.err
			u.err = nil
			return 0, netip.AddrPort{}, u.opError("read", err)
		case len(u.queue) > 0:
			d := u.queue[0]
			u.queue[0] = datagram{}
			if u.queue = u.queue[1:]; len(u.queue) == 0 {
				u.queue = nil
			}
			u.accountLocked(-len(d.data) - datagramOverhead)
			return copy(b, d.data), d.from, nil
		}
		u.readable.Wait()
	}
}

func (u *udpSocket) accountLocked(bytes int) {
	u.bytes += bytes
	u.net.datagrams.used.Add(int64(bytes))
}

// deliver hands a datagram to the socket's reader, or loses it.
func (u *udpSocket) deliver(from netip.AddrPort, b []byte) {
	if u.peer.IsValid() && u.peer != from {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	size := len(b) + datagramOverhead
	if u.closed || u.bytes+size > receiveBuffer || len(u.queue) >= maxSocketBacklogs || u.net.datagrams.used.Load()+int64(size) > datagramBudget {
		return
	}
	u.accountLocked(size)
	u.queue = append(u.queue, datagram{from, append([]byte(nil), b...)})
	u.readable.Signal()
}

// refuse is an ICMP "port unreachable": only connected sockets hear of it (udp(7)).
func (u *udpSocket) refuse() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.peer.IsValid() && !u.closed {
		u.err = syscall.ECONNREFUSED
		u.readable.Signal()
	}
}

func (u *udpSocket) Write(b []byte) (int, error) {
	if !u.peer.IsValid() {
		return 0, u.opError("write", syscall.EDESTADDRREQ)
	}
	return u.write(b, u.peer)
}

func (u *udpSocket) WriteTo(b []byte, to net.Addr) (int, error) {
	a, ok := to.(*net.UDPAddr)
	switch {
	case u.peer.IsValid():
		return 0, u.opError("write", net.ErrWriteToConnected)
	case !ok || a == nil:
		return 0, u.opError("write", syscall.EINVAL)
	}
	at := a.AddrPort()
	at = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
	if at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(loopback(at.Addr()), at.Port())
	}
	return u.write(b, at)
}

func (u *udpSocket) write(b []byte, to netip.AddrPort) (int, error) {
	u.mu.Lock()
	err := u.err
	u.err = nil
	late := !u.writes.IsZero() && !time.Now().Before(u.writes)
	switch {
	case u.closed:
		err = net.ErrClosed
	case late:
		err = os.ErrDeadlineExceeded
	case err == nil && len(b) > maxDatagram:
		err = syscall.EMSGSIZE
	}
	u.mu.Unlock()
	if err == nil {
		err = u.send(b, to)
	}
	if err != nil {
		return 0, u.opError("write", err)
	}
	return len(b), nil
}

// Close forgets what hasn't been read, and the flows that this socket began.
func (u *udpSocket) Close() error {
	u.net.mu.Lock()
	open := u.closeLocked()
	u.net.mu.Unlock()
	if !open {
		return u.opError("close", net.ErrClosed)
	}
	u.owner.remove(u)
	return nil
}

// closeLocked reports whether the socket was open; the network's lock is held.
func (u *udpSocket) closeLocked() bool {
	if u.gone {
		return false
	}
	u.gone = true
	delete(u.stack.sockets, u.key)
	u.net.udp--
	for _, f := range u.flows {
		f.forgetLocked()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	u.accountLocked(-u.bytes)
	u.queue = nil
	u.limit.stop()
	u.readable.Broadcast()
	return true
}

func (u *udpSocket) SetDeadline(t time.Time) error {
	if err := u.SetReadDeadline(t); err != nil {
		return err
	}
	return u.SetWriteDeadline(t)
}

func (u *udpSocket) SetReadDeadline(t time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return u.opError("set", net.ErrClosed)
	}
	u.limit.set(t, &u.mu, &u.readable)
	return nil
}

func (u *udpSocket) SetWriteDeadline(t time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return u.opError("set", net.ErrClosed)
	}
	u.writes = t
	return nil
}

func (u *udpSocket) opError(op string, err error) error {
	if errno, ok := err.(syscall.Errno); ok {
		err = os.NewSyscallError(op, errno)
	}
	e := &net.OpError{Op: op, Net: "udp", Source: net.UDPAddrFromAddrPort(u.local), Err: err}
	if u.peer.IsValid() {
		e.Addr = net.UDPAddrFromAddrPort(u.peer)
	}
	return e
}
