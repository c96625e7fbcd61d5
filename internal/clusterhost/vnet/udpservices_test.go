package vnet

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

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
