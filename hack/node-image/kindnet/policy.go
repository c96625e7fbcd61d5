package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
)

// world is the objects that rules are made from.
type world struct {
	nodes      []*corev1.Node
	pods       []*corev1.Pod
	namespaces map[string]labels.Set
	policies   []*networkingv1.NetworkPolicy
}

func look(f informers.SharedInformerFactory) (*world, error) {
	w := &world{namespaces: map[string]labels.Set{}}
	var err error
	if w.nodes, err = f.Core().V1().Nodes().Lister().List(labels.Everything()); err != nil {
		return nil, err
	}
	if w.pods, err = f.Core().V1().Pods().Lister().List(labels.Everything()); err != nil {
		return nil, err
	}
	if w.policies, err = f.Networking().V1().NetworkPolicies().Lister().List(labels.Everything()); err != nil {
		return nil, err
	}
	// Listers have no order, and equal objects are to give equal rules.
	slices.SortFunc(w.pods, func(a, b *corev1.Pod) int { return compare(a, b) })
	slices.SortFunc(w.policies, func(a, b *networkingv1.NetworkPolicy) int { return compare(a, b) })
	namespaces, err := f.Core().V1().Namespaces().Lister().List(labels.Everything())
	for _, n := range namespaces {
		w.namespaces[n.Name] = n.Labels
	}
	return w, err
}

func compare(a, b metav1.Object) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

// isolation is what one Pod may exchange with others in one direction; what isn't
// among the allowances is dropped.
type isolation struct {
	pod     netip.Addr
	ingress bool
	allowed []allowance
}

// allowance is a set of peers and what they may be reached at or come to.
type allowance struct {
	anyone bool
	peers  []netip.Prefix
	except []netip.Prefix // of anyone or of a single peer
	ports  []ports        // nil: any protocol and port
}

// ports are the ports of a protocol: first 0 is all of them.
type ports struct {
	protocol    string // tcp, udp, sctp
	first, last int32
}

// isolations are the restrictions of the Pods on the node with the given address.
func (w *world) isolations(host netip.Addr) []isolation {
	var list []isolation
	for _, p := range w.pods {
		if p.Status.HostIP != host.String() {
			continue
		}
		ip, ok := address(p)
		if !ok {
			continue
		}
		var in, out isolation
		in.pod, in.ingress, out.pod = ip, true, ip
		var isolatedIn, isolatedOut bool
		for _, policy := range w.policies {
			if policy.Namespace != p.Namespace || !selects(&policy.Spec.PodSelector, p.Labels) {
				continue
			}
			if applies(policy, networkingv1.PolicyTypeIngress) {
				isolatedIn = true
				for _, r := range policy.Spec.Ingress {
					in.allowed = append(in.allowed, w.ingress(policy.Namespace, p, r)...)
				}
			}
			if applies(policy, networkingv1.PolicyTypeEgress) {
				isolatedOut = true
				for _, r := range policy.Spec.Egress {
					out.allowed = append(out.allowed, w.egress(policy.Namespace, r)...)
				}
			}
		}
		if isolatedIn {
			list = append(list, in)
		}
		if isolatedOut {
			list = append(list, out)
		}
	}
	slices.SortStableFunc(list, func(a, b isolation) int { return a.pod.Compare(b.pod) })
	return list
}

// applies says whether a policy restricts a direction. Where the types aren't given,
// the API server has filled them in.
func applies(p *networkingv1.NetworkPolicy, t networkingv1.PolicyType) bool {
	return slices.Contains(p.Spec.PolicyTypes, t)
}

func (w *world) ingress(namespace string, target *corev1.Pod, r networkingv1.NetworkPolicyIngressRule) []allowance {
	open, none := resolve(r.Ports, target)
	if none {
		return nil
	}
	allowed := w.peers(namespace, r.From)
	for i := range allowed {
		allowed[i].ports = open
	}
	return allowed
}

