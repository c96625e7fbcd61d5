package controlplane

import (
	"net"
	"sync"
)

// apiListener accepts the API server's connections from several listeners: the unix
// socket and the office's port in the virtual network. Its address is the
// one that the API server believes to listen on.
type apiListener struct {
	addr  net.TCPAddr
	conns chan net.Conn
	done  chan struct{}

	mu     sync.Mutex
	closed bool
	from   []net.Listener
	open   map[net.Conn]struct{}
	wg     sync.WaitGroup
}

func newAPIListener() *apiListener {
	return &apiListener{
		addr:  net.TCPAddr{IP: officeIP.AsSlice(), Port: apiPort},
		conns: make(chan net.Conn),
		done:  make(chan struct{}),
		open:  map[net.Conn]struct{}{},
	}
}

// add accepts from one more listener, which is closed with the apiListener.
func (l *apiListener) add(from net.Listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		from.Close()
		return
	}
	l.from = append(l.from, from)
	l.wg.Go(func() {
		for {
			c, err := from.Accept()
			if err != nil {
				return
			}
			tracked := l.track(c)
			select {
			case l.conns <- tracked:
			case <-l.done:
				tracked.Close()
			}
		}
	})
}

// Accept returns the next connection of any of the listeners.
func (l *apiListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close closes all listeners and waits for their loops.
func (l *apiListener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.done)
	for _, from := range l.from {
		from.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
	return nil
}

// Addr is the office's address; the API server insists on a *net.TCPAddr.
func (l *apiListener) Addr() net.Addr { return &l.addr }

// reset closes every accepted connection.
func (l *apiListener) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		c.Close()
	}
}

// apiConn is an accepted connection. One of the unix socket gets addresses that
// the API server can read: it comes from the street.
type apiConn struct {
	net.Conn
	l             *apiListener
	local, remote net.Addr
}

func (l *apiListener) track(c net.Conn) net.Conn {
	out := &apiConn{c, l, c.LocalAddr(), c.RemoteAddr()}
	if _, ok := out.remote.(*net.UnixAddr); ok {
		out.local, out.remote = &l.addr, &net.TCPAddr{IP: streetIP.AsSlice(), Port: 1}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = struct{}{}
	return out
}

func (c *apiConn) LocalAddr() net.Addr  { return c.local }
func (c *apiConn) RemoteAddr() net.Addr { return c.remote }

func (c *apiConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.open, c.Conn)
	c.l.mu.Unlock()
	return c.Conn.Close()
}
