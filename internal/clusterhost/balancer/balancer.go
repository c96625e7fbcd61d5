// Package balancer gives Services of type LoadBalancer their addresses in learners' clusters: it is
// cloud-provider's own service controller with a provider that has load balancers and nothing else, as
// cloud-provider-kind is for kind. Where the addresses lead is up to the cluster's driver.
package balancer

import (
	"context"
	"errors"
	"fmt"
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

// User is who the controller is for the API server, and Groups are the user's. Kubernetes' default roles know it.
const (
	User   = "system:serviceaccount:kube-system:service-controller"
	Groups = "system:serviceaccounts,system:serviceaccounts:kube-system"
)

// First and last of the addresses that load balancers get, in the nodes' network: one for each Service.
var (
	first = netip.AddrFrom4([4]byte{172, 18, 255, 200})
	last  = netip.AddrFrom4([4]byte{172, 18, 255, 250})
)

// Network has all of the addresses.
const Network = "172.18.255.192/26"

var errNoAddress = errors.New("no address is left for a load balancer")

// Controller is a running service controller.
type Controller struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Start runs the controller as User until Close. The caller starts and stops the factory.
func Start(ctx context.Context, client kubernetes.Interface, shared informers.SharedInformerFactory) (*Controller, error) {
	services := shared.Core().V1().Services()
	p := &pool{services: services.Lister(), taken: map[netip.Addr]types.UID{}}
	c, err := servicecontroller.New(p, client, services, shared.Core().V1().Nodes(), "kubistro", nil)
	if err != nil {
		return nil, fmt.Errorf("load balancers: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	out := &Controller{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(out.done)
		c.Run(ctx, 1, controllersmetrics.NewControllerManagerMetrics("cloud-controller-manager"))
	}()
	return out, nil
}

// Close ends the controller and waits for its end.
func (c *Controller) Close() {
	c.cancel()
	<-c.done
}

// pool gives out addresses. The Services' status is where they are kept: after a
// restart a Service keeps the address that it shows.
type pool struct {
	services corelisters.ServiceLister

	mu    sync.Mutex
	taken map[netip.Addr]types.UID
}

func inPool(ip netip.Addr) bool { return !ip.Less(first) && !last.Less(ip) }

// GetLoadBalancer reports the address that a Service has.
func (p *pool) GetLoadBalancer(_ context.Context, _ string, s *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ip, uid := range p.taken {
		if uid == s.UID {
			return statusOf(ip), true, nil
		}
	}
	if ip, ok := shownAddress(s); ok {
		return statusOf(ip), true, nil
	}
	return nil, false, nil
}

// GetLoadBalancerName is the usual name in clouds.
func (p *pool) GetLoadBalancerName(_ context.Context, _ string, s *corev1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(s)
}

// EnsureLoadBalancer gives a Service an address, the one that it has or asks for if that is possible.
func (p *pool) EnsureLoadBalancer(_ context.Context, _ string, s *corev1.Service, _ []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
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
			return nil, fmt.Errorf("loadBalancerIP %s is none of the addresses %s to %s", s.Spec.LoadBalancerIP, first, last)
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
	for ip := first; inPool(ip); ip = ip.Next() {
		if !others[ip] {
			return p.takeLocked(s.UID, ip), nil
		}
	}
	return nil, errNoAddress
}

func (p *pool) takeLocked(uid types.UID, ip netip.Addr) *corev1.LoadBalancerStatus {
	p.giveLocked(uid)
	p.taken[ip] = uid
	return statusOf(ip)
}

func (p *pool) giveLocked(uid types.UID) {
	for ip, owner := range p.taken {
		if owner == uid {
			delete(p.taken, ip)
		}
	}
}

// UpdateLoadBalancer has nothing to do: the virtual network looks at the nodes by itself.
func (p *pool) UpdateLoadBalancer(context.Context, string, *corev1.Service, []*corev1.Node) error {
	return nil
}

// EnsureLoadBalancerDeleted takes the address back.
func (p *pool) EnsureLoadBalancerDeleted(_ context.Context, _ string, s *corev1.Service) error {
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

func statusOf(ip netip.Addr) *corev1.LoadBalancerStatus {
	return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: ip.String()}}}
}

// Initialize and what follows make the pool a cloud that has load balancers only.
func (p *pool) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}

// LoadBalancer is the pool itself.
func (p *pool) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return p, true }

// Instances are unknown: the nodes are no machines of a cloud.
func (p *pool) Instances() (cloudprovider.Instances, bool) { return nil, false }

// InstancesV2 are unknown.
func (p *pool) InstancesV2() (cloudprovider.InstancesV2, bool) { return nil, false }

// Zones are unknown.
func (p *pool) Zones() (cloudprovider.Zones, bool) { return nil, false }

// Clusters are unknown.
func (p *pool) Clusters() (cloudprovider.Clusters, bool) { return nil, false }

// Routes are unknown.
func (p *pool) Routes() (cloudprovider.Routes, bool) { return nil, false }

// ProviderName is kubistro.
func (p *pool) ProviderName() string { return "kubistro" }

// HasClusterID is false: nothing is tagged.
func (p *pool) HasClusterID() bool { return false }
