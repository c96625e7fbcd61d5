package vnet

import (
	"net/netip"
	"slices"
)

// origin is where a packet for a Service meets kube-proxy: on the node that it
// leaves from, or on the one where it arrives from outside.
type origin struct {
	client   netip.Addr
	protocol string // TCP, UDP
	node     string // "" outside of the cluster
	// inside: it comes from a Pod or from the node itself; externalTrafficPolicy
	// Local then doesn't apply (KUBE-EXT chains of pkg/proxy/iptables/proxier.go).
	inside bool
	// keep is the endpoint that the flow has had so far: it stays while it serves
	// (pkg/proxy/conntrack/cleanup.go).
	keep netip.AddrPort
}

// verdict is what kube-proxy does with a packet.
type verdict int

const (
	notService verdict = iota // no address of a Service: the packet goes on as it is
	forwards
	rejects // no endpoints at all, or no such port: ICMP port unreachable
	drops   // policy Local without an endpoint on the node, or a source that isn't allowed
)

// portEndpoint is where connections to a port of a Service can go.
type portEndpoint struct {
	at netip.AddrPort
	*endpoint
}

// forPort lists the endpoints of a family that have a port.
func forPort(endpoints []endpoint, p servicePort, family func(netip.Addr) bool) []portEndpoint {
	var out []portEndpoint
	seen := make(map[netip.AddrPort]bool, len(endpoints))
	for k := range endpoints {
		e := &endpoints[k]
		if !family(e.ip) {
			continue
		}
		for _, ep := range e.ports {
			at := netip.AddrPortFrom(e.ip, ep.port)
			if ep.name == p.name && ep.protocol == p.protocol && !seen[at] {
				seen[at] = true
				out = append(out, portEndpoint{at, e})
			}
		}
	}
	return out
}

// usable follows pkg/proxy/topology.go, CategorizeEndpoints: ready endpoints near
// the node if the slices' hints say so, or, when none is ready, those that
// terminate and still serve; with local only those on the node. somewhere says that
// there would be one on another node.
func usable(all []portEndpoint, local bool, node, zone string) (out []netip.AddrPort, somewhere bool) {
	mode := hintMode(all, node, zone)
	ready := func(e portEndpoint) bool { return e.ready }
	leaving := func(e portEndpoint) bool { return e.serving && e.terminating }
	if local {
		mode = hintsIgnored
	}
	for _, state := range []func(portEndpoint) bool{ready, leaving} {
		for _, e := range all {
			if !state(e) {
				continue
			}
			somewhere = true
			if local && e.node != node || !mode.allows(e, node, zone) {
				continue
			}
			out = append(out, e.at)
		}
		if len(out) > 0 {
			return out, true
		}
		mode = hintsIgnored
	}
	return nil, somewhere
}

// hints is which of the slices' topology hints count.
type hints int

const (
	hintsIgnored hints = iota
	hintsForNode
	hintsForZone
)

// hintMode is topologyModeFromHints: hints count when every ready endpoint has one
// and one of them is for this node, or else zone.
func hintMode(all []portEndpoint, node, zone string) hints {
	nodes, zones, any := true, true, false
	forNode, forZone := false, false
	for _, e := range all {
		if !e.ready {
			continue
		}
		any = true
		nodes = nodes && len(e.nodeHints) > 0
		zones = zones && len(e.zoneHints) > 0
		forNode = forNode || slices.Contains(e.nodeHints, node)
		forZone = forZone || slices.Contains(e.zoneHints, zone)
	}
	switch {
	case !any:
	case nodes && forNode:
		return hintsForNode
	case zones && forZone:
		return hintsForZone
	}
	return hintsIgnored
}

func (h hints) allows(e portEndpoint, node, zone string) bool {
	switch h {
	case hintsForNode:
		return slices.Contains(e.nodeHints, node)
	case hintsForZone:
		return slices.Contains(e.zoneHints, zone)
	}
	return true
}
