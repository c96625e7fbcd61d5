package kubelet

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kubistro/internal/clusterhost/vnet"
)

const (
	clusterDomain = "cluster.local"
	hostnameMax   = 63
)

// hostname follows kubelet_pods.go, GeneratePodHostNameAndDomain.
func (w *worker) hostname() string {
	if w.pod.Spec.HostNetwork {
		return w.b.k.cfg.Name
	}
	name := w.pod.Spec.Hostname
	if name == "" {
		name = w.pod.Name
	}
	if len(name) > hostnameMax {
		name = strings.TrimRight(name[:hostnameMax], "-.")
	}
	return name
}

// dns is the Pod's resolver by its dnsPolicy: network/dns/dns.go.
func (w *worker) dns() vnet.DNSConfig {
	ns := w.pod.Namespace
	c := vnet.DNSConfig{Ndots: 1}
	policy := w.pod.Spec.DNSPolicy
	cluster := policy == corev1.DNSClusterFirstWithHostNet || policy == "" && !w.pod.Spec.HostNetwork ||
		policy == corev1.DNSClusterFirst && !w.pod.Spec.HostNetwork
	if cluster {
		c = vnet.DNSConfig{
			Nameserver: w.b.k.cfg.ClusterDNS, Ndots: 5,
			Search: []string{ns + ".svc." + clusterDomain, "svc." + clusterDomain, clusterDomain},
		}
	}
	if d := w.pod.Spec.DNSConfig; d != nil {
		for _, s := range d.Nameservers {
			if ip, err := netip.ParseAddr(s); err == nil && !c.Nameserver.IsValid() {
				c.Nameserver = ip
			}
		}
		for _, s := range d.Searches {
			if !slices.Contains(c.Search, s) {
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
	return c
}

func resolvConf(c vnet.DNSConfig) []byte {
	var b strings.Builder
	if len(c.Search) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(c.Search, " "))
	}
	if c.Nameserver.IsValid() {
		fmt.Fprintf(&b, "nameserver %s\n", c.Nameserver)
	}
	fmt.Fprintf(&b, "options ndots:%d\n", c.Ndots)
	return []byte(b.String())
}

// hostsFile is the Pod's /etc/hosts: kubelet_pods.go, managedHostsFileContent.
func (w *worker) hostsFile() []byte {
	var b strings.Builder
	b.WriteString("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n")
	name := w.hostname()
	if d := w.pod.Spec.Subdomain; d != "" {
		fmt.Fprintf(&b, "%s\t%s.%s.%s.svc.%s\t%s\n", w.ip, name, d, w.pod.Namespace, clusterDomain, name)
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
