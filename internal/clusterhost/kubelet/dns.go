package kubelet

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/vnet"
)

const (
	clusterDomain = "cluster.local"
	hostnameMax   = 63
)

// hostname follows kubelet_pods.go, GeneratePodHostNameAndDomain.
func (w *worker) hostname() string {
	switch {
	case w.pod.Spec.HostNetwork:
		return w.b.k.cfg.Name
	case w.pod.Spec.HostnameOverride != nil:
		return *w.pod.Spec.HostnameOverride
	}
	name := w.pod.Spec.Hostname
	if name == "" {
		name = w.pod.Name
	}
	if len(name) > hostnameMax {
		name = strings.TrimRight(name[:hostnameMax], "-.")
	}
	if d := w.domain(); d != "" && ptr.Deref(w.pod.Spec.SetHostnameAsFQDN, false) {
		name += "." + d
	}
	return name
}

// domain is the part of the Pod's full name after its hostname, "" without a subdomain.
func (w *worker) domain() string {
	if w.pod.Spec.Subdomain == "" || w.pod.Spec.HostNetwork || w.pod.Spec.HostnameOverride != nil {
		return ""
	}
	return w.pod.Spec.Subdomain + "." + w.pod.Namespace + ".svc." + clusterDomain
}

// dns is the Pod's resolver by its dnsPolicy and dnsConfig, and the names in its
// hosts file: network/dns/dns.go.
func (w *worker) dns() vnet.DNSConfig {
	ns := w.pod.Namespace
	c := vnet.DNSConfig{Nameserver: w.b.k.cfg.NodeDNS}
	policy := w.pod.Spec.DNSPolicy
	switch {
	case policy == corev1.DNSNone:
		c.Nameserver = netip.Addr{}
	case policy == corev1.DNSClusterFirstWithHostNet || !w.pod.Spec.HostNetwork && (policy == "" || policy == corev1.DNSClusterFirst):
		c = vnet.DNSConfig{
			Nameserver: w.b.k.cfg.ClusterDNS, Ndots: 5,
			Search: []string{ns + ".svc." + clusterDomain, "svc." + clusterDomain, clusterDomain},
		}
	}
	if d := w.pod.Spec.DNSConfig; d != nil {
		for _, s := range d.Nameservers {
			ip, err := netip.ParseAddr(s)
			switch {
			case err != nil || ip == c.Nameserver || slices.Contains(c.More, ip):
			case !c.Nameserver.IsValid():
				c.Nameserver = ip
			default:
				c.More = append(c.More, ip)
			}
		}
		for _, s := range d.Searches {
			if s != "" && !slices.Contains(c.Search, s) {
				c.Search = append(c.Search, s)
			}
		}
		for _, o := range d.Options {
			if o.Name == "ndots" && o.Value != nil {
				if n, err := strconv.Atoi(*o.Value); err == nil {
					c.Ndots = n
				}
			}
		}
	}
	c.More = c.More[:min(len(c.More), maxNameservers-1)]
	c.Hosts = w.hosts()
	return c
}

// maxNameservers is what a resolver takes: apis/core/validation, MaxDNSNameservers.
const maxNameservers = 3

// hosts are the names that the Pod's hosts file adds.
func (w *worker) hosts() map[string][]netip.Addr {
	out := map[string][]netip.Addr{}
	add := func(ip netip.Addr, names ...string) {
		for _, n := range names {
			n = strings.ToLower(n)
			out[n] = append(out[n], ip)
		}
	}
	if w.ip.IsValid() {
		name, _, _ := strings.Cut(w.hostname(), ".")
		add(w.ip, name)
		if d := w.domain(); d != "" {
			add(w.ip, name+"."+d)
		}
	}
	for _, a := range w.pod.Spec.HostAliases {
		if ip, err := netip.ParseAddr(a.IP); err == nil {
			add(ip, a.Hostnames...)
		}
	}
	return out
}

// resolvConf is /etc/resolv.conf as the runtime writes it. Options of dnsConfig win
// over those of the policy.
func (w *worker) resolvConf() []byte {
	c := w.dns()
	var b strings.Builder
	if len(c.Search) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(c.Search, " "))
	}
	for _, ip := range append([]netip.Addr{c.Nameserver}, c.More...) {
		if ip.IsValid() {
			fmt.Fprintf(&b, "nameserver %s\n", ip)
		}
	}
	var options []string
	if c.Ndots > 0 {
		options = append(options, "ndots:"+strconv.Itoa(c.Ndots))
	}
	if d := w.pod.Spec.DNSConfig; d != nil {
		for _, o := range d.Options {
			switch {
			case o.Name == "ndots":
			case o.Value != nil:
				options = append(options, o.Name+":"+*o.Value)
			default:
				options = append(options, o.Name)
			}
		}
	}
	if len(options) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(options, " "))
	}
	return []byte(b.String())
}

// hostsFile is the Pod's /etc/hosts: kubelet_pods.go, managedHostsFileContent and nodeHostsFileContent.
func (w *worker) hostsFile() []byte {
	var b strings.Builder
	b.WriteString("# Kubernetes-managed hosts file")
	if w.pod.Spec.HostNetwork { // what follows is the node's own file
		b.WriteString(" (host network)")
	}
	b.WriteString(".\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n")
	name, _, _ := strings.Cut(w.hostname(), ".")
	if d := w.domain(); d != "" {
		fmt.Fprintf(&b, "%s\t%s.%s\t%s\n", w.ip, name, d, name)
	} else {
		fmt.Fprintf(&b, "%s\t%s\n", w.ip, name)
	}
	if len(w.pod.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
	}
	for _, a := range w.pod.Spec.HostAliases {
		fmt.Fprintf(&b, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
	}
	return []byte(b.String())
}
