// Package vnet is a cluster's virtual network: in-process connections and datagrams keyed by
// IP and port with the semantics of a real one (connection refused where nobody
// listens, silence where a node is off), Service addresses resolved through
// EndpointSlices as kube-proxy does, and cluster DNS. Nothing in it ever opens
// a socket of the host.
package vnet

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Limits of a network; a learner's programs meet them as ENOBUFS or EMFILE.
const (
	maxInterfaces = 4096
	maxConns      = 8192 // of a network
	maxConnsOut   = 2048 // opened through one interface
	maxConnsIn    = 4096 // accepted by one interface
	maxListeners  = 256  // of one interface
	backlog       = 128  // connections that wait for Accept
)

// Network is one cluster's network. All methods are safe for concurrent use.
type Network struct {
	buffers   budget
	datagrams budget
	done      chan struct{} // closed by Close

	mu       sync.Mutex
	closed   bool
	byIP     map[netip.Addr]*stack
	ghosts   map[netip.Addr]*stack // closed while silent; their peers still wait
	stacks   map[*stack]struct{}
	nodes    map[string]*stack
	conns    int
	udp      int // sockets
	flows    map[flowKey]*udpFlow
	services *ServiceTable
	policies *PolicyTable
	street   *StreetTable
	health   *proxyHealth // nil until somebody asks
	dnsReady func() bool
	upstream netip.Addr // name server of the world
}

// New makes an empty network.
func New() *Network {
	return &Network{
		done:   make(chan struct{}),
		byIP:   make(map[netip.Addr]*stack),
		ghosts: make(map[netip.Addr]*stack),
		stacks: make(map[*stack]struct{}),
		nodes:  make(map[string]*stack),
		flows:  make(map[flowKey]*udpFlow),
	}
}

// Close resets every connection, closes every listener and waits for the network's goroutines.
func (n *Network) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	close(n.done)
	all := make([]*stack, 0, len(n.stacks)+len(n.ghosts))
	for s := range n.stacks {
		all = append(all, s)
	}
	for _, s := range n.ghosts {
		all = append(all, s)
	}
	for _, s := range all {
		s.down = false // nothing is to be kept waiting any more
		s.detachLocked()
		s.buryLocked(syscall.ECONNRESET)
	}
	health := n.health
	n.mu.Unlock()
	if health != nil {
		health.close()
	}
	return nil
}

// Attach adds an interface (a node's or a Pod's). Its error is for an address that is taken.
// Traffic among the containers of a Pod uses the Pod's Interface and 127.0.0.1 of it.
func (n *Network) Attach(name string, ips ...netip.Addr) (*Interface, error) {
	fail := func(errno syscall.Errno, ip netip.Addr) error {
		return &net.OpError{Op: "attach", Net: "ip", Addr: &net.IPAddr{IP: ip.AsSlice()}, Err: errno}
	}
	addrs := make([]netip.Addr, len(ips))
	for k, ip := range ips {
		ip = ip.Unmap()
		if !ip.IsValid() || ip.IsUnspecified() || ip.IsLoopback() || ip.IsMulticast() {
			return nil, fail(syscall.EINVAL, ip)
		}
		addrs[k] = ip
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, &net.OpError{Op: "attach", Net: "ip", Err: net.ErrClosed}
	}
	if len(n.stacks) >= maxInterfaces {
		return nil, &net.OpError{Op: "attach", Net: "ip", Err: syscall.ENOBUFS}
	}
	for _, ip := range addrs {
		if n.byIP[ip] != nil {
			return nil, fail(syscall.EADDRINUSE, ip)
		}
	}
	s := newStack(n, name, addrs)
	n.stacks[s] = struct{}{}
	for _, ip := range addrs {
		n.byIP[ip] = s
		if g := n.ghosts[ip]; g != nil { // a new owner of the address answers old peers with RST
			g.buryLocked(syscall.ECONNRESET)
		}
	}
	return &Interface{stack: s}, nil
}

// At returns the interface that has an address now, as its own programs use it; nil when
// nobody has it. It must not be closed.
func (n *Network) At(ip netip.Addr) *Interface {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.byIP[ip.Unmap()]; s != nil {
		return &Interface{stack: s}
	}
	return nil
}

// SetServices makes Service addresses and cluster DNS names work; nil takes them away.
func (n *Network) SetServices(t *ServiceTable) {
	n.mu.Lock()
	n.services = t
	n.mu.Unlock()
}

