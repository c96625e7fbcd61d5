package vnet

import "net/netip"

// DNSConfig is what /etc/resolv.conf and /etc/hosts say.
type DNSConfig struct {
	Nameserver netip.Addr // 10.96.0.10
	Search     []string   // default.svc.cluster.local svc.cluster.local cluster.local
	Ndots      int        // 5
	// Hosts are the names of /etc/hosts (the Pod's own, hostAliases), in lower
	// case; localhost needs no entry.
	Hosts map[string][]netip.Addr
}
