package vnet

import "maps"

// SetNode says which node a Pod's interface is on. What passes between interfaces
// of one node doesn't need the node's cable (SetCut), and Service addresses are
// translated by the rules of that node (SetProxy), to near endpoints where that is asked for.
func (i *Interface) SetNode(node *Interface) {
	n := i.stack.net
	n.mu.Lock()
	defer n.mu.Unlock()
	i.stack.host, i.stack.nodeName = node.stack, node.stack.name
	for c := range i.stack.conns {
		c.setSilentLocked()
	}
}

// SetCut pulls a node's cable or plugs it in again: packets between the interfaces
// of this node and all others vanish, while those of the node still reach each
// other. Connections that are silent for longer than TCP keep-alive lasts time out.
func (i *Interface) SetCut(cut bool) {
	n := i.stack.net
	n.mu.Lock()
	defer n.mu.Unlock()
	s := i.stack
	if s.detached || s.cut == cut {
		return
	}
	s.cut = cut
	s.eachOfNodeLocked((*conn).setSilentLocked)
	s.silenceLocked()
}

// SetProxy says whether the node's kube-proxy works. While it doesn't, the rules
// that it has written stay as they are, as a kernel keeps them.
func (i *Interface) SetProxy(works bool) {
	n := i.stack.net
	n.mu.Lock()
	defer n.mu.Unlock()
	switch s := i.stack.nodeLocked(); {
	case works:
		s.table = nil
	case s.table == nil && n.services != nil:
		s.table = n.services.frozen()
	}
}

// nodeLocked is the stack of the node that a stack is on; its own when it is on none.
func (s *stack) nodeLocked() *stack {
	if s.host != nil {
		return s.host
	}
	return s
}

// tableLocked is what translates Service addresses for a stack; nil: nothing does.
func (s *stack) tableLocked() *ServiceTable {
	if t := s.nodeLocked().table; t != nil {
		return t
	}
	return s.net.services
}

// reachesLocked reports whether packets pass between two stacks.
func (s *stack) reachesLocked(t *stack) bool {
	if s == t {
		return true
	}
	if s.down || t.down {
		return false
	}
	a, b := s.nodeLocked(), t.nodeLocked()
	return a == b || !a.cut && !b.cut
}

// eachOfNodeLocked calls f for the connections of a node and of its Pods.
func (s *stack) eachOfNodeLocked(f func(*conn)) {
	for t := range s.net.stacks {
		if t.nodeLocked() == s {
			for c := range t.conns {
				f(c)
			}
		}
	}
}

// frozen is a copy that no event changes.
func (t *ServiceTable) frozen() *ServiceTable {
	t.mu.RLock()
	defer t.mu.RUnlock()
	f := newServiceTable()
	f.now = t.now
	f.services, f.vips, f.vipCount = maps.Clone(t.services), maps.Clone(t.vips), maps.Clone(t.vipCount)
	f.nodePorts, f.namespaces = maps.Clone(t.nodePorts), maps.Clone(t.namespaces)
	f.health, f.nodes = maps.Clone(t.health), maps.Clone(t.nodes)
	return f
}
