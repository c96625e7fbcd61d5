package kind

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/clusterhost/street"
)

const (
	// networkStreet is the network of guests, who are outside of the cluster.
	networkStreet = "street"
	// streetNews is how long the street believes what it heard; a guest who comes later asks again. Nothing is
	// watched for guests who don't come.
	streetNews = time.Second
	// doorWithin is how long a load balancer tries a node before it takes the next.
	doorWithin = time.Second
)

// streetView is what is known of a cluster outside.
type streetView struct {
	nodes     map[string]netip.Addr
	doors     []street.Door
	balancers []netip.Addr
	// ports of load balancers, and the node ports that they forward to.
	ports map[netip.AddrPort]balancedPort
}

// balancedPort is where a load balancer sends what comes to one of its ports.
type balancedPort struct {
	nodePort uint16
	nodes    []netip.Addr // that are healthy, as it sees it
	closed   bool         // to guests, by loadBalancerSourceRanges
}

// outside keeps the newest view.
type outside struct {
	mu    sync.Mutex
	asked time.Time
	view  *streetView
}

// guest is the address that guests come from, as in the embedded driver.
var guest = netip.AddrFrom4([4]byte{172, 18, 0, 1})

// look asks the cluster what is to be seen of it outside.
func (in *instance) look(ctx context.Context) (*streetView, error) {
	in.outside.mu.Lock()
	defer in.outside.mu.Unlock()
	if in.outside.view != nil && time.Since(in.outside.asked) < streetNews {
		return in.outside.view, nil
	}
	api, err := in.admin()
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(in.rest(in.record.LabToken))
	if err != nil {
		return nil, err
	}
	v, err := viewOf(ctx, api, dyn)
	if err != nil {
		return nil, err
	}
	in.outside.asked, in.outside.view = time.Now(), v
	return v, nil
}

func viewOf(ctx context.Context, api kubernetes.Interface, dyn dynamic.Interface) (*streetView, error) {
	nodes, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("street: %w", err)
	}
	services, err := api.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("street: %w", err)
	}
	ingresses, err := api.NetworkingV1().Ingresses("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("street: %w", err)
	}
	v := &streetView{nodes: map[string]netip.Addr{}, ports: map[netip.AddrPort]balancedPort{}}
	entries := map[string]netip.Addr{} // nodes that load balancers send to
	for i := range nodes.Items {
		n := &nodes.Items[i]
		for _, a := range n.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
				v.nodes[n.Name] = ip
				if takesTraffic(n) {
					entries[n.Name] = ip
				}
			}
		}
	}
	for i := range services.Items {
		s := &services.Items[i]
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer || len(s.Status.LoadBalancer.Ingress) == 0 {
			continue
		}
		healthy := entries
		if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			slices, err := api.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name})
			if err != nil {
				return nil, fmt.Errorf("street: %w", err)
			}
			healthy = withEndpoints(entries, slices.Items)
		}
		v.addBalancer(s, healthy)
	}
	for i := range ingresses.Items {
		v.doors = append(v.doors, street.OfIngress(&ingresses.Items[i]))
	}
	gateways, err := dyn.Resource(street.Gateways).List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, ctx.Err() // mostly: there is no such kind
	}
	var routes []unstructured.Unstructured
	if list, err := dyn.Resource(street.HTTPRoutes).List(ctx, metav1.ListOptions{}); err == nil {
		routes = list.Items
	}
	v.doors = append(v.doors, street.OfGateways(gateways.Items, routes)...)
	return v, nil
}

// takesTraffic is what a load balancer looks at, as cloud-provider's service controller does.
func takesTraffic(n *corev1.Node) bool {
	_, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]
	return !excluded && n.DeletionTimestamp == nil && nodeReady(n)
}

