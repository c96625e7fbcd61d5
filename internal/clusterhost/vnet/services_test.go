package vnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func ptr[T any](v T) *T { return &v }

// clusterIPService has one port, 80, whose target port is named http.
func clusterIPService(namespace, name, ip string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
}

// sliceOf has port http 8080 and the endpoints written as "IP", "IP:unready" or "IP:leaving".
func sliceOf(namespace, service, name string, endpoints ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr("http"), Port: ptr(int32(8080)), Protocol: ptr(corev1.ProtocolTCP)}},
	}
	for _, e := range endpoints {
		ip, state, _ := strings.Cut(e, ":")
		c := discoveryv1.EndpointConditions{Ready: ptr(state == ""), Serving: ptr(state != "unready"), Terminating: ptr(state == "leaving")}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{ip}, Conditions: c})
	}
	return s
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// house is a network with a client, three cooks that answer with their address on 8080, and a table.
type house struct {
	net    *Network
	table  *ServiceTable
	client *Interface
	cooks  map[string]*Interface
}

func newHouse(t *testing.T) *house {
	h := &house{net: newNetwork(t), table: newServiceTable(), cooks: map[string]*Interface{}}
	h.net.SetServices(h.table)
	h.client = attach(t, h.net, "client", "10.244.1.9")
	h.client.SetDNS(DNSConfig{
		Nameserver: netip.MustParseAddr("10.96.0.10"), Ndots: 5,
		Search: []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local"},
	})
	for _, ip := range []string{"10.244.1.2", "10.244.2.2", "10.244.3.2"} {
		h.cooks[ip] = attach(t, h.net, ip, ip)
		l, err := h.cooks[ip].Listen(":8080")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
				fmt.Fprintf(c, "%s sees %s", ip, host)
				c.Close()
			}
		}()
		t.Cleanup(func() { l.Close(); <-done })
	}
	h.table.setNamespace(namespace("default"))
	h.table.setNamespace(namespace("kube-system"))
	return h
}

// call returns what answers at an address.
func (h *house) call(t *testing.T, from *Interface, address string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // the machine may be busy with others
	defer cancel()
	c, err := from.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if got := c.RemoteAddr().String(); !strings.HasPrefix(address, got) && net.ParseIP(strings.Split(address, ":")[0]) != nil {
		t.Errorf("the client of %s sees its peer as %s", address, got)
	}
	b := make([]byte, 100)
	n, err := c.Read(b)
	return string(b[:n]), err
}

// calls counts who answered in n calls.
func (h *house) calls(t *testing.T, address string, n int) map[string]int {
	t.Helper()
	count := map[string]int{}
	for range n {
		got, err := h.call(t, h.client, address)
		if err != nil {
			t.Fatalf("call %s: %v", address, err)
		}
		who, _, _ := strings.Cut(got, " ")
		count[who]++
	}
	return count
}

func TestServiceSpreadsOverReadyEndpoints(t *testing.T) {
	h := newHouse(t)
	h.table.setService(clusterIPService("default", "web", "10.96.0.20"))
	h.table.setSlice(sliceOf("default", "web", "web-a", "10.244.1.2", "10.244.2.2:unready"))
	h.table.setSlice(sliceOf("default", "web", "web-b", "10.244.3.2"))
	got := h.calls(t, "10.96.0.20:80", 60)
	if len(got) != 2 || got["10.244.1.2"] < 10 || got["10.244.3.2"] < 10 {
		t.Errorf("calls went to %v, want both ready ones and only them", got)
	}
	h.table.setSlice(sliceOf("default", "web", "web-a", "10.244.1.2:unready", "10.244.2.2:leaving"))
	h.table.deleteSlice(sliceOf("default", "web", "web-b"))
	if got := h.calls(t, "10.96.0.20:80", 5); got["10.244.2.2"] != 5 {
		t.Errorf("without a ready one calls went to %v, want the one that leaves", got)
	}
}

func TestServiceRejections(t *testing.T) {
	h := newHouse(t)
	h.table.setService(clusterIPService("default", "empty", "10.96.0.20"))
	h.table.setService(clusterIPService("default", "wrongport", "10.96.0.21"))
	wrong := sliceOf("default", "wrongport", "wrongport-a", "10.244.1.2")
	wrong.Ports[0].Port = ptr(int32(9999))
	h.table.setSlice(wrong)
	h.table.setService(clusterIPService("default", "stray", "10.96.0.22"))
	h.table.setSlice(sliceOf("default", "stray", "stray-a", "192.168.1.1"))
	for _, tc := range []struct {
		name, address string
		want          error
	}{
		{"no endpoints", "10.96.0.20:80", syscall.ECONNREFUSED},
		{"no such port", "10.96.0.20:81", syscall.ECONNREFUSED},
		{"target port that nobody listens on", "10.96.0.21:80", syscall.ECONNREFUSED},
		{"endpoint outside of the network", "10.96.0.22:80", syscall.EHOSTUNREACH},
		{"no such Service", "10.96.0.99:80", syscall.EHOSTUNREACH},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := h.call(t, h.client, tc.address); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
	h.table.deleteService(clusterIPService("default", "empty", "10.96.0.20"))
	if _, err := h.call(t, h.client, "10.96.0.20:80"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("a deleted Service: %v, want EHOSTUNREACH", err)
	}
}

func TestHandMadeSliceBeforeItsService(t *testing.T) {
	h := newHouse(t)
	h.table.setSlice(sliceOf("default", "web", "by-hand", "10.244.2.2"))
	h.table.setService(clusterIPService("default", "web", "10.96.0.20"))
	if got := h.calls(t, "10.96.0.20:80", 3); got["10.244.2.2"] != 3 {
		t.Errorf("calls went to %v", got)
	}
	moved := sliceOf("default", "other", "by-hand", "10.244.2.2")
	h.table.setSlice(moved) // the label now names another Service
	if _, err := h.call(t, h.client, "10.96.0.20:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the slice moved: %v, want ECONNREFUSED", err)
	}
}

