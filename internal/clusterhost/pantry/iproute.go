package pantry

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
)

// ipProgram is busybox ip as far as it shows what a Pod's network is. Nothing can be
// changed: no container has the capability for that.
func ipProgram(_ context.Context, p *Process) int {
	args := p.Args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") { // -4, -o, -br and so on: the same is shown
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(p.Stderr, "Usage: ip [OPTIONS] address|route|link [ARGS]")
		return 1
	}
	what, rest := args[0], args[1:]
	known := ""
	for _, name := range []string{"address", "link", "route", "neigh"} {
		if strings.HasPrefix(name, what) || what == "addr" && name == "address" {
			known = name
			break
		}
	}
	if known == "" {
		fmt.Fprintf(p.Stderr, "ip: invalid argument '%s' to 'ip'\n", what)
		return 1
	}
	if len(rest) > 0 {
		switch rest[0] {
		case "add", "a", "del", "delete", "d", "set", "change", "replace", "append", "flush":
			fmt.Fprintln(p.Stderr, "ip: RTNETLINK answers: Operation not permitted")
			return 2
		case "get", "show", "list", "ls", "dev", "sh", "s":
		default:
			fmt.Fprintf(p.Stderr, "ip: invalid argument '%s' to 'ip'\n", rest[0])
			return 1
		}
	}
	device := ""
	for k, a := range rest {
		if a == "dev" && k+1 < len(rest) {
			device = rest[k+1]
		} else if k == len(rest)-1 && k > 0 && rest[k-1] != "dev" && known != "route" {
			device = a
		}
	}
	switch known {
	case "route":
		p.showRoutes()
	case "neigh":
	default:
		return p.showLinks(known == "address", device)
	}
	return 0
}

// podPrefix is the address range of a node's Pods, and gateway the node's address in it.
func podPrefix(ip netip.Addr) (prefix netip.Prefix, gateway netip.Addr) {
	prefix = netip.PrefixFrom(ip, 24).Masked()
	return prefix, prefix.Addr().Next()
}

func (p *Process) showRoutes() {
	for _, ip := range p.Net.IPs() {
		if !ip.Is4() {
			continue
		}
		prefix, gateway := podPrefix(ip)
		fmt.Fprintf(p.Stdout, "default via %s dev eth0 \n%s via %s dev eth0  src %s \n%s dev eth0 scope link  src %s \n", gateway, prefix, gateway, ip, gateway, ip)
	}
}

func (p *Process) showLinks(addresses bool, device string) int {
	shown := false
	show := func(name, link string, lines ...string) {
		if device != "" && device != name {
			return
		}
		shown = true
		fmt.Fprint(p.Stdout, link)
		if addresses {
			for _, l := range lines {
				fmt.Fprintf(p.Stdout, "    inet %s\n       valid_lft forever preferred_lft forever\n", l)
			}
		}
	}
	show("lo", "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue qlen 1000\n    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n", "127.0.0.1/8 scope host lo")
	var lines []string
	mac := "0a:58:00:00:00:00"
	for _, ip := range p.Net.IPs() {
		if !ip.Is4() {
			continue
		}
		b := ip.As4()
		mac = fmt.Sprintf("0a:58:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
		lines = append(lines, fmt.Sprintf("%s/24 brd %d.%d.%d.255 scope global eth0", ip, b[0], b[1], b[2]))
	}
	show("eth0", "2: eth0@if3: <BROADCAST,MULTICAST,UP,LOWER_UP,M-DOWN> mtu 1500 qdisc noqueue \n    link/ether "+mac+" brd ff:ff:ff:ff:ff:ff\n", lines...)
	if !shown {
		fmt.Fprintf(p.Stderr, "ip: can't find device '%s'\n", device)
		return 1
	}
	return 0
}
