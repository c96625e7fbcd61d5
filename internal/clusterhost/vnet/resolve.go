package vnet

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"
)

// The patience of a resolver, as resolv.conf(5) has it by default.
const (
	dnsTimeout  = 5 * time.Second
	dnsAttempts = 2
)

// noServers is what nslookup prints when no name server answers.
const noServers = "connection timed out; no servers could be reached"

// LookupHost resolves a name as getaddrinfo in a Pod would: search path, ndots, cluster DNS.
// Errors are *net.DNSError; with IsTimeout when no name server answers.
func (i *Interface) LookupHost(ctx context.Context, name string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{ip.Unmap().WithZone("")}, nil
	}
	c := i.DNS()
	lower := strings.ToLower(strings.TrimSuffix(name, "."))
	if lower == "localhost" {
		return []netip.Addr{loopback(netip.IPv4Unspecified())}, nil
	}
	if ips := c.Hosts[lower]; len(ips) > 0 {
		return append([]netip.Addr(nil), ips...), nil
	}
	for _, full := range c.candidates(name) {
		var ips []netip.Addr
		for _, qtype := range []string{"A", "AAAA"} {
			a, err := i.ask(ctx, c, name, full, qtype)
			if err != nil {
				return nil, err
			}
			for _, r := range a.Records {
				if r.Addr.IsValid() {
					ips = append(ips, r.Addr)
				}
			}
		}
		if len(ips) > 0 {
			return ips, nil
		}
	}
	return nil, c.notFound(name)
}

// Query asks the interface's name server for one type of record of an absolute
// name, without the search path: for nslookup and dig. The error is a *net.DNSError.
func (i *Interface) Query(ctx context.Context, name, qtype string) (Answer, error) {
	return i.ask(ctx, i.DNS(), name, name, qtype)
}

// QueryAt is Query at another name server than the interface's own.
func (i *Interface) QueryAt(ctx context.Context, server netip.Addr, name, qtype string) (Answer, error) {
	c := i.DNS()
	c.Nameserver = server.Unmap()
	return i.ask(ctx, c, name, name, qtype)
}

// LookupSRV returns the SRV records of _service._proto.name, by the search path.
func (i *Interface) LookupSRV(ctx context.Context, service, proto, name string) ([]Record, error) {
	if service != "" || proto != "" {
		name = "_" + service + "._" + proto + "." + name
	}
	c := i.DNS()
	for _, full := range c.candidates(name) {
		a, err := i.ask(ctx, c, name, full, "SRV")
		if err != nil {
			return nil, err
		}
		if len(a.Records) > 0 {
			return a.Records, nil
		}
	}
	return nil, c.notFound(name)
}

// LookupAddr returns the names that belong to an address.
func (i *Interface) LookupAddr(ctx context.Context, ip netip.Addr) ([]string, error) {
	a, err := i.Query(ctx, ReverseName(ip), "PTR")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range a.Records {
		names = append(names, r.Text)
	}
	if len(names) == 0 {
		return nil, i.DNS().notFound(ip.String())
	}
	return names, nil
}

// Candidates are the absolute names that a resolver tries for a name, in order.
func (c DNSConfig) Candidates(name string) []string { return c.candidates(name) }

func (c DNSConfig) candidates(name string) []string {
	if !isName(name) {
		return nil
	}
	if absolute, ok := strings.CutSuffix(name, "."); ok {
		return []string{absolute}
	}
	var out []string
	for _, domain := range c.Search {
		out = append(out, name+"."+strings.Trim(domain, "."))
	}
	if strings.Count(name, ".") >= max(c.Ndots, 1) {
		return append([]string{name}, out...)
	}
	return append(out, name)
}

// isName reports whether a name can be asked for.
func isName(name string) bool {
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for k := range len(label) {
			if c := label[k]; c <= ' ' || c >= 0x7f {
				return false
			}
		}
	}
	return true
}

func (c DNSConfig) server() string {
	if !c.Nameserver.IsValid() {
		return ""
	}
	return netip.AddrPortFrom(c.Nameserver, 53).String()
}

func (c DNSConfig) notFound(name string) error {
	return &net.DNSError{Err: "no such host", Name: name, Server: c.server(), IsNotFound: true}
}

// ask asks the name server; name is what the caller was asked for.
func (i *Interface) ask(ctx context.Context, c DNSConfig, name, full, qtype string) (Answer, error) {
	if !isName(full) {
		return Answer{}, c.notFound(name)
	}
	servers := append([]netip.Addr{c.Nameserver}, c.More...)
	for n := range dnsAttempts * len(servers) {
		t, state := i.nameserver(servers[n%len(servers)])
		switch state {
		case answers:
			return t.answer(full, qtype), nil
		case refuses:
			if len(servers) > 1 && n < dnsAttempts*len(servers)-1 {
				continue
			}
			return Answer{}, c.unreachable(name)
		}
		timer := time.NewTimer(dnsTimeout)
		select {
		case <-timer.C:
		case <-i.stack.net.done:
			timer.Stop()
			return Answer{}, c.unreachable(name)
		case <-ctx.Done():
			timer.Stop()
			return Answer{}, &net.DNSError{Err: contextError(ctx.Err()).Error(), Name: name, Server: c.server(),
				IsTimeout: ctx.Err() == context.DeadlineExceeded, UnwrapErr: contextError(ctx.Err())}
		}
	}
	return Answer{}, c.unreachable(name)
}

func (c DNSConfig) unreachable(name string) error {
	return &net.DNSError{Err: noServers, Name: name, Server: c.server(), IsTimeout: true, IsTemporary: true}
}

// serverState is what comes of sending a question to a name server.
type serverState int

const (
	silent  serverState = iota // nobody is there, or it is off
	refuses                    // kube-proxy rejects: the Service has no endpoints
	answers
)

// nameserver finds out whether the name server can be reached: it is a Service,
// one of whose endpoints gets the question, or what SetDNSReady says.
func (i *Interface) nameserver(ip netip.Addr) (*ServiceTable, serverState) {
	n := i.stack.net
	n.mu.Lock()
	t, ready, down, upstream := n.services, n.dnsReady, i.stack.down || i.stack.detached, n.upstream
	rules := i.stack.tableLocked()
	n.mu.Unlock()
	if t == nil || down || !ip.IsValid() {
		return nil, silent
	}
	if ip == upstream {
		n.mu.Lock()
		far := n.byIP[ip]
		cut := far != nil && !i.stack.reachesLocked(far)
		n.mu.Unlock()
		if client, ok := i.stack.source(ip); ok && n.passes(i.stack, client, netip.AddrPortFrom(ip, 53), "UDP") && !cut {
			return newServiceTable(), answers
		}
		return nil, silent
	}
	if ready != nil {
		if ready() {
			return t, answers
		}
		return t, silent
	}
	s := i.stack
	client, _ := s.source(ip)
	at, _, v := rules.translate(origin{client: client, protocol: "UDP", node: s.nodeName, inside: s.nodeName != ""}, netip.AddrPortFrom(ip, 53))
	switch v {
	case notService, drops:
		return t, silent
	case rejects:
		return t, refuses
	}
	if !n.passes(s, client, at, "UDP") {
		return t, silent
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.byIP[at.Addr()]; s == nil || !i.stack.reachesLocked(s) {
		return t, silent
	}
	return t, answers
}