// SetUpstream is the address of a name server outside of the cluster, such as nodes have. It
// answers at once that no name exists: there is no world behind this network.
func (n *Network) SetUpstream(ip netip.Addr) {
	n.mu.Lock()
	n.upstream = ip
	n.mu.Unlock()
}

// SetDNSReady says whether the cluster's DNS answers; while ready returns false
// every lookup times out. Nil, the default, goes by the network: the name server
// is the Service at that address, and answers when the endpoint that gets the question
// is there and not silent. The function must not block.
func (n *Network) SetDNSReady(ready func() bool) {
	n.mu.Lock()
	n.dnsReady = ready
	n.mu.Unlock()
}

// Stats are counts of what a network holds.
type Stats struct {
	Interfaces, Conns, Sockets, Flows int // Sockets are UDP's
	BufferBytes                       int64
}

// Stats counts what the network holds now.
func (n *Network) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Stats{Interfaces: len(n.stacks), Conns: n.conns, Sockets: n.udp, Flows: len(n.flows),
		BufferBytes: n.buffers.used.Load() + n.datagrams.used.Load()}
}

// Interface is a Pod's or node's place in the network, with a loopback of its
// own, or one process's view of it (Process).
type Interface struct {
	stack   *stack
	sockets *socketSet // nil but in a view
	dns     *DNSConfig // instead of the stack's, in a view
}

// Process is a view of the interface for one process or container: the same
// addresses, ports and loopback, but Close closes only the sockets that were
// opened through the view, as a kernel does when a process ends.
func (i *Interface) Process() *Interface {
	return &Interface{stack: i.stack, sockets: newSocketSet(), dns: i.dns}
}

// WithDNS is a view of the interface with a resolver configuration of its own: for
// Pods with hostNetwork. It must not be closed.
func (i *Interface) WithDNS(c DNSConfig) *Interface {
	return &Interface{stack: i.stack, sockets: i.sockets, dns: &c}
}

// Name is the name that Attach was called with.
func (i *Interface) Name() string { return i.stack.name }

// IPs are the interface's addresses, without loopback.
func (i *Interface) IPs() []netip.Addr { return append([]netip.Addr(nil), i.stack.ips...) }

// ServeNodePorts makes the interface the node's of its name: node ports, host ports and
// health checks of Services answer on its addresses, and load balancers send to it. In
// the way of kube-proxy node ports win over listeners.
func (i *Interface) ServeNodePorts(on bool) {
	s := i.stack
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.node = on
	if on && !s.detached {
		s.nodeName = s.name
		s.net.nodes[s.name] = s
	} else if s.net.nodes[s.name] == s {
		delete(s.net.nodes, s.name)
	}
}

// SetDNS sets the resolver configuration (a Pod's /etc/resolv.conf).
func (i *Interface) SetDNS(c DNSConfig) {
	n := i.stack.net
	n.mu.Lock()
	i.stack.dns = c
	n.mu.Unlock()
}

// DNS returns the resolver configuration.
func (i *Interface) DNS() DNSConfig {
	if i.dns != nil {
		return *i.dns
	}
	n := i.stack.net
	n.mu.Lock()
	defer n.mu.Unlock()
	return i.stack.dns
}

// SetDown makes the interface silent: packets vanish in both directions, so that
// dials hang until their context ends and open connections stall, as when a
// node loses power or its cable. False brings it back. Loopback is not affected.
// Connections that are silent for longer than TCP keep-alive lasts time out.
func (i *Interface) SetDown(down bool) {
	n := i.stack.net
	n.mu.Lock()
	defer n.mu.Unlock()
	i.stack.setDownLocked(down)
}

// Close detaches the interface: its listeners close and its connections are
// reset. Of a view (Process) it closes the view's own sockets only; connections
// end with FIN. While the interface is down its peers learn nothing of it.
func (i *Interface) Close() error {
	n := i.stack.net
	if i.sockets != nil {
		i.sockets.closeAll()
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	i.stack.detachLocked()
	return nil
}

// Dialer returns DialContext bound to this interface, in the form that
// http.Transport and others take.
func (i *Interface) Dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	return i.DialContext
}

// keepAlive is how long a silent connection lasts: Go's and Linux' keep-alive
// gives up after about this time.
const keepAlive = 150 * time.Second
