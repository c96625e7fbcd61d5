package vnet

import (
	"net/netip"
	"sort"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// attach reads the slices of a Service and works out where connections go.
func (s *service) attach(slices map[string]*discoveryv1.EndpointSlice) {
	names := make([]string, 0, len(slices))
	for name := range slices {
		names = append(names, name)
	}
	sort.Strings(names)
	s.endpoints = nil
	for _, name := range names {
		s.endpoints = append(s.endpoints, readSlice(slices[name])...)
	}
	for k := range s.ports {
		s.ports[k].endpoints4 = forPort(s.endpoints, s.ports[k], netip.Addr.Is4)
		s.ports[k].endpoints6 = forPort(s.endpoints, s.ports[k], netip.Addr.Is6)
	}
}

// readSlice reads the addresses of a slice; names (addressType FQDN) are no addresses.
func readSlice(slice *discoveryv1.EndpointSlice) []endpoint {
	if slice.AddressType == discoveryv1.AddressTypeFQDN {
		return nil
	}
	var ports []endpointPort
	for _, p := range slice.Ports {
		if p.Port == nil || *p.Port < 1 || *p.Port > 65535 {
			continue
		}
		ports = append(ports, endpointPort{
			name: value(p.Name, ""), protocol: string(value(p.Protocol, corev1.ProtocolTCP)), port: uint16(*p.Port),
		})
	}
	var out []endpoint
	for _, e := range slice.Endpoints {
		if len(e.Addresses) == 0 {
			continue
		}
		ip, err := netip.ParseAddr(e.Addresses[0]) // the others are ignored by kube-proxy too
		if err != nil {
			continue
		}
		ready := value(e.Conditions.Ready, true)
		var nodes, zones []string
		if h := e.Hints; h != nil {
			for _, n := range h.ForNodes {
				nodes = append(nodes, n.Name)
			}
			for _, z := range h.ForZones {
				zones = append(zones, z.Name)
			}
		}
		out = append(out, endpoint{
			ip: ip.Unmap(), hostname: value(e.Hostname, ""), ports: ports,
			node: value(e.NodeName, ""), nodeHints: nodes, zoneHints: zones,
			ready:       ready,
			serving:     value(e.Conditions.Serving, ready),
			terminating: value(e.Conditions.Terminating, false),
		})
	}
	return out
}

func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
