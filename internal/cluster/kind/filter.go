package kind

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// private are networks in which the machine's own services, its neighbours and other
// learners' nodes are; 169.254.0.0/16 has clouds' metadata.
var private = []string{"10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"}

// filterScript puts the rules of its input into a node's network. They sit behind all
// translation of addresses and before what hides a Pod's: whatever a Service or
// an EndpointSlice made of an address, its real one is looked at.
//
// A Pod's address that no node has would be sent to the machine, which is the
// nodes' gateway; one of a Service that there isn't is dropped with the private networks.
const filterScript = `set -e
ip route replace unreachable ` + podNetwork + ` metric 4096
iptables-restore -w --noflush
iptables -w -t mangle -C POSTROUTING -o eth0 -j KUBISTRO 2>/dev/null || iptables -w -t mangle -A POSTROUTING -o eth0 -j KUBISTRO
if ip6tables -w -t mangle -N KUBISTRO 2>/dev/null; then
  ip6tables -w -t mangle -A KUBISTRO -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN
  ip6tables -w -t mangle -A KUBISTRO -p ipv6-icmp -j RETURN
  ip6tables -w -t mangle -A KUBISTRO -d fc00::/7 -j DROP
  ip6tables -w -t mangle -A KUBISTRO -d fe80::/10 -j DROP
  ip6tables -w -t mangle -A POSTROUTING -o eth0 -j KUBISTRO
fi`

// filterRules let a node speak to its own cluster, and to the world for images; Pods
// to their own cluster only. All kind clusters share one network of the runtime.
func filterRules(nodes []string) string {
	var b strings.Builder
	add := func(format string, a ...any) { fmt.Fprintf(&b, "-A KUBISTRO "+format+"\n", a...) }
	b.WriteString("*mangle\n:KUBISTRO - [0:0]\n")
	add("-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN")
	for _, ip := range append([]string{"127.0.0.0/8", podNetwork}, nodes...) {
		add("-d %s -j RETURN", ip)
	}
	add("-s %s -j DROP", podNetwork)
	for _, net := range private {
		add("-d %s -j DROP", net)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// filter sets the rules of all nodes that run. It has to be called again when a node
// has started, because the rules end with its network, and when one has come or gone.
func (d *Driver) filter(ctx context.Context, r *record) error {
	var ips, up []string
	for name, container := range r.Nodes {
		if slices.Contains(r.Changes.Off, name) {
			continue
		}
		ip, err := address(ctx, d.engine, container)
		if err != nil {
			return err
		}
		ips, up = append(ips, ip), append(up, container)
	}
	slices.Sort(ips)
	rules := filterRules(ips)
	g, ctx := errgroup.WithContext(ctx)
	for _, container := range up {
		g.Go(func() error {
			_, err := d.engine.run(ctx, strings.NewReader(rules), "exec", "-i", container, "sh", "-c", filterScript)
			return err
		})
	}
	return g.Wait()
}