// withEndpoints are the nodes that pass the health check of a Service of policy Local: those with an endpoint
// that is ready.
func withEndpoints(nodes map[string]netip.Addr, list []discoveryv1.EndpointSlice) map[string]netip.Addr {
	out := map[string]netip.Addr{}
	for _, s := range list {
		for _, e := range s.Endpoints {
			if e.NodeName == nil || e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			if ip, ok := nodes[*e.NodeName]; ok {
				out[*e.NodeName] = ip
			}
		}
	}
	return out
}

func (v *streetView) addBalancer(s *corev1.Service, nodes map[string]netip.Addr) {
	var healthy []netip.Addr
	for _, ip := range nodes {
		healthy = append(healthy, ip)
	}
	slices.SortFunc(healthy, netip.Addr.Compare)
	closed := len(s.Spec.LoadBalancerSourceRanges) > 0 && !slices.ContainsFunc(s.Spec.LoadBalancerSourceRanges, func(r string) bool {
		p, err := netip.ParsePrefix(strings.TrimSpace(r))
		return err == nil && p.Contains(guest)
	})
	for _, i := range s.Status.LoadBalancer.Ingress {
		ip, err := netip.ParseAddr(i.IP)
		if err != nil {
			continue
		}
		v.balancers = append(v.balancers, ip)
		for _, p := range s.Spec.Ports {
			if cmp.Or(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP && p.NodePort != 0 {
				v.ports[netip.AddrPortFrom(ip, uint16(p.Port))] = balancedPort{uint16(p.NodePort), healthy, closed}
			}
		}
	}
}

// resolve finds what a host means outside; none when nobody knows it there.
func (v *streetView) resolve(host string) []netip.Addr {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap().WithZone("")}
	}
	if ip, ok := v.nodes[strings.ToLower(strings.TrimSuffix(host, "."))]; ok {
		return []netip.Addr{ip}
	}
	return street.Lookup(host, v.doors, v.balancers)
}

// public reports whether there is a way to an address from outside, and whether it is a node's.
func (v *streetView) public(ip netip.Addr) (node, balancer bool) {
	for _, n := range v.nodes {
		node = node || n == ip
	}
	return node, slices.Contains(v.balancers, ip)
}

// dialStreet connects as somebody outside of the cluster: to nodes, and to load balancers, which are in
// nobody's machine: what one would do, forward to a node port of a healthy node, is done here.
func (in *instance) dialStreet(ctx context.Context, address string) (net.Conn, error) {
	fail := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fail(err)
	}
	port, err := net.LookupPort("tcp", service)
	if err != nil {
		return nil, fail(err)
	}
	v, err := in.look(ctx)
	if err != nil {
		return nil, fail(err)
	}
	ips := v.resolve(host)
	if len(ips) == 0 {
		return nil, fail(&net.DNSError{Err: "no such host", Name: host, IsNotFound: true})
	}
	var first error
	for _, ip := range ips {
		var c net.Conn
		node, balancer := v.public(ip)
		switch at := netip.AddrPortFrom(ip, uint16(port)); {
		case node:
			c, err = in.currentAgent().Dial(ctx, "tcp", at.String())
		case balancer:
			c, err = in.dialBalanced(ctx, v.ports[at])
		default:
			err = fail(os.NewSyscallError("connect", syscall.EHOSTUNREACH))
		}
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// dialBalanced forwards to a node port. The nodes take turns; one that doesn't answer is passed over.
func (in *instance) dialBalanced(ctx context.Context, p balancedPort) (net.Conn, error) {
	fail := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	if p.closed {
		<-ctx.Done() // what isn't let in isn't answered
		return nil, fail(os.ErrDeadlineExceeded)
	}
	err := fail(os.NewSyscallError("connect", syscall.ECONNREFUSED)) // no such port, or no node behind it
	turn := int(in.turn.Add(1))
	for i := range p.nodes {
		ip := p.nodes[(turn+i)%len(p.nodes)]
		try, cancel := context.WithTimeout(ctx, doorWithin)
		c, dialErr := in.currentAgent().Dial(try, "tcp", netip.AddrPortFrom(ip, p.nodePort).String())
		cancel()
		if dialErr == nil {
			return c, nil
		}
		err = dialErr
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}
