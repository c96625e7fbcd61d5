package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kubistro/internal/session"
)

// port is a server on loopback as runServe makes it.
type port struct {
	address string
	client  *http.Client
	stalled map[string]func(t *testing.T) net.Conn // ways to open a connection that says nothing more
}

func openPort(t *testing.T, open *connections, handler http.HandlerFunc, wrap func(net.Listener) net.Listener) *port {
	t.Helper()
	cert, ca, err := servingCertificate(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &port{address: l.Addr().String()}
	server := httpServer(handler, slog.New(slog.DiscardHandler))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listenBoth(wrap(l), cert, open)) }()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	config := &tls.Config{RootCAs: pool, ServerName: session.ServerName}
	p.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve = %v, want %v", err, http.ErrServerClosed)
		}
	})
	says := func(text string) func(*testing.T) net.Conn {
		return func(t *testing.T) net.Conn {
			c, err := net.Dial("tcp", p.address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			_, _ = io.WriteString(c, text) // the server may have closed it already
			return c
		}
	}
	p.stalled = map[string]func(t *testing.T) net.Conn{
		"nothing":       says(""),
		"half a header": says("GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "),
		"half a hello":  says("\x16\x03\x01\x02\x00\x01\x00"),
		"TLS and then nothing": func(t *testing.T) net.Conn {
			c := tls.Client(says("")(t), config)
			_ = c.Handshake() // the server may have closed it already
			return c
		},
	}
	return p
}

func (p *port) get(scheme, path string) (string, error) {
	resp, err := p.client.Get(scheme + "://" + p.address + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func asIs(l net.Listener) net.Listener { return l }

func TestStalledConnectionsStopNobody(t *testing.T) {
	const most = 8
	begun, end := make(chan struct{}), make(chan struct{})
	p := openPort(t, newConnections(most, most), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			close(begun)
			<-end
		}
		fmt.Fprint(w, "served")
	}, asIs)
	long := make(chan error, 1)
	go func() {
		body, err := p.get("http", "/long")
		if err == nil && body != "served" {
			err = errors.New(body)
		}
		long <- err
	}()
	<-begun
	for name, stall := range p.stalled {
		t.Run(name, func(t *testing.T) {
			for range 3 * most {
				stall(t)
			}
			for _, scheme := range []string{"http", "https"} {
				if body, err := p.get(scheme, "/"); body != "served" {
					t.Errorf("%s: %q %v", scheme, body, err)
				}
			}
		})
	}
	close(end)
	if err := <-long; err != nil {
		t.Errorf("a running request: %v", err)
	}
}

func TestStalledConnectionsEnd(t *testing.T) {
	p := openPort(t, newConnections(100, 100), func(http.ResponseWriter, *http.Request) {}, asIs)
	opened := map[string]net.Conn{}
	for name, stall := range p.stalled {
		opened[name] = stall(t)
	}
	for name, c := range opened {
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		var timeout net.Error
		if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("%s: still open after a minute", name)
		}
	}
}

// from is a connection of another address that knows whether it was closed.
type from struct {
	net.Conn
	address string
	closed  atomic.Bool
}

func (f *from) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(f.address), Port: 1}
}

func (f *from) Close() error {
	f.closed.Store(true)
	return nil
}

func TestRoomIsMadeByTheLongestQuiet(t *testing.T) {
	a := newConnections(4, 2)
	x1, x2, x3, y1, z1, z2, z3 := &from{address: "192.0.2.1"}, &from{address: "192.0.2.1"}, &from{address: "192.0.2.1"},
		&from{address: "192.0.2.2"}, &from{address: "192.0.2.3"}, &from{address: "192.0.2.3"}, &from{address: "192.0.2.3"}
	check := func(when string, closed ...*from) {
		t.Helper()
		for i, c := range []*from{x1, x2, x3, y1, z1, z2, z3} {
			want := false
			for _, w := range closed {
				want = want || w == c
			}
			if c.closed.Load() != want {
				t.Errorf("%s: connection %d closed = %v", when, i, !want)
			}
		}
	}
	first, yours := a.admit(x1), a.admit(y1)
	a.admit(x2)
	first.begin()
	first.end() // heard of since
	check("within the bounds")
	a.admit(x3)
	check("one of an address too many", x2)
	a.admit(z1)
	yours.begin()
	a.admit(z2)
	check("one too many of all", x2, x1)
	held := a.admit(x1)
	if held == nil {
		t.Fatal("refused although one was quiet")
	}
	check("again", x2, x1, x3)
	for e := a.quiet.Front(); e != nil; e = a.quiet.Front() {
		e.Value.(*connection).begin()
	}
	if a.admit(z3) != nil {
		t.Error("admitted although all are busy")
	}
	check("all are busy", x2, x1, x3, z3)
	yours.end()
	for range 2 {
		if err := yours.Close(); err != nil {
			t.Error(err)
		}
	}
	if a.open != 3 || a.quiet.Len() != 0 || a.addresses["192.0.2.2"] != 0 {
		t.Errorf("after one was closed twice: %d open, %d quiet, %v", a.open, a.quiet.Len(), a.addresses)
	}
}

// failing is a listener that has no file descriptor left for a while.
type failing struct {
	net.Listener
	left atomic.Int64
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

func TestListenerSurvivesFailures(t *testing.T) {
	p := openPort(t, newConnections(4, 4), func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") }, func(l net.Listener) net.Listener {
		f := &failing{Listener: l}
		f.left.Store(3)
		return f
	})
	if body, err := p.get("http", "/"); body != "served" {
		t.Errorf("after failures: %q %v", body, err)
	}
}
