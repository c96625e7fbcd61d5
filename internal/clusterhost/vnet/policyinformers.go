package vnet

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
)

// NewPolicyTable fills a table from the NetworkPolicies, Pods and Namespaces of a
// shared informer factory. The caller starts and stops the factory.
func NewPolicyTable(factory informers.SharedInformerFactory) *PolicyTable {
	t := newPolicyTable()
	follow(factory.Networking().V1().NetworkPolicies().Informer(), t.setPolicy, t.deletePolicy)
	follow(factory.Core().V1().Pods().Informer(), t.setPod, t.deletePod)
	follow(factory.Core().V1().Namespaces().Informer(), t.setNamespace, t.deleteNamespace)
	return t
}

func (t *PolicyTable) setNamespace(o *corev1.Namespace) {
	t.mu.Lock()
	t.namespaces[o.Name] = o.Labels
	t.mu.Unlock()
}

func (t *PolicyTable) deleteNamespace(o *corev1.Namespace) {
	t.mu.Lock()
	delete(t.namespaces, o.Name)
	t.mu.Unlock()
}

func (t *PolicyTable) setPod(o *corev1.Pod) {
	key := objectKey{o.Namespace, o.Name}
	over := o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed
	var p *policyPod
	if !o.Spec.HostNetwork && !over {
		p = &policyPod{key: key, labels: o.Labels}
		for _, ip := range o.Status.PodIPs {
			p.ips = append(p.ips, parseIPs(ip.IP)...)
		}
		for _, list := range [][]corev1.Container{o.Spec.InitContainers, o.Spec.Containers} {
			for _, c := range list {
				for _, port := range c.Ports {
					if port.Name != "" {
						protocol := port.Protocol
						if protocol == "" {
							protocol = corev1.ProtocolTCP
						}
						p.ports = append(p.ports, endpointPort{port.Name, string(protocol), uint16(port.ContainerPort)})
					}
				}
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropPodLocked(key)
	if p != nil {
		t.pods[key] = p
		for _, ip := range p.ips {
			t.byIP[ip] = p
		}
	}
}

func (t *PolicyTable) deletePod(o *corev1.Pod) {
	t.mu.Lock()
	t.dropPodLocked(objectKey{o.Namespace, o.Name})
	t.mu.Unlock()
}

func (t *PolicyTable) dropPodLocked(key objectKey) {
	old := t.pods[key]
	if old == nil {
		return
	}
	delete(t.pods, key)
	for _, ip := range old.ips {
		if t.byIP[ip] == old { // else the address has a new owner
			delete(t.byIP, ip)
		}
	}
}

func (t *PolicyTable) deletePolicy(o *networkingv1.NetworkPolicy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.policies[o.Namespace], o.Name)
	if len(t.policies[o.Namespace]) == 0 {
		delete(t.policies, o.Namespace)
	}
}

func (t *PolicyTable) setPolicy(o *networkingv1.NetworkPolicy) {
	p := &policy{pods: selector(&o.Spec.PodSelector)}
	for _, r := range o.Spec.Ingress {
		p.ingress = append(p.ingress, policyRule{readPeers(r.From), r.Ports})
	}
	for _, r := range o.Spec.Egress {
		p.egress = append(p.egress, policyRule{readPeers(r.To), r.Ports})
	}
	for _, kind := range o.Spec.PolicyTypes {
		p.isIngress = p.isIngress || kind == networkingv1.PolicyTypeIngress
		p.isEgress = p.isEgress || kind == networkingv1.PolicyTypeEgress
	}
	if len(o.Spec.PolicyTypes) == 0 { // defaults of pkg/apis/networking/v1
		p.isIngress, p.isEgress = true, len(o.Spec.Egress) > 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.policies[o.Namespace] == nil {
		t.policies[o.Namespace] = make(map[string]*policy)
	}
	t.policies[o.Namespace][o.Name] = p
}

func readPeers(in []networkingv1.NetworkPolicyPeer) []policyPeer {
	var out []policyPeer
	for _, p := range in {
		peer := policyPeer{}
		if p.IPBlock != nil {
			peer.block = prefix(p.IPBlock.CIDR)
			for _, e := range p.IPBlock.Except {
				if x := prefix(e); x.IsValid() {
					peer.except = append(peer.except, x)
				}
			}
		} else {
			if p.PodSelector != nil {
				peer.pods = selector(p.PodSelector)
			}
			if p.NamespaceSelector != nil {
				peer.namespaces = selector(p.NamespaceSelector)
			}
		}
		out = append(out, peer)
	}
	return out
}

// prefix reads a CIDR; the API server has validated it.
func prefix(cidr string) netip.Prefix {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Prefix{}
	}
	return p.Masked()
}

// selector reads a label selector; one that can't be read matches nothing.
func selector(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}
