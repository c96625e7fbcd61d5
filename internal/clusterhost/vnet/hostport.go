package vnet

import "net/netip"

// hostPort is where a port of a node leads: the portmap plugin's work.
type hostPort struct {
	pod  *stack
	port uint16
}

// hostPortKey is a port of a node; the zero Addr is all of its addresses.
type hostPortKey struct {
	protocol string
	at       netip.AddrPort
}

// SetPod says whose interface it is, so that NetworkPolicies count for the Pod before
// its status shows the address.
func (i *Interface) SetPod(namespace, name string) {
	n := i.stack.net
	n.mu.Lock()
	i.stack.key = objectKey{namespace, name}
	n.mu.Unlock()
}

// MapHostPort makes a port of the node lead to a port of this interface, until it
// is closed. The protocol is TCP or UDP. hostIP limits it to one of the node's addresses; the zero Addr is all of them.
func (i *Interface) MapHostPort(node *Interface, protocol string, hostIP netip.Addr, port, to uint16) {
	if hostIP.IsUnspecified() {
		hostIP = netip.Addr{}
	}
	n := i.stack.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if i.stack.detached || node.stack.detached {
		return
	}
	if node.stack.hostPorts == nil {
		node.stack.hostPorts = make(map[hostPortKey]hostPort)
	}
	node.stack.hostPorts[hostPortKey{protocol, netip.AddrPortFrom(hostIP, port)}] = hostPort{i.stack, to}
	i.stack.mappedAt = node.stack
}

// hostPortLocked finds the Pod behind a port of the node.
func (s *stack) hostPortLocked(protocol string, at netip.AddrPort) (netip.AddrPort, bool) {
	for _, ip := range []netip.Addr{at.Addr(), {}} {
		h, ok := s.hostPorts[hostPortKey{protocol, netip.AddrPortFrom(ip, at.Port())}]
		if !ok {
			continue
		}
		for _, own := range h.pod.ips {
			if own.Is4() == at.Addr().Is4() {
				return netip.AddrPortFrom(own, h.port), true
			}
		}
	}
	return netip.AddrPort{}, false
}

// unmapLocked takes back the host ports of a Pod whose interface closes.
func (s *stack) unmapLocked() {
	if s.mappedAt == nil {
		return
	}
	for at, h := range s.mappedAt.hostPorts {
		if h.pod == s {
			delete(s.mappedAt.hostPorts, at)
		}
	}
	s.mappedAt = nil
}
