// Package relay opens a loopback port whose connections are passed on to what a
// function dials: for programs that know TCP only, and API servers that listen elsewhere.
package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// Relay is an open port. Close ends it with all its connections.
type Relay struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	mu       sync.Mutex
	open     map[net.Conn]bool
	wg       sync.WaitGroup
}

// Listen opens a port of the system's choice on 127.0.0.1.
func Listen(dial func(context.Context) (net.Conn, error)) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{listener: l, dial: dial, open: map[net.Conn]bool{}}
	r.wg.Go(r.accept)
	return r, nil
}

// Address is host and port.
func (r *Relay) Address() string { return r.listener.Addr().String() }

func (r *Relay) accept() {
	for {
		in, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		r.wg.Go(func() { r.pass(in) })
	}
}

// pass relays until one side ends.
func (r *Relay) pass(in net.Conn) {
	out, err := r.dial(context.Background())
	if err != nil {
		in.Close()
		return
	}
	if !r.track(in, out) {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			io.Copy(way[0], way[1])
			in.Close()
			out.Close()
		})
	}
	both.Wait()
	r.mu.Lock()
	delete(r.open, in)
	delete(r.open, out)
	r.mu.Unlock()
}

// track notes connections for Close; false when it is too late, and they are closed.
func (r *Relay) track(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		if r.open == nil {
			c.Close()
		} else {
			r.open[c] = true
		}
	}
	return r.open != nil
}

// Close ends the port and all connections.
func (r *Relay) Close() {
	r.listener.Close()
	r.mu.Lock()
	for c := range r.open {
		c.Close()
	}
	r.open = nil
	r.mu.Unlock()
	r.wg.Wait()
}
