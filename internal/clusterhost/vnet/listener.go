package vnet

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
)

// listener is a listening socket with a bounded backlog.
type listener struct {
	stack   *stack
	sockets *socketSet
	key     netip.AddrPort // zero Addr: wildcard
	addr    *net.TCPAddr
	queue   chan *conn    // sent to under the network's lock
	room    chan struct{} // a token after each Accept, for dials that wait
	done    chan struct{}
	closed  bool // under the network's lock
}

// Listen listens on ":80", "0.0.0.0:80", "127.0.0.1:80" or an own address;
// port 0 picks one. Errors are *net.OpError around syscall.EADDRINUSE and so on.
func (i *Interface) Listen(address string) (net.Listener, error) {
	key, shown, err := parseListen(address)
	fail := func(err error) error {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			err = os.NewSyscallError("bind", errno)
		}
		return &net.OpError{Op: "listen", Net: "tcp", Addr: net.TCPAddrFromAddrPort(shown), Err: err}
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: err}
	}
	s := i.stack
	s.net.mu.Lock()
	l, err := s.listenLocked(i.sockets, key, shown)
	s.net.mu.Unlock()
	if err != nil {
		return nil, fail(err)
	}
	if !i.sockets.add(l) {
		l.Close()
		return nil, fail(net.ErrClosed)
	}
	return l, nil
}

func (s *stack) listenLocked(owner *socketSet, key, shown netip.AddrPort) (*listener, error) {
	switch ip := key.Addr(); {
	case s.detached:
		return nil, net.ErrClosed
	case ip.IsValid() && !ip.IsLoopback() && !s.owns(ip):
		return nil, syscall.EADDRNOTAVAIL
	case len(s.listeners) >= maxListeners:
		return nil, syscall.EMFILE
	}
	if key.Port() == 0 {
		p, ok := s.ephemeralLocked()
		if !ok {
			return nil, syscall.EADDRINUSE
		}
		key = netip.AddrPortFrom(key.Addr(), p)
		shown = netip.AddrPortFrom(shown.Addr(), p)
	} else if s.portTakenLocked(key) {
		return nil, syscall.EADDRINUSE
	}
	l := &listener{
		stack: s, sockets: owner, key: key, addr: net.TCPAddrFromAddrPort(shown),
		queue: make(chan *conn, backlog), room: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.listeners[key] = l
	return l, nil
}

// parseListen reads an address to listen on: key has a zero Addr for the
// wildcard, shown is what Addr reports.
func parseListen(address string) (key, shown netip.AddrPort, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return key, shown, err
	}
	p, err := parsePort(port)
	if err != nil {
		return key, shown, err
	}
	switch host {
	case "":
		return netip.AddrPortFrom(netip.Addr{}, p), netip.AddrPortFrom(netip.IPv6Unspecified(), p), nil
	case "localhost":
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return key, shown, &net.AddrError{Err: "not an address to listen on", Addr: host}
	}
	ip = ip.Unmap()
	shown = netip.AddrPortFrom(ip, p)
	if ip.IsUnspecified() {
		return netip.AddrPortFrom(netip.Addr{}, p), shown, nil
	}
	return shown, shown, nil
}

func parsePort(port string) (uint16, error) {
	switch port {
	case "http":
		return 80, nil
	case "https":
		return 443, nil
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, &net.AddrError{Err: "invalid port", Addr: port}
	}
	return uint16(p), nil
}

func (l *listener) Addr() net.Addr { return l.addr }

func (l *listener) Accept() (net.Conn, error) {
	for {
		select {
		case <-l.done:
			return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
		case c := <-l.queue:
			signal(l.room)
			if l.sockets.add(c) {
				return c, nil
			}
			c.Close()
		}
	}
}

func (l *listener) Close() error {
	n := l.stack.net
	n.mu.Lock()
	open := l.closeLocked()
	n.mu.Unlock()
	if !open {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	l.sockets.remove(l)
	return nil
}

// closeLocked resets the connections that nobody accepted; it reports whether the listener was open.
func (l *listener) closeLocked() bool {
	if l.closed {
		return false
	}
	l.closed = true
	delete(l.stack.listeners, l.key)
	close(l.done)
	for {
		select {
		case c := <-l.queue:
			c.other.fail(syscall.ECONNRESET, false)
			c.in.closeRead()
			c.out.closeWrite(true)
			c.releaseLocked()
		default:
			return true
		}
	}
}

// signal leaves one token in a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
