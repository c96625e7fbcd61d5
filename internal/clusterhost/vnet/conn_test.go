package vnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newNetwork makes a network that is closed at the end of the test.
func newNetwork(t testing.TB) *Network {
	t.Helper()
	n := New()
	t.Cleanup(func() { n.Close() })
	return n
}

func attach(t testing.TB, n *Network, name string, ips ...string) *Interface {
	t.Helper()
	var addrs []netip.Addr
	for _, ip := range ips {
		addrs = append(addrs, netip.MustParseAddr(ip))
	}
	i, err := n.Attach(name, addrs...)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// connected makes a connection from a to b's port 80.
func connected(t testing.TB, a, b *Interface) (client, server net.Conn) {
	t.Helper()
	l, err := b.Listen(":80")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = a.DialContext(t.Context(), "tcp", net.JoinHostPort(b.IPs()[0].String(), "80"))
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func two(t testing.TB) (a, b *Interface) {
	n := newNetwork(t)
	return attach(t, n, "a", "10.244.1.2"), attach(t, n, "b", "10.244.2.2")
}

func TestConnBehavesAsNetConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		n := New()
		a, err := n.Attach("a", netip.MustParseAddr("10.0.0.1"))
		if err != nil {
			return nil, nil, nil, err
		}
		l, err := a.Listen("127.0.0.1:0")
		if err != nil {
			return nil, nil, nil, err
		}
		c1, err = a.DialContext(context.Background(), "tcp", l.Addr().String())
		if err != nil {
			return nil, nil, nil, err
		}
		c2, err = l.Accept()
		return c1, c2, func() { n.Close() }, err
	})
}

func TestHalfClose(t *testing.T) {
	a, b := two(t)
	client, server := connected(t, a, b)
	if _, err := client.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if err := client.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(server)
	if err != nil || string(got) != "question" {
		t.Fatalf("server read %q, %v", got, err)
	}
	if _, err := server.Write([]byte("answer")); err != nil {
		t.Fatalf("the other direction must stay open: %v", err)
	}
	server.Close()
	got, err = io.ReadAll(client)
	if err != nil || string(got) != "answer" {
		t.Fatalf("client read %q, %v", got, err)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Fatalf("write after CloseWrite: %v, want EPIPE", err)
	}
}

// A peer that answers and closes while this end still sends: TCP takes what is
// sent until RST arrives, and the answer can be read.
func TestWriteToAClosedPeerLeavesItsAnswer(t *testing.T) {
	a, b := two(t)
	client, server := connected(t, a, b)
	if _, err := server.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if _, err := client.Write([]byte("late")); err != nil {
		t.Fatalf("write before the end was read: %v", err)
	}
	got, err := io.ReadAll(client)
	if err != nil || string(got) != "answer" {
		t.Fatalf("client read %q, %v", got, err)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Fatalf("write after the end was read: %v, want EPIPE", err)
	}

	client, server = connected(t, a, b)
	server.Close()
	var err2 error
	for sent := 0; err2 == nil && sent <= 2*maxLost; sent += 1 << 10 {
		_, err2 = client.Write(make([]byte, 1<<10))
	}
	if !errors.Is(err2, syscall.EPIPE) {
		t.Fatalf("a writer that never reads gets %v, want EPIPE in the end", err2)
	}
}

func TestBuffersAreBoundedAndGivenBack(t *testing.T) {
	a, b := two(t)
	client, server := connected(t, a, b)
	client.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
	sent, err := client.Write(make([]byte, 1<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("write to a peer that doesn't read: %v, want a deadline", err)
	}
	if sent == 0 || sent > largeBuffer {
		t.Fatalf("%d bytes were taken, want at most %d", sent, largeBuffer)
	}
	if got := a.stack.net.Stats().BufferBytes; got != largeBuffer {
		t.Fatalf("buffers hold %d bytes, want %d", got, largeBuffer)
	}
	if _, err := io.ReadFull(server, make([]byte, sent)); err != nil {
		t.Fatal(err)
	}
	client.Close()
	server.Close()
	if got := a.stack.net.Stats(); got.BufferBytes != 0 || got.Conns != 0 {
		t.Fatalf("after both ends closed: %+v", got)
	}
}

func TestLargeTransferBothWays(t *testing.T) {
	a, b := two(t)
	client, server := connected(t, a, b)
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	var wg sync.WaitGroup
	for _, c := range []net.Conn{client, server} {
		wg.Go(func() {
			if _, err := c.Write(data); err != nil {
				t.Error(err)
			}
			c.(*conn).CloseWrite()
		})
		wg.Go(func() {
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("read %d bytes, %v; want the %d that were sent", len(got), err, len(data))
			}
		})
	}
	wg.Wait()
}

