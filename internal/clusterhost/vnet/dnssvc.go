package vnet

import (
	"net/netip"
	"slices"
	"strings"
)

// domain is the Service's name in cluster DNS, without the last dot.
func (s *service) domain() string { return s.key.name + "." + s.key.namespace + ".svc." + zone }

// label is an endpoint's name below its Service: the Pod's hostname where it has one.
func (e endpoint) label() string {
	if e.hostname != "" {
		return strings.ToLower(e.hostname)
	}
	return strings.NewReplacer(".", "-", ":", "-").Replace(e.ip.String())
}

// svcLocked answers [[_PORT._PROTOCOL.|ENDPOINT.]SERVICE.]NAMESPACE.svc.
func (t *ServiceTable) svcLocked(name string, labels []string, qtype string, depth int) Answer {
	if len(labels) == 0 {
		return Answer{Code: noError}
	}
	if _, ok := t.namespaces[labels[len(labels)-1]]; !ok {
		return Answer{Code: nxDomain}
	}
	if len(labels) == 1 {
		return Answer{Code: noError}
	}
	s := t.services[objectKey{labels[len(labels)-1], labels[len(labels)-2]}]
	if s == nil {
		return Answer{Code: nxDomain}
	}
	var q query
	switch prefix := labels[:len(labels)-2]; len(prefix) {
	case 0:
	case 1:
		q.endpoint = prefix[0]
	case 2:
		port, ok1 := strings.CutPrefix(prefix[0], "_")
		protocol, ok2 := strings.CutPrefix(prefix[1], "_")
		if !ok1 || !ok2 {
			return Answer{Code: nxDomain}
		}
		q.port, q.protocol = port, strings.ToUpper(protocol)
	default:
		return Answer{Code: nxDomain}
	}
	if s.externalName != "" {
		if q != (query{}) {
			return Answer{Code: nxDomain}
		}
		return t.externalLocked(name, s.externalName, qtype, depth)
	}
	found := s.find(q)
	if len(found) == 0 {
		return Answer{Code: nxDomain}
	}
	return found.answer(name, qtype)
}

// query is what stands before the Service in a name; empty fields match all.
type query struct{ endpoint, port, protocol string }

func (q query) matches(name, protocol string) bool {
	return (q.port == "" || q.port == "*" || q.port == strings.ToLower(name)) && (q.protocol == "" || q.protocol == protocol)
}

// host is an address with a port and the name that SRV records give it.
type host struct {
	ip     netip.Addr
	port   uint16
	target string
}

type hosts []host

// find lists what a query below the Service matches: its own addresses, or those
// of its endpoints when it is headless or an endpoint is asked for.
func (s *service) find(q query) hosts {
	var out hosts
	if !s.headless && q.endpoint == "" {
		for _, p := range s.ports {
			if !q.matches(p.name, p.protocol) {
				continue
			}
			for _, ip := range s.clusterIPs {
				out = append(out, host{ip, p.port, s.domain()})
			}
		}
		return out
	}
	for _, e := range s.endpoints {
		if !e.ready || q.endpoint != "" && q.endpoint != e.label() {
			continue
		}
		target := e.label() + "." + s.domain()
		if len(e.ports) == 0 && q.port == "" { // a headless Service may have no ports
			out = append(out, host{e.ip, 0, target})
		}
		for _, p := range e.ports {
			if q.matches(p.name, p.protocol) {
				out = append(out, host{e.ip, p.port, target})
			}
		}
	}
	return out
}

func (h hosts) answer(name, qtype string) Answer {
	a := Answer{Code: noError}
	if qtype != "SRV" {
		ips := make([]netip.Addr, len(h))
		for k, one := range h {
			ips[k] = one.ip
		}
		a.Records = addressRecords(name, qtype, ips...)
		return a
	}
	seen := make(map[Record]bool)
	for _, one := range h {
		r := Record{Name: name + ".", Type: "SRV", TTL: dnsTTL, Text: one.target + ".", Port: int(one.port)}
		if one.port == 0 || seen[r] {
			continue
		}
		seen[r] = true
		a.Records = append(a.Records, r)
		for _, kind := range []string{"A", "AAAA"} {
			for _, extra := range addressRecords(one.target, kind, one.ip) {
				if !slices.Contains(a.Extra, extra) {
					a.Extra = append(a.Extra, extra)
				}
			}
		}
	}
	for k := range a.Records {
		a.Records[k].Weight = max(1, 100/len(a.Records))
	}
	return a
}

// maxCNAME bounds a chain of ExternalName Services.
const maxCNAME = 7

// externalLocked follows an ExternalName; there is no name outside of the cluster.
func (t *ServiceTable) externalLocked(name, target, qtype string, depth int) Answer {
	target = strings.ToLower(strings.TrimSuffix(target, "."))
	a := Answer{Code: noError, Records: []Record{{Name: name + ".", Type: "CNAME", TTL: dnsTTL, Text: target + "."}}}
	if qtype == "CNAME" || depth >= maxCNAME {
		return a
	}
	a.Records = append(a.Records, t.answerLocked(target, qtype, depth+1).Records...)
	return a
}

func sortedOnce(in []string) []string {
	slices.Sort(in)
	return slices.Compact(in)
}
