package pantry

import (
	"context"
	"net"
	"net/netip"

	"kubistro/internal/clusterhost/vnet"
)

// Network is what a process has of the network: on a simulated node a
// *vnet.Interface, in a real container the kernel's. Safe for concurrent use.
type Network interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	Listen(address string) (net.Listener, error)
	// ListenPacket opens a UDP socket.
	ListenPacket(address string) (net.PacketConn, error)
	// IPs are the addresses besides loopback.
	IPs() []netip.Addr
	DNS() vnet.DNSConfig
	// LookupHost resolves a name by the search path.
	LookupHost(ctx context.Context, name string) ([]netip.Addr, error)
	// QueryAt asks a name server for one type of record of an absolute name. The
	// error is a *net.DNSError.
	QueryAt(ctx context.Context, server netip.Addr, name, qtype string) (vnet.Answer, error)
}
