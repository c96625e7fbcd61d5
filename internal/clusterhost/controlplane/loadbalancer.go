package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	cloudprovider "k8s.io/cloud-provider"
	servicecontroller "k8s.io/cloud-provider/controllers/service"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
)

// userBalancer is who gives Services of type LoadBalancer their address. Its role is among the
// default ones.
const userBalancer = "system:serviceaccount:kube-system:service-controller"

// The addresses that load balancers get, in the nodes' network: one for each Service.
var (
	firstBalancer = netip.AddrFrom4([4]byte{172, 18, 255, 200})
	lastBalancer  = netip.AddrFrom4([4]byte{172, 18, 255, 250})
)

var errNoBalancer = errors.New("no address is left for a load balancer")

// balancers is the cloud of a simulated cluster: cloud-provider's own service controller
// with a provider that has load balancers and nothing else, as cloud-provider-kind is for kind.
// What the virtual network does with the addresses is in package vnet.
type balancers struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// startBalancers runs the service controller until close.
func startBalancers(ctx context.Context, token string, transport http.RoundTripper, shared informers.SharedInformerFactory) (*balancers, error) {
	client, err := kubernetes.NewForConfig(restConfig(transport, token, "cloud-controller-manager"))
	if err != nil {
		return nil, fmt.Errorf("load balancers: %w", err)
	}
	services := shared.Core().V1().Services()
	pool := &balancerPool{services: services.Lister(), taken: map[netip.Addr]types.UID{}}
	c, err := servicecontroller.New(pool, client, services, shared.Core().V1().Nodes(), "kubistro", nil)
	if err != nil {
		return nil, fmt.Errorf("load balancers: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &balancers{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		c.Run(ctx, 1, controllersmetrics.NewControllerManagerMetrics("cloud-controller-manager"))
	}()
	return b, nil
}

func (b *balancers) close() {
	b.cancel()
	<-b.done
}

// balancerPool gives out addresses. The Services' status is where they are kept: after a
// restart a Service keeps the address that it shows.
type balancerPool struct {
	services corelisters.ServiceLister

	mu    sync.Mutex
	taken map[netip.Addr]types.UID
}

func inPool(ip netip.Addr) bool { return !ip.Less(firstBalancer) && !lastBalancer.Less(ip) }

// GetLoadBalancer reports the address that a Service has.
func (p *balancerPool) GetLoadBalancer(_ context.Context, _ string, s *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ip, uid := range p.taken {
		if uid == s.UID {
			return balancerStatus(ip), true, nil
		}
	}
	if ip, ok := shownAddress(s); ok {
		return balancerStatus(ip), true, nil
	}
	return nil, false, nil
}

// GetLoadBalancerName is the usual name in clouds.
func (p *balancerPool) GetLoadBalancerName(_ context.Context, _ string, s *corev1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(s)
}

// EnsureLoadBalancer gives a Service an address, the one that it has or asks for if that is possible.
func (p *balancerPool) EnsureLoadBalancer(_ context.Context, _ string, s *corev1.Service, _ []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	all, err := p.services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	others := map[netip.Addr]bool{}
	for _, o := range all {
		if ip, ok := shownAddress(o); ok && o.UID != s.UID {
			others[ip] = true
		}
	}
	var own []netip.Addr
	for ip, uid := range p.taken {
		if uid == s.UID {
			own = append(own, ip)
		} else {
			others[ip] = true
		}
	}
	if ip, ok := shownAddress(s); ok {
		own = append(own, ip)
	}
	if s.Spec.LoadBalancerIP != "" {
		ip, err := netip.ParseAddr(s.Spec.LoadBalancerIP)
		switch {
		case err != nil || !inPool(ip):
			return nil, fmt.Errorf("loadBalancerIP %s is none of the addresses %s to %s", s.Spec.LoadBalancerIP, firstBalancer, lastBalancer)
		case others[ip]:
			return nil, fmt.Errorf("loadBalancerIP %s is in use", ip)
		}
		own = []netip.Addr{ip}
	}
	for _, ip := range own {
		if !others[ip] {
			return p.takeLocked(s.UID, ip), nil
		}
	}
	for ip := firstBalancer; inPool(ip); ip = ip.Next() {
		if !others[ip] {
			return p.takeLocked(s.UID, ip), nil
		}
	}
	return nil, errNoBalancer
}

func (p *balancerPool) takeLocked(uid types.UID, ip netip.Addr) *corev1.LoadBalancerStatus {
	p.giveLocked(uid)
	p.taken[ip] = uid
	return balancerStatus(ip)
}

func (p *balancerPool) giveLocked(uid types.UID) {
	for ip, owner := range p.taken {
		if owner == uid {
			delete(p.taken, ip)
		}
	}
}

// UpdateLoadBalancer has nothing to do: the virtual network looks at the nodes by itself.
func (p *balancerPool) UpdateLoadBalancer(context.Context, string, *corev1.Service, []*corev1.Node) error {
	return nil
}

// EnsureLoadBalancerDeleted takes the address back.
func (p *balancerPool) EnsureLoadBalancerDeleted(_ context.Context, _ string, s *corev1.Service) error {
	p.mu.Lock()
	p.giveLocked(s.UID)
	p.mu.Unlock()
	return nil
}

// shownAddress is the address of the pool in a Service's status.
func shownAddress(s *corev1.Service) (netip.Addr, bool) {
	for _, in := range s.Status.LoadBalancer.Ingress {
		if ip, err := netip.ParseAddr(in.IP); err == nil && inPool(ip) {
			return ip, true
		}
	}
	return netip.Addr{}, false
}

func balancerStatus(ip netip.Addr) *corev1.LoadBalancerStatus {
	return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: ip.String()}}}
}

// Initialize and what follows make the pool a cloud that has load balancers only.
func (p *balancerPool) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}

// LoadBalancer is the pool itself.
func (p *balancerPool) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return p, true }

// Instances are unknown: the nodes are no machines of a cloud.
func (p *balancerPool) Instances() (cloudprovider.Instances, bool) { return nil, false }

// InstancesV2 are unknown.
func (p *balancerPool) InstancesV2() (cloudprovider.InstancesV2, bool) { return nil, false }

// Zones are unknown.
func (p *balancerPool) Zones() (cloudprovider.Zones, bool) { return nil, false }

// Clusters are unknown.
func (p *balancerPool) Clusters() (cloudprovider.Clusters, bool) { return nil, false }

// Routes are unknown.
func (p *balancerPool) Routes() (cloudprovider.Routes, bool) { return nil, false }

// ProviderName is kubistro.
func (p *balancerPool) ProviderName() string { return "kubistro" }

// HasClusterID is false: nothing is tagged.
func (p *balancerPool) HasClusterID() bool { return false }
