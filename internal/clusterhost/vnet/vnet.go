// Package vnet is a cluster's virtual network: in-process connections keyed by
// IP and port with the semantics of a real one (connection refused where nobody
// listens, silence where a node is off), Service addresses resolved through
// EndpointSlices as kube-proxy does, and cluster DNS. Nothing in it ever opens
// a socket of the host.
package vnet

import (
	"context"
	"net"
	"net/netip"
)

// Network is one cluster's network. All methods are safe for concurrent use.
type Network struct{}

// New makes an empty network.
func New() *Network { panic("being built") }

// Close resets every connection, closes every listener and waits for the network's goroutines.
func (n *Network) Close() error { panic("being built") }

// Attach adds an interface (a node's or a Pod's). Its error is for an address that is taken.
// Traffic among the containers of a Pod uses the Pod's Interface and 127.0.0.1 of it.
func (n *Network) Attach(name string, ips ...netip.Addr) (*Interface, error) { panic("being built") }

// Interface is a Pod's or node's place in the network, with a loopback of its own.
type Interface struct{}

// IPs are the interface's addresses, without loopback.
func (i *Interface) IPs() []netip.Addr { panic("being built") }

// Listen listens on ":80", "0.0.0.0:80", "127.0.0.1:80" or an own address;
// port 0 picks one. Errors are *net.OpError around syscall.EADDRINUSE and so on.
func (i *Interface) Listen(address string) (net.Listener, error) { panic("being built") }

// DialContext connects to host:port; a host that isn't an IP is looked up with
// the interface's resolver. Errors are *net.OpError around
// syscall.ECONNREFUSED, EHOSTUNREACH, or a timeout; *net.DNSError for names.
func (i *Interface) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	panic("being built")
}

// SetDNS sets the resolver configuration (a Pod's /etc/resolv.conf).
func (i *Interface) SetDNS(c DNSConfig) { panic("being built") }

// LookupHost resolves a name as getaddrinfo in a Pod would: search path, ndots, cluster DNS.
func (i *Interface) LookupHost(ctx context.Context, name string) ([]netip.Addr, error) {
	panic("being built")
}

// SetDown makes the interface silent: packets vanish in both directions, so that
// dials hang until their context ends and open connections stall, as when a
// node loses power or its cable. False brings it back.
func (i *Interface) SetDown(down bool) { panic("being built") }

// Close detaches the interface: its listeners close and its connections are reset.
func (i *Interface) Close() error { panic("being built") }

// DNSConfig is what /etc/resolv.conf says.
type DNSConfig struct {
	Nameserver netip.Addr // 10.96.0.10
	Search     []string   // default.svc.cluster.local svc.cluster.local cluster.local
	Ndots      int        // 5
}
