package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ruleset is the nft script that replaces all rules of NetworkPolicies on this node.
//
// A Pod's packets pass the node's forward hook, or its input hook when they are meant
// for the node. Where they pass, kube-proxy has put in the endpoint's address and
// nothing has been hidden behind the node yet, so both addresses are those that
// policies speak of. What the node itself sends to its Pods (probes) isn't filtered, and
// connections that exist go on when a policy comes.
func ruleset(list []isolation) string {
	var b strings.Builder
	b.WriteString("table ip kindnet-policies\ndelete table ip kindnet-policies\ntable ip kindnet-policies {\n")
	var in, out []string
	for _, i := range list {
		chain := fmt.Sprintf("%s-%s", direction(i), i.pod)
		element := fmt.Sprintf("%s : jump %s", i.pod, chain)
		if i.ingress {
			in = append(in, element)
		} else {
			out = append(out, element)
		}
		fmt.Fprintf(&b, "\tchain %s {\n", chain)
		self := allowance{peers: []netip.Prefix{netip.PrefixFrom(i.pod, 32)}} // by way of a Service; no policy forbids that
		i.allowed = append([]allowance{self}, i.allowed...)
		for _, a := range i.allowed {
			for _, match := range a.matches(i.ingress) {
				fmt.Fprintf(&b, "\t\t%s\n", strings.TrimSpace(match+" return"))
			}
		}
		b.WriteString("\t\tdrop\n\t}\n")
	}
	for _, hook := range []string{"forward", "input"} {
		fmt.Fprintf(&b, "\tchain %[1]s {\n\t\ttype filter hook %[1]s priority filter;\n\t\tct state established,related accept\n", hook)
		if len(out) > 0 {
			fmt.Fprintf(&b, "\t\tip saddr vmap { %s }\n", strings.Join(out, ", "))
		}
		if hook == "forward" && len(in) > 0 {
			fmt.Fprintf(&b, "\t\tip daddr vmap { %s }\n", strings.Join(in, ", "))
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func direction(i isolation) string {
	if i.ingress {
		return "ingress"
	}
	return "egress"
}

// matches are the conditions, any of which lets a packet pass; "" is no condition.
func (a allowance) matches(ingress bool) []string {
	field := "ip daddr"
	if ingress {
		field = "ip saddr"
	}
	var who string
	if !a.anyone {
		who = fmt.Sprintf("%s { %s } ", field, prefixes(a.peers))
	}
	if len(a.except) > 0 {
		who += fmt.Sprintf("%s != { %s } ", field, prefixes(a.except))
	}
	if a.ports == nil {
		return []string{strings.TrimSpace(who)}
	}
	byProtocol := map[string][]string{}
	for _, p := range a.ports {
		byProtocol[p.protocol] = append(byProtocol[p.protocol], p.String())
	}
	var list []string
	for _, protocol := range []string{"sctp", "tcp", "udp"} {
		numbers := byProtocol[protocol]
		if len(numbers) == 0 {
			continue
		}
		slices.Sort(numbers)
		for _, n := range slices.Compact(numbers) { // a rule each: ranges in one set mustn't overlap
			list = append(list, fmt.Sprintf("%s%s dport %s", who, protocol, n))
		}
	}
	return list
}

// prefixes lists addresses and ranges, in order, without those that lie in others: an
// nft set takes no overlap.
func prefixes(list []netip.Prefix) string {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits() // the larger range first
	})
	var out []string
	var last netip.Prefix
	for _, p := range sorted {
		if last.IsValid() && last.Contains(p.Addr()) {
			continue
		}
		last = p
		if p.IsSingleIP() {
			out = append(out, p.Addr().String())
		} else {
			out = append(out, p.String())
		}
	}
	return strings.Join(out, ", ")
}