func TestErrorsOfARealNetwork(t *testing.T) {
	a, b := two(t)
	l, err := b.Listen(":80")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := func(address string) error {
		c, err := a.DialContext(t.Context(), "tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	}
	for _, tc := range []struct {
		name, address string
		want          error
	}{
		{"nobody listens", "10.244.2.2:81", syscall.ECONNREFUSED},
		{"no such address", "10.244.9.9:80", syscall.EHOSTUNREACH},
		{"an address of the host", "192.168.0.1:22", syscall.EHOSTUNREACH},
		{"loopback is the own one", "127.0.0.1:80", syscall.ECONNREFUSED},
		{"other family", "[2001:db8::1]:80", syscall.ENETUNREACH},
		{"open", "10.244.2.2:80", nil},
		{"mapped", "[::ffff:10.244.2.2]:80", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := dial(tc.address)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if oe := (*net.OpError)(nil); tc.want != nil && !errors.As(err, &oe) {
				t.Fatalf("%T is not a *net.OpError", err)
			}
		})
	}
	if err := dial("10.244.2.2:81"); err.Error() != "dial tcp 10.244.2.2:81: connect: connection refused" {
		t.Errorf("text: %v", err)
	}
	if _, err := b.Listen("10.244.2.2:80"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("second listener: %v, want EADDRINUSE", err)
	}
	if _, err := b.Listen("10.244.1.2:81"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("foreign address: %v, want EADDRNOTAVAIL", err)
	}
	if _, err := a.stack.net.Attach("c", netip.MustParseAddr("10.244.1.2")); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("taken address: %v, want EADDRINUSE", err)
	}
}

func TestAddresses(t *testing.T) {
	a, b := two(t)
	client, server := connected(t, a, b)
	if client.LocalAddr().String() != server.RemoteAddr().String() {
		t.Errorf("client %v is seen as %v", client.LocalAddr(), server.RemoteAddr())
	}
	if got := server.LocalAddr().String(); got != "10.244.2.2:80" {
		t.Errorf("server's address %s", got)
	}
	if p := client.LocalAddr().(*net.TCPAddr).Port; p < firstEphemeral || p > lastEphemeral {
		t.Errorf("client's port %d is not ephemeral", p)
	}
}

func TestLoopbackIsPerInterface(t *testing.T) {
	a, b := two(t)
	l, err := a.Listen("127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tc := range []struct {
		from    *Interface
		address string
		want    error
	}{
		{a, "127.0.0.1:8080", nil},
		{a, "localhost:8080", nil},
		{b, "127.0.0.1:8080", syscall.ECONNREFUSED},
		{b, "10.244.1.2:8080", syscall.ECONNREFUSED}, // bound to loopback only
		{a, "10.244.1.2:8080", syscall.ECONNREFUSED},
	} {
		c, err := tc.from.DialContext(t.Context(), "tcp", tc.address)
		if !errors.Is(err, tc.want) {
			t.Errorf("%s to %s: %v, want %v", tc.from.Name(), tc.address, err, tc.want)
		}
		if err == nil {
			c.Close()
		}
	}
}

func TestCloseOfInterfaceResets(t *testing.T) {
	a, b := two(t)
	client, server := connected(t, a, b)
	if _, err := server.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	l, err := b.Listen(":81")
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if got, err := io.ReadAll(client); string(got) != "last" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("peer read %q, %v; want the data, then ECONNRESET", got, err)
	}
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("own end: %v, want net.ErrClosed", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("listener: %v, want net.ErrClosed", err)
	}
	if _, err := a.DialContext(t.Context(), "tcp", "10.244.2.2:81"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("dial: %v, want EHOSTUNREACH", err)
	}
	attach(t, a.stack.net, "b again", "10.244.2.2")
}

func TestBacklogIsBounded(t *testing.T) {
	a, b := two(t)
	l, err := b.Listen(":80")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range backlog {
		c, err := a.DialContext(t.Context(), "tcp", "10.244.2.2:80")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = a.DialContext(ctx, "tcp", "10.244.2.2:80")
	var ne net.Error
	if !errors.As(err, &ne) || !ne.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("dial to a full backlog: %v, want a timeout", err)
	}
	var wg sync.WaitGroup
	for range 3 { // each waits until Accept makes room
		wg.Go(func() {
			c, err := a.DialContext(t.Context(), "tcp", "10.244.2.2:80")
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	for range backlog + 3 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	wg.Wait()
}

func TestProcessViewClosesItsOwnSockets(t *testing.T) {
	a, b := two(t)
	p := b.Process()
	l, err := p.Listen(":80")
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Listen(":81")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	client, err := a.DialContext(t.Context(), "tcp", "10.244.2.2:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("peer of an ended process: %v, want EOF", err)
	}
	if _, err := p.Listen(":82"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("an ended process listens: %v", err)
	}
	if _, err := b.Process().Listen(":80"); err != nil {
		t.Errorf("the next process can't have the port: %v", err)
	}
	if c, err := a.DialContext(t.Context(), "tcp", "10.244.2.2:81"); err != nil {
		t.Errorf("sockets outside of the view must stay: %v", err)
	} else {
		c.Close()
	}
}

func TestLimits(t *testing.T) {
	a, b := two(t)
	var err error
	for range maxListeners + 1 {
		if _, err = b.Listen(":0"); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("listeners: %v, want EMFILE", err)
	}
	l, err := a.Listen(":80")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	})
	for range maxConnsOut + 1 {
		if _, err = b.DialContext(t.Context(), "tcp", "10.244.1.2:80"); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("connections: %v, want EMFILE", err)
	}
	a.Close()
	wg.Wait()
	if got := a.stack.net.Stats().Conns; got != maxConnsOut {
		t.Errorf("%d ends are left, want those of the other interface", got)
	}
}
