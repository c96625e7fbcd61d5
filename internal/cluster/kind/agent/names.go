package agent

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
)

// The search path of a Pod in namespace default, and how many dots a name needs to
// be tried as it is first: pkg/kubelet/network/dns.
var (
	searchPath = []string{"default.svc.cluster.local.", "svc.cluster.local.", "cluster.local."}
	enoughDots = 5
)

// names asks the cluster's name server as a Pod in namespace default does.
type names struct{ resolver *net.Resolver }

func newNames(server string) *names {
	if server == "" {
		return &names{}
	}
	return &names{&net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}}}
}

// lookup finds the addresses of a host; a literal address is its own.
func (n *names) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	if n.resolver == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var last error
	for _, name := range candidates(host) {
		ips, err := n.resolver.LookupNetIP(ctx, "ip4", name)
		if err == nil {
			return ips, nil
		}
		last = err
		var dns *net.DNSError
		if !errors.As(err, &dns) || !dns.IsNotFound {
			break
		}
	}
	return nil, last
}

// candidates are the full names that a name may stand for, in order. A single label is
// nobody's outside of the cluster, and a name server that can't be reached would make an
// error of its absence.
func candidates(host string) []string {
	if strings.HasSuffix(host, ".") {
		return []string{host}
	}
	var out []string
	for _, domain := range searchPath {
		out = append(out, host+"."+domain)
	}
	if strings.Count(host, ".") >= enoughDots {
		return append([]string{host + "."}, out...)
	}
	if !strings.Contains(host, ".") {
		return out
	}
	return append(out, host+".")
}
