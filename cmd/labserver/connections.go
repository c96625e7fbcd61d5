package main

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// How many connections are open at once. Those that have sent a whole request
// are bounded by the limits for learners; these are for the others.
const (
	connectionsMost       = 4096
	connectionsPerAddress = 1024 // a classroom behind one address
)

// connections knows every open connection of a listener. When there are too
// many, the one without a running request that has been quiet for longest has to
// go: an honest client's first request is there long before its turn comes.
type connections struct {
	most, perAddress int

	mu        sync.Mutex
	quiet     *list.List // of *connection without a running request, the longest quiet first
	open      int
	addresses map[string]int
}

func newConnections(most, perAddress int) *connections {
	return &connections{most: most, perAddress: perAddress, quiet: list.New(), addresses: map[string]int{}}
}

// connection is one that is counted until it is closed.
type connection struct {
	net.Conn
	all     *connections
	address string
	running int           // requests; all.mu is held
	place   *list.Element // nil while requests run; all.mu is held
	once    sync.Once
}

// admit counts a connection, or closes it and returns nil when there is no
// room and nothing to close for it.
func (a *connections) admit(c net.Conn) *connection {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		host = c.RemoteAddr().String()
	}
	for {
		a.mu.Lock()
		var victim *connection
		switch {
		case a.addresses[host] >= a.perAddress:
			victim = a.longestQuiet(host)
		case a.open >= a.most:
			victim = a.longestQuiet("")
		default:
			a.open++
			a.addresses[host]++
			t := &connection{Conn: c, all: a, address: host}
			t.place = a.quiet.PushBack(t)
			a.mu.Unlock()
			return t
		}
		a.mu.Unlock()
		if victim == nil {
			_ = c.Close()
			return nil
		}
		_ = victim.Close()
	}
}

// drop closes the connection that has been quiet for longest.
func (a *connections) drop() {
	a.mu.Lock()
	victim := a.longestQuiet("")
	a.mu.Unlock()
	if victim != nil {
		_ = victim.Close()
	}
}

// longestQuiet is that of an address, "" for any; a.mu is held.
func (a *connections) longestQuiet(address string) *connection {
	for e := a.quiet.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*connection); address == "" || c.address == address {
			return c
		}
	}
	return nil
}

func (c *connection) begin() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.running++; c.place != nil {
		c.all.quiet.Remove(c.place)
		c.place = nil
	}
}

func (c *connection) end() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.running--; c.running == 0 && c.address != "" {
		c.place = c.all.quiet.PushBack(c)
	}
}

// Close is also called by several at once.
func (c *connection) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		a := c.all
		a.mu.Lock()
		defer a.mu.Unlock()
		if c.place != nil {
			a.quiet.Remove(c.place)
			c.place = nil
		}
		a.open--
		if a.addresses[c.address]--; a.addresses[c.address] == 0 {
			delete(a.addresses, c.address)
		}
		c.address = "" // counted no more
	})
	return err
}

type connectionKey struct{}

// withConnection is http.Server's ConnContext.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if p, ok := c.(*peeked); ok {
		c = p.Conn
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// busy marks a request's connection while the request runs.
func busy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
			c.begin()
			defer c.end()
		}
		next.ServeHTTP(w, r)
	})
}
