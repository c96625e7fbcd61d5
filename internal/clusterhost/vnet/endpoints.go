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
		s.ports[k].usable4 = usable(s.endpoints, s.ports[k], netip.Addr.Is4)
		s.ports[k].usable6 = usable(s.endpoints, s.ports[k], netip.Addr.Is6)
	}
}

// usable follows kube-proxy: ready endpoints, or, when there is none, those that
// terminate and still serve.
func usable(endpoints []endpoint, p servicePort, family func(netip.Addr) bool) []netip.AddrPort {
	if p.protocol != string(corev1.ProtocolTCP) {
		return nil
	}
	var ready, leaving []netip.AddrPort
	seen := make(map[netip.AddrPort]bool, len(endpoints))
	for _, e := range endpoints {
		if !family(e.ip) {
			continue
		}
		for _, ep := range e.ports {
			at := netip.AddrPortFrom(e.ip, ep.port)
			if ep.name != p.name || ep.protocol != p.protocol || seen[at] {
				continue
			}
			switch {
			case e.ready:
				ready = append(ready, at)
			case e.serving && e.terminating:
				leaving = append(leaving, at)
			default:
				continue
			}
			seen[at] = true
		}
	}
	if len(ready) > 0 {
		return ready
	}
	return leaving
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
		out = append(out, endpoint{
			ip: ip.Unmap(), hostname: value(e.Hostname, ""), ports: ports,
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
