package vnet

import (
	"net/netip"
	"slices"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// PolicyTable is what a network plugin knows for NetworkPolicy: the policies, the
// Pods by namespace and name and by address, and the namespaces' labels. Policies are looked at
// when a connection is opened; open ones go on. It is safe for concurrent use.
type PolicyTable struct {
	mu         sync.RWMutex
	namespaces map[string]labels.Set
	pods       map[objectKey]*policyPod
	byIP       map[netip.Addr]*policyPod
	policies   map[string]map[string]*policy // by namespace and name
}

func newPolicyTable() *PolicyTable {
	return &PolicyTable{
		namespaces: make(map[string]labels.Set),
		pods:       make(map[objectKey]*policyPod),
		byIP:       make(map[netip.Addr]*policyPod),
		policies:   make(map[string]map[string]*policy),
	}
}

// policyPod is a Pod with an address of its own; Pods with hostNetwork are their node to others.
type policyPod struct {
	key    objectKey
	labels labels.Set
	ips    []netip.Addr
	ports  []endpointPort // of its containers, for named ports
}

// policy is a NetworkPolicy with parsed selectors.
type policy struct {
	pods            labels.Selector
	ingress, egress []policyRule
	isIngress       bool
	isEgress        bool
}

// policyRule is one item of ingress or egress; without peers or ports it matches all.
type policyRule struct {
	peers []policyPeer
	ports []networkingv1.NetworkPolicyPort
}

// policyPeer matches Pods by selectors (a nil one: any Pod, or the policy's own namespace) or addresses.
type policyPeer struct {
	pods, namespaces labels.Selector
	block            netip.Prefix
	except           []netip.Prefix
}

// party is one end of a connection.
type party struct {
	pod *policyPod // nil for nodes and the world
	ip  netip.Addr
}

// flow is a connection that policies are asked about.
type flow struct {
	from, to party
	protocol string
	port     uint16
}

// allows asks the policies of both ends: the egress rules that select the source, and the
// ingress rules that select the destination.
func (t *PolicyTable) allows(f flow) bool {
	return t.permits(f, f.from, f.to, networkingv1.PolicyTypeEgress) && t.permits(f, f.to, f.from, networkingv1.PolicyTypeIngress)
}

// permits asks for one direction: own is the end that policies select. A Pod that no policy
// of the direction selects isn't isolated; else one rule of any of them must match.
func (t *PolicyTable) permits(f flow, own, peer party, direction networkingv1.PolicyType) bool {
	if own.pod == nil {
		return true
	}
	isolated := false
	for _, p := range t.policies[own.pod.key.namespace] {
		rules, applies := p.ingress, p.isIngress
		if direction == networkingv1.PolicyTypeEgress {
			rules, applies = p.egress, p.isEgress
		}
		if !applies || !p.pods.Matches(own.pod.labels) {
			continue
		}
		isolated = true
		for _, r := range rules {
			if r.matchesPort(f) && t.matchesPeer(r, own.pod.key.namespace, peer) {
				return true
			}
		}
	}
	return !isolated
}

func (r policyRule) matchesPort(f flow) bool {
	if len(r.ports) == 0 {
		return true
	}
	return slices.ContainsFunc(r.ports, func(p networkingv1.NetworkPolicyPort) bool {
		if string(value(p.Protocol, "TCP")) != f.protocol {
			return false
		}
		switch {
		case p.Port == nil:
			return true
		case p.Port.StrVal != "": // the name of a port of the destination's containers
			return f.to.pod != nil && slices.Contains(f.to.pod.ports, endpointPort{p.Port.StrVal, f.protocol, f.port})
		case p.EndPort != nil:
			return int32(f.port) >= p.Port.IntVal && int32(f.port) <= *p.EndPort
		}
		return int32(f.port) == p.Port.IntVal
	})
}

func (t *PolicyTable) matchesPeer(r policyRule, namespace string, peer party) bool {
	if len(r.peers) == 0 {
		return true
	}
	contains := func(p netip.Prefix) bool { return p.Contains(peer.ip) }
	return slices.ContainsFunc(r.peers, func(p policyPeer) bool {
		if p.block.IsValid() {
			return contains(p.block) && !slices.ContainsFunc(p.except, contains)
		}
		if peer.pod == nil || p.pods == nil && p.namespaces == nil {
			return false
		}
		if p.namespaces == nil {
			if peer.pod.key.namespace != namespace {
				return false
			}
		} else if !p.namespaces.Matches(t.namespaces[peer.pod.key.namespace]) {
			return false
		}
		return p.pods == nil || p.pods.Matches(peer.pod.labels)
	})
}

// partyOf finds the Pod behind an interface, or an address.
func (t *PolicyTable) partyOf(s *stack, ip netip.Addr) party {
	if s == nil || s.node {
		return party{ip: ip}
	}
	if p := t.pods[s.key]; p != nil {
		return party{p, ip}
	}
	return party{t.byIP[ip], ip}
}

// passes reports whether NetworkPolicies let a packet through. What a Pod sends to itself
// and what comes from its own node, such as probes, always passes.
func (n *Network) passes(from *stack, client netip.Addr, to netip.AddrPort, protocol string) bool {
	n.mu.Lock()
	t, target := n.policies, n.byIP[to.Addr()]
	free := t == nil || target == from ||
		target != nil && from.nodeName != "" && target.nodeName == from.nodeName && (from.node || target.node)
	n.mu.Unlock()
	if free {
		return true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.policies) == 0 {
		return true
	}
	return t.allows(flow{t.partyOf(from, client), t.partyOf(target, to.Addr()), protocol, to.Port()})
}

// SetPolicies makes NetworkPolicies count; nil lets everything through.
func (n *Network) SetPolicies(t *PolicyTable) {
	n.mu.Lock()
	n.policies = t
	n.mu.Unlock()
}
