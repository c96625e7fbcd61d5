package vnet

import (
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// defaultAffinity is the API server's default of sessionAffinityConfig.
const defaultAffinity = 10800 * time.Second

// NewServiceTable fills a table from the Services, EndpointSlices, Namespaces and Nodes
// of a shared informer factory. The caller starts and stops the factory; all
// nodes of a cluster use one table.
func NewServiceTable(factory informers.SharedInformerFactory) *ServiceTable {
	t := newServiceTable()
	synced := []cache.InformerSynced{
		follow(factory.Core().V1().Services().Informer(), t.setService, t.deleteService),
		follow(factory.Discovery().V1().EndpointSlices().Informer(), t.setSlice, t.deleteSlice),
		follow(factory.Core().V1().Namespaces().Informer(), t.setNamespace, t.deleteNamespace),
		follow(factory.Core().V1().Nodes().Informer(), t.setNode, t.deleteNode),
	}
	t.synced = func() bool {
		for _, s := range synced {
			if !s() {
				return false
			}
		}
		return true
	}
	return t
}

// follow calls set and remove for the objects of an informer.
func follow[T any](informer cache.SharedIndexInformer, set, remove func(*T)) cache.InformerSynced {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { apply(o, set) },
		UpdateFunc: func(_, o any) { apply(o, set) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			apply(o, remove)
		},
	})
	if err != nil { // the informer has been stopped already: it will never be in step
		return func() bool { return false }
	}
	return registration.HasSynced
}

func apply[T any](object any, f func(*T)) {
	if o, ok := object.(*T); ok {
		f(o)
	}
}

func (t *ServiceTable) setService(o *corev1.Service) {
	key := objectKey{o.Namespace, o.Name}
	s := &service{
		key:      key,
		headless: o.Spec.ClusterIP == corev1.ClusterIPNone,
	}
	if o.Spec.Type == corev1.ServiceTypeExternalName {
		s.externalName = o.Spec.ExternalName
	} else {
		s.clusterIPs = parseIPs(o.Spec.ClusterIPs...)
		if len(o.Spec.ClusterIPs) == 0 {
			s.clusterIPs = parseIPs(o.Spec.ClusterIP)
		}
		s.otherIPs = parseIPs(o.Spec.ExternalIPs...)
		for _, in := range o.Status.LoadBalancer.Ingress {
			s.otherIPs = append(s.otherIPs, parseIPs(in.IP)...)
		}
		s.internalLocal = value(o.Spec.InternalTrafficPolicy, "") == corev1.ServiceInternalTrafficPolicyLocal
		s.externalLocal = o.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
		s.healthPort = uint16(o.Spec.HealthCheckNodePort)
		for _, r := range o.Spec.LoadBalancerSourceRanges {
			if p, err := netip.ParsePrefix(strings.TrimSpace(r)); err == nil {
				s.sourceRanges = append(s.sourceRanges, p.Masked())
			}
		}
	}
	for _, p := range o.Spec.Ports {
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		s.ports = append(s.ports, servicePort{
			name: p.Name, protocol: string(p.Protocol), port: uint16(p.Port), nodePort: uint16(p.NodePort),
		})
	}
	if o.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		s.affinity = defaultAffinity
		if c := o.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
			s.affinity = time.Duration(*c.ClientIP.TimeoutSeconds) * time.Second
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.services[key]; old != nil && old.sessions != nil {
		s.sessions = old.sessions
	} else {
		s.sessions = newSessions()
	}
	t.setLocked(key, s)
}

func (t *ServiceTable) deleteService(o *corev1.Service) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setLocked(objectKey{o.Namespace, o.Name}, nil)
}

func (t *ServiceTable) setSlice(o *discoveryv1.EndpointSlice) {
	slice := objectKey{o.Namespace, o.Name}
	name, labelled := o.Labels[discoveryv1.LabelServiceName]
	t.mu.Lock()
	defer t.mu.Unlock()
	key := objectKey{o.Namespace, name}
	if former, ok := t.owner[slice]; ok && (former != key || !labelled) {
		t.dropSliceLocked(slice)
	}
	if !labelled {
		return
	}
	if t.slices[key] == nil {
		t.slices[key] = make(map[string]*discoveryv1.EndpointSlice)
	}
	t.slices[key][o.Name] = o
	t.owner[slice] = key
	t.refreshLocked(key)
}

func (t *ServiceTable) deleteSlice(o *discoveryv1.EndpointSlice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropSliceLocked(objectKey{o.Namespace, o.Name})
}

// dropSliceLocked takes a slice away from the Service that it was filed under.
func (t *ServiceTable) dropSliceLocked(slice objectKey) {
	key, ok := t.owner[slice]
	if !ok {
		return
	}
	delete(t.owner, slice)
	delete(t.slices[key], slice.name)
	if len(t.slices[key]) == 0 {
		delete(t.slices, key)
	}
	t.refreshLocked(key)
}

func (t *ServiceTable) setNamespace(o *corev1.Namespace) {
	t.mu.Lock()
	t.namespaces[o.Name] = struct{}{}
	t.mu.Unlock()
}

func (t *ServiceTable) deleteNamespace(o *corev1.Namespace) {
	t.mu.Lock()
	delete(t.namespaces, o.Name)
	t.mu.Unlock()
}

// setNode keeps what load balancers look at: cloud-provider's service controller
// sends to ready nodes without the label that excludes them.
func (t *ServiceTable) setNode(o *corev1.Node) {
	facts := nodeFacts{zone: o.Labels[corev1.LabelTopologyZone]}
	for _, a := range o.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && !facts.ip.IsValid() {
			facts.ip, _ = netip.ParseAddr(a.Address)
		}
	}
	_, excluded := o.Labels[corev1.LabelNodeExcludeBalancers]
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			facts.entry = !excluded && facts.ip.IsValid()
		}
	}
	t.mu.Lock()
	t.nodes[o.Name] = facts
	t.mu.Unlock()
}

func (t *ServiceTable) deleteNode(o *corev1.Node) {
	t.mu.Lock()
	delete(t.nodes, o.Name)
	t.mu.Unlock()
}

// parseIPs reads addresses and leaves out what is none ("None", "").
func parseIPs(in ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range in {
		if ip, err := netip.ParseAddr(s); err == nil {
			out = append(out, ip.Unmap())
		}
	}
	return out
}
