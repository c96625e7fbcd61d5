package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// conflist is where containerd finds the node's network configuration.
const conflist = "/etc/cni/net.d/10-kindnet.conflist"

// network writes the CNI configuration of this node and the routes to the others.
func (d *daemon) network(ctx context.Context, w *world) error {
	routes := map[netip.Prefix]netip.Addr{}
	var errs []error
	for _, n := range w.nodes {
		address, pods, ok := addresses(n)
		switch {
		case !ok: // it has no range of Pods yet
		case address == d.host:
			errs = append(errs, writeConfig(conflist, pods))
		default:
			routes[pods] = address
			if d.routes[pods] != address {
				errs = append(errs, command(ctx, "", "ip", "route", "replace", pods.String(), "via", address.String()))
			}
		}
	}
	for pods, address := range d.routes {
		if _, ok := routes[pods]; !ok { // the node is gone; its route may be, too
			if err := command(ctx, "", "ip", "route", "delete", pods.String(), "via", address.String()); err != nil {
				slog.Warn("route of a node that is gone", "error", err)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	d.routes = routes
	return nil
}

// addresses are a node's own and the range of its Pods.
func addresses(n *corev1.Node) (node netip.Addr, pods netip.Prefix, ok bool) {
	pods, err := netip.ParsePrefix(n.Spec.PodCIDR)
	if err != nil {
		return node, pods, false
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			node, err = netip.ParseAddr(a.Address)
			return node, pods, err == nil
		}
	}
	return node, pods, false
}

// writeConfig writes the configuration if it isn't there: a Pod gets a pair of
// devices, an address of the node's range and, if it asks for them, host ports.
func writeConfig(file string, pods netip.Prefix) error {
	text := fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "kindnet",
  "plugins": [
    {"type": "ptp", "ipMasq": false, "mtu": 1500, "ipam": {
      "type": "host-local", "dataDir": "/run/cni-ipam-state",
      "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": %q}]]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, pods)
	if have, err := os.ReadFile(file); err == nil && string(have) == text {
		return nil
	}
	if err := os.WriteFile(file+".tmp", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".tmp", file)
}

// masquerade gives Pods the node's address where they leave the cluster.
func masquerade(pods netip.Prefix) string {
	return fmt.Sprintf(`table ip kindnet-masquerade
delete table ip kindnet-masquerade
table ip kindnet-masquerade {
	chain postrouting {
		type nat hook postrouting priority srcnat - 5;
		ip saddr %[1]s ip daddr != %[1]s masquerade
	}
}
`, pods)
}

// nft replaces rules, all or none.
func nft(ctx context.Context, script string) error { return command(ctx, script, "nft", "-f", "-") }

func command(ctx context.Context, stdin, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return nil
}