func TestSessionAffinity(t *testing.T) {
	h := newHouse(t)
	now := time.Unix(1000, 0)
	h.table.now = func() time.Time { return now }
	s := clusterIPService("default", "web", "10.96.0.20")
	s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr(int32(60))}}
	h.table.setService(s)
	h.table.setSlice(sliceOf("default", "web", "web-a", "10.244.1.2", "10.244.2.2", "10.244.3.2"))
	first := h.calls(t, "10.96.0.20:80", 30)
	if len(first) != 1 {
		t.Fatalf("calls of one client went to %v", first)
	}
	h.table.setService(s) // an update of the Service keeps the sessions
	second := h.calls(t, "10.96.0.20:80", 5)
	for who := range first {
		if second[who] != 5 {
			t.Errorf("after an update calls went to %v, before to %v", second, first)
		}
	}
	after := map[string]int{}
	for range 40 {
		now = now.Add(61 * time.Second)
		for who := range h.calls(t, "10.96.0.20:80", 1) {
			after[who]++
		}
	}
	if len(after) != 3 {
		t.Errorf("after the timeout calls went to %v, want all three in 40 tries", after)
	}
	for n := range 3 * maxSessions {
		h.table.translate(origin{protocol: "TCP", client: netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)})}, netip.MustParseAddrPort("10.96.0.20:80"))
	}
	if got := len(h.table.services[objectKey{"default", "web"}].sessions.last); got > maxSessions {
		t.Errorf("%d sessions are kept, want at most %d", got, maxSessions)
	}
}

func TestNodePort(t *testing.T) {
	h := newHouse(t)
	node := attach(t, h.net, "kitchen-1", "172.18.0.3")
	node.ServeNodePorts(true)
	s := clusterIPService("default", "web", "10.96.0.20")
	s.Spec.Type = corev1.ServiceTypeNodePort
	s.Spec.Ports[0].NodePort = 30080
	h.table.setService(s)
	h.table.setSlice(sliceOf("default", "web", "web-a", "10.244.2.2"))
	if got, err := h.call(t, h.client, "172.18.0.3:30080"); err != nil || got != "10.244.2.2 sees 172.18.0.3" {
		t.Errorf("node port: %q, %v; want the endpoint to see the node", got, err)
	}
	if _, err := h.call(t, h.client, "10.244.1.2:30080"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("node port on a Pod: %v, want ECONNREFUSED", err)
	}
	if got, err := h.call(t, h.client, "10.96.0.20:80"); err != nil || got != "10.244.2.2 sees 10.244.1.9" {
		t.Errorf("ClusterIP: %q, %v; want the endpoint to see the client", got, err)
	}
	h.table.deleteService(s)
	if _, err := h.call(t, h.client, "172.18.0.3:30080"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after deletion: %v, want ECONNREFUSED", err)
	}
}

func TestSilentEndpointHangs(t *testing.T) {
	h := newHouse(t)
	h.table.setService(clusterIPService("default", "web", "10.96.0.20"))
	h.table.setSlice(sliceOf("default", "web", "web-a", "10.244.1.2"))
	h.cooks["10.244.1.2"].SetDown(true)
	var ne net.Error
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // nothing is to come of it, however long
	defer cancel()
	if _, err := h.client.DialContext(ctx, "tcp", "10.96.0.20:80"); !errors.As(err, &ne) || !ne.Timeout() {
		t.Errorf("got %v, want a timeout", err)
	}
}

func BenchmarkTranslate(b *testing.B) {
	t := newServiceTable()
	for n := range 1000 {
		name := fmt.Sprintf("s%d", n)
		t.setService(clusterIPService("default", name, netip.AddrFrom4([4]byte{10, 96, byte(n >> 8), byte(n)}).String()))
		t.setSlice(sliceOf("default", name, name, "10.244.1.2", "10.244.2.2", "10.244.3.2"))
	}
	client, to := netip.MustParseAddr("10.244.1.9"), netip.MustParseAddrPort("10.96.1.1:80")
	b.ReportAllocs()
	for b.Loop() {
		if at, _, v := t.translate(origin{protocol: "TCP", client: client}, to); v != forwards || !at.IsValid() {
			b.Fatal("not found")
		}
	}
}
