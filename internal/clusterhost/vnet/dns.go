package vnet

import (
	"net/netip"
	"strconv"
	"strings"
)

// DNSConfig is what /etc/resolv.conf and /etc/hosts say.
type DNSConfig struct {
	Nameserver netip.Addr   // 10.96.0.10
	Search     []string     // default.svc.cluster.local svc.cluster.local cluster.local
	Ndots      int          // 5
	More       []netip.Addr // name servers that are asked when the first one is silent
	// Hosts are the names of /etc/hosts (the Pod's own, hostAliases), in lower
	// case; localhost needs no entry.
	Hosts map[string][]netip.Addr
}

// dnsTTL is CoreDNS' default for cluster names, in seconds.
const dnsTTL = 30

// Record is one resource record of an answer. Names are absolute and end with a dot.
type Record struct {
	Name string
	Type string // A, AAAA, CNAME, SRV, PTR, TXT
	TTL  int
	Addr netip.Addr // A, AAAA
	Text string     // target of CNAME, SRV and PTR; TXT's text
	// SRV only.
	Priority, Weight, Port int
}

// Data is the record's data in the notation of zone files and dig.
func (r Record) Data() string {
	switch r.Type {
	case "A", "AAAA":
		return r.Addr.String()
	case "SRV":
		return strconv.Itoa(r.Priority) + " " + strconv.Itoa(r.Weight) + " " + strconv.Itoa(r.Port) + " " + r.Text
	case "TXT":
		return strconv.Quote(r.Text)
	}
	return r.Text
}

// Answer is what the name server says of a name. NOERROR without records means
// that the name exists and has none of the type.
type Answer struct {
	Code    string // NOERROR, NXDOMAIN
	Records []Record
	Extra   []Record // addresses of SRV targets
}

const (
	noError  = "NOERROR"
	nxDomain = "NXDOMAIN"
	zone     = "cluster.local"
)

// answer is CoreDNS' kubernetes plugin. The name is absolute, with or without
// the last dot, in any case.
func (t *ServiceTable) answer(name, qtype string) Answer {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if len(name) > 253 {
		return Answer{Code: nxDomain}
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.answerLocked(name, strings.ToUpper(qtype), 0)
}

func (t *ServiceTable) answerLocked(name, qtype string, depth int) Answer {
	if strings.HasSuffix(name, ".in-addr.arpa") || strings.HasSuffix(name, ".ip6.arpa") {
		return t.reverseLocked(name, qtype)
	}
	rest, inside := strings.CutSuffix(name, zone)
	if !inside || rest != "" && !strings.HasSuffix(rest, ".") {
		return Answer{Code: nxDomain}
	}
	labels := strings.Split(strings.TrimSuffix(rest, "."), ".")
	switch kind := labels[len(labels)-1]; {
	case rest == "":
		return Answer{Code: noError}
	case kind == "dns-version" && len(labels) == 1:
		if qtype == "TXT" {
			return Answer{Code: noError, Records: []Record{{Name: name + ".", Type: "TXT", TTL: dnsTTL, Text: "1.1.0"}}}
		}
		return Answer{Code: noError}
	case kind == "svc":
		return t.svcLocked(name, labels[:len(labels)-1], qtype, depth)
	case kind == "pod":
		return t.podLocked(name, labels[:len(labels)-1], qtype)
	}
	return Answer{Code: nxDomain}
}

// podLocked answers a-b-c-d.NAMESPACE.pod: the address in the name, as with CoreDNS' "pods insecure".
func (t *ServiceTable) podLocked(name string, labels []string, qtype string) Answer {
	if len(labels) == 0 {
		return Answer{Code: noError}
	}
	if _, ok := t.namespaces[labels[len(labels)-1]]; !ok {
		return Answer{Code: nxDomain}
	}
	switch len(labels) {
	case 1:
		return Answer{Code: noError}
	case 2:
		ip, err := netip.ParseAddr(strings.ReplaceAll(labels[0], "-", "."))
		if err != nil {
			ip, err = netip.ParseAddr(strings.ReplaceAll(labels[0], "-", ":"))
		}
		if err == nil {
			return Answer{Code: noError, Records: addressRecords(name, qtype, ip)}
		}
	}
	return Answer{Code: nxDomain}
}

// addressRecords are the A or AAAA records among addresses, each once.
func addressRecords(name, qtype string, ips ...netip.Addr) []Record {
	var out []Record
	seen := make(map[netip.Addr]bool, len(ips))
	for _, ip := range ips {
		kind := "AAAA"
		if ip.Is4() {
			kind = "A"
		}
		if kind == qtype && !seen[ip] {
			seen[ip] = true
			out = append(out, Record{Name: name + ".", Type: kind, TTL: dnsTTL, Addr: ip})
		}
	}
	return out
}

// reverseLocked answers PTR queries for Services and for their endpoints.
func (t *ServiceTable) reverseLocked(name, qtype string) Answer {
	ip, ok := reverseAddr(name)
	if !ok {
		return Answer{Code: nxDomain}
	}
	var targets []string
	for _, s := range t.services {
		for _, own := range s.clusterIPs {
			if own == ip {
				targets = append(targets, s.domain())
			}
		}
	}
	if len(targets) == 0 {
		for _, s := range t.services {
			for _, e := range s.endpoints {
				if e.ip == ip && e.ready {
					targets = append(targets, e.label()+"."+s.domain())
				}
			}
		}
	}
	if len(targets) == 0 {
		return Answer{Code: nxDomain}
	}
	a := Answer{Code: noError}
	if qtype == "PTR" {
		for _, target := range sortedOnce(targets) {
			a.Records = append(a.Records, Record{Name: name + ".", Type: "PTR", TTL: dnsTTL, Text: target + "."})
		}
	}
	return a
}

// reverseAddr reads 4.3.2.1.in-addr.arpa and its longer sister.
func reverseAddr(name string) (netip.Addr, bool) {
	if short, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		parts := strings.Split(short, ".")
		if len(parts) != 4 {
			return netip.Addr{}, false
		}
		ip, err := netip.ParseAddr(parts[3] + "." + parts[2] + "." + parts[1] + "." + parts[0])
		return ip, err == nil && ip.Is4()
	}
	nibbles := strings.Split(strings.TrimSuffix(name, ".ip6.arpa"), ".")
	if len(nibbles) != 32 {
		return netip.Addr{}, false
	}
	var b strings.Builder
	for k := len(nibbles) - 1; k >= 0; k-- {
		b.WriteString(nibbles[k])
		if k%4 == 0 && k > 0 {
			b.WriteByte(':')
		}
	}
	ip, err := netip.ParseAddr(b.String())
	return ip, err == nil
}

// ReverseName is the name whose PTR record belongs to an address, without the last dot.
func ReverseName(ip netip.Addr) string {
	ip = ip.Unmap()
	if ip.Is4() {
		b := ip.As4()
		return strconv.Itoa(int(b[3])) + "." + strconv.Itoa(int(b[2])) + "." + strconv.Itoa(int(b[1])) + "." + strconv.Itoa(int(b[0])) + ".in-addr.arpa"
	}
	const digits = "0123456789abcdef"
	b := ip.As16()
	var out strings.Builder
	for k := 15; k >= 0; k-- {
		out.Write([]byte{digits[b[k]&15], '.', digits[b[k]>>4], '.'})
	}
	return out.String() + "ip6.arpa"
}