// egress is harder than ingress where a port has a name: each peer has its own number for it.
func (w *world) egress(namespace string, r networkingv1.NetworkPolicyEgressRule) []allowance {
	var numbers, names []networkingv1.NetworkPolicyPort
	for _, p := range r.Ports {
		if p.Port != nil && p.Port.StrVal != "" {
			names = append(names, p)
		} else {
			numbers = append(numbers, p)
		}
	}
	var allowed []allowance
	if len(numbers) > 0 || len(r.Ports) == 0 {
		open, none := resolve(numbers, nil)
		if !none {
			allowed = w.peers(namespace, r.To)
			for i := range allowed {
				allowed[i].ports = open
			}
		}
	}
	if len(names) == 0 {
		return allowed
	}
	for _, p := range w.pods {
		ip, ok := address(p)
		if !ok || len(r.To) > 0 && !slices.ContainsFunc(r.To, func(peer networkingv1.NetworkPolicyPeer) bool { return w.is(namespace, peer, p, ip) }) {
			continue
		}
		if open, none := resolve(names, p); !none {
			allowed = append(allowed, allowance{peers: []netip.Prefix{netip.PrefixFrom(ip, 32)}, ports: open})
		}
	}
	return allowed
}

// peers turns peers into addresses; no peers in a rule means anyone.
func (w *world) peers(namespace string, list []networkingv1.NetworkPolicyPeer) []allowance {
	if len(list) == 0 {
		return []allowance{{anyone: true}}
	}
	var allowed []allowance
	var pods allowance
	for _, peer := range list {
		if peer.IPBlock != nil {
			if block, ok := prefix(peer.IPBlock.CIDR); ok {
				a := allowance{anyone: block.Bits() == 0, peers: []netip.Prefix{block}}
				for _, e := range peer.IPBlock.Except {
					if except, ok := prefix(e); ok {
						a.except = append(a.except, except)
					}
				}
				allowed = append(allowed, a)
			}
			continue
		}
		for _, p := range w.pods {
			if ip, ok := address(p); ok && w.is(namespace, peer, p, ip) {
				pods.peers = append(pods.peers, netip.PrefixFrom(ip, 32))
			}
		}
	}
	if len(pods.peers) > 0 {
		allowed = append(allowed, pods)
	}
	return allowed
}

// is says whether a peer of a policy in the namespace means the Pod with that address.
func (w *world) is(namespace string, peer networkingv1.NetworkPolicyPeer, p *corev1.Pod, ip netip.Addr) bool {
	if b := peer.IPBlock; b != nil {
		block, ok := prefix(b.CIDR)
		return ok && block.Contains(ip) && !slices.ContainsFunc(b.Except, func(e string) bool {
			except, ok := prefix(e)
			return ok && except.Contains(ip)
		})
	}
	if peer.NamespaceSelector == nil {
		if p.Namespace != namespace {
			return false
		}
	} else if !selects(peer.NamespaceSelector, w.namespaces[p.Namespace]) {
		return false
	}
	return peer.PodSelector == nil || selects(peer.PodSelector, p.Labels)
}

// resolve turns ports of a rule into numbers. A name is looked up in the Pod that is
// reached; none says that there were ports and the Pod has none of them.
func resolve(list []networkingv1.NetworkPolicyPort, target *corev1.Pod) (open []ports, none bool) {
	for _, p := range list {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		name, ok := map[corev1.Protocol]string{corev1.ProtocolTCP: "tcp", corev1.ProtocolUDP: "udp", corev1.ProtocolSCTP: "sctp"}[protocol]
		switch {
		case !ok: // no protocol that there is
		case p.Port == nil:
			open = append(open, ports{protocol: name})
		case p.Port.StrVal == "":
			last := p.Port.IntVal
			if p.EndPort != nil {
				last = *p.EndPort
			}
			open = append(open, ports{name, p.Port.IntVal, last})
		case target != nil:
			if n, ok := named(target, p.Port.StrVal, protocol); ok {
				open = append(open, ports{name, n, n})
			}
		}
	}
	return open, len(list) > 0 && len(open) == 0
}

func named(p *corev1.Pod, name string, protocol corev1.Protocol) (int32, bool) {
	containers := slices.Clone(p.Spec.Containers)
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		for _, port := range c.Ports {
			if port.Name == name && (port.Protocol == protocol || port.Protocol == "" && protocol == corev1.ProtocolTCP) {
				return port.ContainerPort, true
			}
		}
	}
	return 0, false
}

// address is a Pod's own address, while it has one: policies don't apply to Pods in
// the network of their node, nor to those that have ended.
func address(p *corev1.Pod) (netip.Addr, bool) {
	if p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(p.Status.PodIP)
	return ip, err == nil && ip.Is4()
}

func prefix(s string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err == nil && p.Addr().Is4()
}

func selects(s *metav1.LabelSelector, l labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(l)
}

func (p ports) String() string {
	switch {
	case p.first == 0:
		return "0-65535"
	case p.first == p.last:
		return fmt.Sprint(p.first)
	}
	return fmt.Sprintf("%d-%d", p.first, p.last)
}
