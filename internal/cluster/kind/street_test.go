package kind

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"kubistro/internal/clusterhost/street"
)

func streetNode(name, ip string, ready corev1.ConditionStatus, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}, {Type: corev1.NodeHostName, Address: name}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
	}}
}

func balanced(name, ip string, change func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}, {Port: 53, NodePort: 30053, Protocol: corev1.ProtocolUDP}},
	}}
	if ip != "" {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
	}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

func TestWhatGuestsSee(t *testing.T) {
	yes, no, k1, k2 := true, false, "kitchen-1", "kitchen-2"
	api := fake.NewClientset(
		streetNode("office", "172.18.0.2", corev1.ConditionTrue, map[string]string{corev1.LabelNodeExcludeBalancers: ""}),
		streetNode(k1, "172.18.0.3", corev1.ConditionTrue, nil),
		streetNode(k2, "172.18.0.4", corev1.ConditionTrue, nil),
		streetNode("kitchen-3", "172.18.0.5", corev1.ConditionUnknown, nil),
		balanced("all", "172.18.255.200", nil),
		balanced("local", "172.18.255.201", func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal }),
		balanced("ranged", "172.18.255.202", func(s *corev1.ServiceSpec) { s.LoadBalancerSourceRanges = []string{"10.0.0.0/8"} }),
		balanced("waits", "", nil),
		balanced("inside", "172.18.255.209", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeClusterIP }),
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "local-1", Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: "local"}},
			Endpoints: []discoveryv1.Endpoint{
				{NodeName: &k1, Conditions: discoveryv1.EndpointConditions{Ready: &no}}, {NodeName: &k2, Conditions: discoveryv1.EndpointConditions{Ready: &yes}},
			}},
		&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "menu", Namespace: "default"},
			Spec:   networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "menu.example"}}},
			Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{{IP: "172.18.255.200"}}}}},
	)
	dyn := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{street.Gateways: "GatewayList", street.HTTPRoutes: "HTTPRouteList"})
	v, err := viewOf(t.Context(), api, dyn)
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddr
	for host, want := range map[string][]netip.Addr{
		"menu.example": {addr("172.18.255.200")}, "Kitchen-2": {addr("172.18.0.4")}, "10.244.1.7": {addr("10.244.1.7")},
		"local": nil, "local.default.svc.cluster.local": nil, "other.example": {addr("172.18.255.200")},
	} {
		if got := v.resolve(host); !slices.Equal(got, want) {
			t.Errorf("%s = %v, want %v", host, got, want)
		}
	}
	for ip, want := range map[string][2]bool{"172.18.0.5": {true, false}, "172.18.255.201": {false, true}, "172.18.255.209": {}, "10.96.0.1": {}, "127.0.0.1": {}} {
		if node, lb := v.public(addr(ip)); [2]bool{node, lb} != want {
			t.Errorf("%s is public: node %v, load balancer %v, want %v", ip, node, lb, want)
		}
	}
	if len(v.ports) != 3 {
		t.Errorf("ports = %+v, want port 80 of three", v.ports)
	}
	for at, want := range map[string]balancedPort{
		"172.18.255.200:80": {30080, []netip.Addr{addr("172.18.0.3"), addr("172.18.0.4")}, false},
		"172.18.255.201:80": {30080, []netip.Addr{addr("172.18.0.4")}, false},
		"172.18.255.202:80": {30080, []netip.Addr{addr("172.18.0.3"), addr("172.18.0.4")}, true},
	} {
		if got := v.ports[netip.MustParseAddrPort(at)]; got.nodePort != want.nodePort || got.closed != want.closed || !slices.Equal(got.nodes, want.nodes) {
			t.Errorf("%s = %+v, want %+v", at, got, want)
		}
	}
}

func TestGuestsWithoutAWayIn(t *testing.T) {
	in := &instance{}
	in.ctx, in.end = t.Context(), func() {}
	in.outside.view = &streetView{
		nodes:     map[string]netip.Addr{"kitchen-1": netip.MustParseAddr("172.18.0.3")},
		balancers: []netip.Addr{netip.MustParseAddr("172.18.255.200")},
		ports:     map[netip.AddrPort]balancedPort{netip.MustParseAddrPort("172.18.255.200:443"): {closed: true}},
	}
	in.outside.asked = time.Now().Add(time.Hour)
	for address, want := range map[string]error{"10.96.0.1:443": syscall.EHOSTUNREACH, "127.0.0.1:22": syscall.EHOSTUNREACH, "172.18.255.200:81": syscall.ECONNREFUSED} {
		if _, err := in.Dial(t.Context(), "street", address); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
	var dns *net.DNSError
	if _, err := in.Dial(t.Context(), "street", "menu:80"); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("a Service's name: %v, want no such host", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var timeout interface{ Timeout() bool }
	if _, err := in.Dial(ctx, "street", "172.18.255.200:443"); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("who isn't let in: %v, want silence", err)
	}
}
