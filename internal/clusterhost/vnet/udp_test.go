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

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
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

// withDial adds Service dial: port 80 is 8080 of the cooks for both protocols, with node port 30080 for UDP and
// 30081 for TCP.
func withDial(t *testing.T, w *town) (*corev1.Service, *discoveryv1.EndpointSlice) {
	t.Helper()
	s := clusterIPService("default", "dial", "10.96.0.40")
	s.Spec.Type = corev1.ServiceTypeNodePort
	tcp := s.Spec.Ports[0]
	tcp.NodePort = 30081
	udp := tcp
	udp.Name, udp.Protocol, udp.NodePort = "udp", corev1.ProtocolUDP, 30080
	s.Spec.Ports = []corev1.ServicePort{tcp, udp}
	slice := on(sliceOf("default", "dial", "dial-a", "10.244.1.2", "10.244.2.2"))
	slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: ptr("udp"), Port: ptr(int32(8080)), Protocol: ptr(corev1.ProtocolUDP)})
	w.table.setService(s)
	w.table.setSlice(slice)
	for ip, i := range w.cooks {
		echo(t, i, ip, ":8080")
	}
	return s, slice
}

func TestUDPServices(t *testing.T) {
	w := newTown(t)
	s, slice := withDial(t, w)
	reach := func(i *Interface, to string) (string, error) { return say(t, connectedUDP(t, i, to), "x", long) }
	seen := map[string]bool{}
	for range 100 {
		got, err := reach(w.client, "10.96.0.40:80")
		if err != nil {
			t.Fatal(err)
		}
		cook, client, _ := strings.Cut(got, " ")
		seen[cook] = true
		if !strings.HasPrefix(client, "10.244.1.9:") {
			t.Fatalf("a ClusterIP hides the client: %q", got)
		}
	}
	if !seen["10.244.1.2"] || !seen["10.244.2.2"] || len(seen) != 2 {
		t.Errorf("sockets went to %v", seen)
	}
	c := connectedUDP(t, w.client, "10.96.0.40:80") // one flow keeps its endpoint while it serves
	first, _ := say(t, c, "x", long)
	for range 20 {
		if got, err := say(t, c, "x", long); got != first || err != nil {
			t.Fatalf("the same flow had %q and %q, %v", first, got, err)
		}
	}
	other := "10.244.1.2"
	if strings.HasPrefix(first, other) {
		other = "10.244.2.2"
	}
	for k, e := range slice.Endpoints {
		if e.Addresses[0] != other {
			slice.Endpoints[k].Conditions = discoveryv1.EndpointConditions{Ready: ptr(false), Serving: ptr(false)}
		}
	}
	w.table.setSlice(slice)
	if got, err := say(t, c, "x", long); !strings.HasPrefix(got, other) || err != nil {
		t.Errorf("with its endpoint gone the flow got %q, %v", got, err)
	}
	if got, err := reach(w.guest, "172.18.0.5:30080"); !strings.Contains(got, " 172.18.0.5:") || err != nil {
		t.Errorf("node port: %q, %v; want the node's address as the client's", got, err)
	}
	if _, err := reach(w.guest, "172.18.0.5:30081"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a datagram to TCP's node port: %v", err)
	}
	s.Spec.Ports = s.Spec.Ports[:1] // only TCP
	w.table.setService(s)
	if _, err := reach(w.client, "10.96.0.40:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a Service without the protocol: %v", err)
	}
}

// TestUDPBehindOneAddress has two clients with the same port behind a node's address.
func TestUDPBehindOneAddress(t *testing.T) {
	w := newTown(t)
	withDial(t, w)
	guests := []*Interface{w.guest, attach(t, w.net, "street-2", "172.18.0.2")}
	to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("172.18.0.5:30080"))
	var sockets []net.PacketConn
	for range 40 { // both endpoints get both guests' flows
		for _, g := range guests {
			l, err := g.ListenPacket(":0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			sockets = append(sockets, l)
		}
	}
	for k := range guests {
		l, err := guests[k].ListenPacket(":5353")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		sockets = append(sockets, l)
	}
	clients := map[string]bool{}
	for k, l := range sockets {
		if _, err := l.WriteTo([]byte(strconv.Itoa(k)), to); err != nil {
			t.Fatal(err)
		}
		l.SetReadDeadline(time.Now().Add(long))
		b := make([]byte, 100)
		n, from, err := l.ReadFrom(b)
		f := strings.Fields(string(b[:n]))
		if err != nil || len(f) != 3 || f[2] != strconv.Itoa(k) || from.String() != to.String() {
			t.Fatalf("%d: %q from %v, %v", k, b[:n], from, err)
		}
		if at := f[0] + f[1]; clients[at] {
			t.Errorf("two flows look like %s", at)
		} else {
			clients[at] = true
		}
	}
}

func TestUDPHostPorts(t *testing.T) {
	w := newTown(t)
	echo(t, w.cooks["10.244.1.2"], "udp", ":8080")
	node := w.nodes["kitchen-1"]
	w.cooks["10.244.1.2"].MapHostPort(node, "UDP", netip.Addr{}, 8080, 8080)
	w.cooks["10.244.2.2"].MapHostPort(node, "TCP", netip.MustParseAddr("127.0.0.1"), 8080, 8080)
	for _, tc := range []struct {
		from *Interface
		to   string
	}{{w.guest, "172.18.0.3:8080"}, {w.cooks["10.244.3.2"], "172.18.0.3:8080"}, {node, "172.18.0.3:8080"}, {node, "127.0.0.1:8080"}} {
		if got, err := say(t, connectedUDP(t, tc.from, tc.to), "x", long); !strings.HasPrefix(got, "udp ") || err != nil {
			t.Errorf("%s from %s: %q, %v", tc.to, tc.from.Name(), got, err)
		}
	}
	for _, tc := range []struct {
		from  *Interface
		to    string
		works bool
	}{{node, "127.0.0.1:8080", true}, {node, "172.18.0.3:8080", false}, {w.guest, "172.18.0.3:8080", false}} {
		c, err := tc.from.DialContext(t.Context(), "tcp", tc.to)
		if err == nil {
			c.Close()
		}
		if (err == nil) != tc.works {
			t.Errorf("TCP %s from %s: %v", tc.to, tc.from.Name(), err)
		}
	}
}

func TestUDPPolicies(t *testing.T) {
	w, p := guarded(t)
	echo(t, w.cooks["10.244.2.2"], "grill", ":8080")
	p.setPolicy(netpol(t, "udp-only", `{podSelector: {matchLabels: {app: grill}}, ingress: [{ports: [{protocol: UDP, port: 8080}]}]}`))
	c := connectedUDP(t, w.client, "10.244.2.2:8080")
	if got, err := say(t, c, "x", long); got == "" || err != nil {
		t.Fatalf("what the policy allows: %q, %v", got, err)
	}
	p.setPolicy(netpol(t, "udp-only", `{podSelector: {matchLabels: {app: grill}}, ingress: [{ports: [{protocol: TCP, port: 8080}]}]}`))
	if got, err := say(t, c, "x", long); got == "" || err != nil {
		t.Errorf("an open flow ended with a policy: %q, %v", got, err)
	}
	if got, err := say(t, connectedUDP(t, w.client, "10.244.2.2:8080"), "x", short); got != "" || err != nil {
		t.Errorf("UDP where only TCP is allowed: %q, %v; want silence", got, err)
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
