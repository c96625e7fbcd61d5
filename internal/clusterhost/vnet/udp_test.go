package vnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// echo answers each datagram with "NAME CLIENT TEXT" until the end of the test.
func echo(t testing.TB, i *Interface, name, address string) {
	t.Helper()
	l, err := i.ListenPacket(address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 2048)
		for {
			n, from, err := l.ReadFrom(b)
			if err != nil {
				return
			}
			l.WriteTo([]byte(name+" "+from.String()+" "+string(b[:n])), from)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

// connectedUDP opens a socket to an address.
func connectedUDP(t testing.TB, i *Interface, to string) net.Conn {
	t.Helper()
	c, err := i.DialContext(t.Context(), "udp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// say sends a text and returns the answer; an empty one is silence.
func say(t testing.TB, c net.Conn, text string, patience time.Duration) (string, error) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	b := make([]byte, 2048)
	n, err := c.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", nil
	}
	return string(b[:n]), err
}

// long is patience with an answer that comes; short with one that must not.
const (
	long  = time.Minute
	short = 50 * time.Millisecond
)

func TestUDP(t *testing.T) {
	a, b := two(t)
	echo(t, b, "b", ":53")
	c := connectedUDP(t, a, "10.244.2.2:53")
	got, err := say(t, c, "hello", long)
	if want := "b " + c.LocalAddr().String() + " hello"; got != want || err != nil {
		t.Errorf("answer %q, %v; want %q", got, err, want)
	}
	if c.RemoteAddr().String() != "10.244.2.2:53" || !strings.HasPrefix(c.LocalAddr().String(), "10.244.1.2:") {
		t.Errorf("addresses %v, %v", c.LocalAddr(), c.RemoteAddr())
	}
	if l, err := b.Listen(":53"); err != nil {
		t.Errorf("TCP has ports of its own: %v", err)
	} else {
		l.Close()
	}
	if _, err := b.ListenPacket("10.244.2.2:53"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port twice: %v", err)
	}
	if _, err := b.ListenPacket("10.244.9.9:53"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("somebody else's address: %v", err)
	}
	nobody := connectedUDP(t, a, "10.244.2.2:54")
	if _, err := say(t, nobody, "anybody?", long); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a port without a socket: %v", err)
	}
	if got, err := say(t, connectedUDP(t, a, "10.244.9.9:53"), "anybody?", short); got != "" || err != nil {
		t.Errorf("an address that nobody has: %q, %v; want silence", got, err)
	}
	if _, err := c.Write(make([]byte, maxDatagram+1)); !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("too long: %v", err)
	}
	if _, err := a.DialContext(t.Context(), "udp6", "[fd00::1]:53"); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("a family that the interface hasn't: %v", err)
	}
	echo(t, a, "self", "127.0.0.1:5000")
	if got, err := say(t, connectedUDP(t, a, "localhost:5000"), "me", long); !strings.HasPrefix(got, "self 127.0.0.1:") || err != nil {
		t.Errorf("loopback: %q, %v", got, err)
	}
}

func TestUDPDatagramsStayWhole(t *testing.T) {
	a, b := two(t)
	l, err := b.ListenPacket(":53")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := connectedUDP(t, a, "10.244.2.2:53")
	for _, text := range []string{"one", "", "three and more"} {
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 5)
	for _, want := range []string{"one", "", "three"} {
		n, from, err := l.ReadFrom(buf)
		if string(buf[:n]) != want || err != nil || from.String() != c.LocalAddr().String() {
			t.Errorf("got %q from %v, %v; want %q", buf[:n], from, err, want)
		}
	}
	if _, err := l.(net.Conn).Write([]byte("x")); !errors.Is(err, syscall.EDESTADDRREQ) {
		t.Errorf("Write without a peer: %v", err)
	}
	if _, err := c.(net.PacketConn).WriteTo([]byte("x"), l.LocalAddr()); !errors.Is(err, net.ErrWriteToConnected) {
		t.Errorf("WriteTo of a connected socket: %v", err)
	}
	c.Close()
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
	if _, err := c.Read(buf); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
}

// TestUDPIsBounded sends to a socket that nobody reads, and from one to many.
func TestUDPIsBounded(t *testing.T) {
	a, b := two(t)
	n := a.stack.net
	var sinks []net.PacketConn
	for k := range maxSocketsHere {
		l, err := b.ListenPacket(":" + strconv.Itoa(1000+k))
		if err != nil {
			t.Fatal(err)
		}
		sinks = append(sinks, l)
	}
	if _, err := b.ListenPacket(":0"); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("one more socket: %v", err)
	}
	l, err := a.ListenPacket(":0")
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("x"), 60000)
	for _, sink := range sinks {
		to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("10.244.2.2"), uint16(sink.LocalAddr().(*net.UDPAddr).Port)))
		for range 10 {
			if _, err := l.WriteTo(large, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := n.Stats(); got.BufferBytes > datagramBudget || got.Flows > maxFlowsOut {
		t.Errorf("the network holds %+v", got)
	}
	b.Close()
	l.Close()
	if got := n.Stats(); got.BufferBytes != 0 || got.Flows != 0 || got.Sockets != 0 {
		t.Errorf("after closing the network still holds %+v", got)
	}
}

func TestUDPSilence(t *testing.T) {
	a, b := two(t)
	echo(t, b, "b", ":53")
	c := connectedUDP(t, a, "10.244.2.2:53")
	b.SetDown(true)
	if got, err := say(t, c, "lost", short); got != "" || err != nil {
		t.Errorf("through silence: %q, %v", got, err)
	}
	b.SetDown(false)
	if got, err := say(t, c, "back", long); !strings.HasSuffix(got, " back") || err != nil {
		t.Errorf("after the silence: %q, %v", got, err)
	}
}

func TestUDPSocketsEndWithTheirProcess(t *testing.T) {
	a, b := two(t)
	process := b.Process()
	l, err := process.ListenPacket(":53")
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error)
	go func() {
		_, _, err := l.ReadFrom(make([]byte, 1))
		read <- err
	}()
	process.Close()
	if err := <-read; !errors.Is(err, net.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if _, err := say(t, connectedUDP(t, a, "10.244.2.2:53"), "anybody?", long); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the process: %v", err)
	}
}

func TestUDPFlowsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t)
		l, err := b.ListenPacket(":53")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c := connectedUDP(t, a, "10.244.2.2:53")
		policies := newPolicyTable()
		policies.setPod(podObject("default", "a", "10.244.1.2", map[string]string{"app": "a"}))
		policies.setPod(podObject("default", "b", "10.244.2.2", nil))
		policies.setPolicy(netpol(t, "closed", `{podSelector: {matchLabels: {app: a}}, policyTypes: [Ingress]}`))
		a.stack.net.SetPolicies(policies)
		answer := func(age time.Duration) bool { // an answer comes back although nobody may reach a
			t.Helper()
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 10)
			_, from, err := l.ReadFrom(buf)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(age)
			if _, err := l.WriteTo([]byte("y"), from); err != nil {
				t.Fatal(err)
			}
			c.SetReadDeadline(time.Now().Add(time.Second))
			_, err = c.Read(buf)
			return err == nil
		}
		if !answer(flowTimeout - time.Second) {
			t.Error("an answer in time was lost")
		}
		if answer(flowTimeoutStream + time.Second) {
			t.Error("an answer to a flow that is over came through")
		}
	})
}
