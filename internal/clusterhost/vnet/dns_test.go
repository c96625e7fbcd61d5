package vnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// withNames adds Services of every kind and a reachable name server.
func withNames(t *testing.T) *house {
	h := newHouse(t)
	h.table.setService(dnsService())
	h.table.setSlice(dnsSlice("10.244.3.2"))
	h.table.setService(clusterIPService("default", "web", "10.96.0.20"))
	h.table.setSlice(sliceOf("default", "web", "web-a", "10.244.1.2"))
	headless := clusterIPService("default", "db", corev1.ClusterIPNone)
	h.table.setService(headless)
	s := sliceOf("default", "db", "db-a", "10.244.1.2", "10.244.2.2", "10.244.3.2:unready")
	s.Endpoints[0].Hostname = ptr("db-0")
	h.table.setSlice(s)
	h.table.setService(clusterIPService("default", "nobody", corev1.ClusterIPNone))
	external := clusterIPService("default", "old", "")
	external.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web.default.svc.cluster.local"}
	h.table.setService(external)
	outside := external.DeepCopy()
	outside.Name, outside.Spec.ExternalName = "outside", "example.com"
	h.table.setService(outside)
	return h
}

func dnsService() *corev1.Service {
	s := clusterIPService("kube-system", "kube-dns", "10.96.0.10")
	s.Spec.Ports[0].Port, s.Spec.Ports[0].Protocol = 53, corev1.ProtocolUDP
	return s
}

func dnsSlice(endpoints ...string) *discoveryv1.EndpointSlice {
	s := sliceOf("kube-system", "kube-dns", "kube-dns-a", endpoints...)
	s.Ports[0].Protocol = ptr(corev1.ProtocolUDP)
	return s
}

func TestLookupHost(t *testing.T) {
	h := withNames(t)
	for _, tc := range []struct {
		name string
		want []string // nil: no such host
	}{
		{"web", []string{"10.96.0.20"}},
		{"WEB", []string{"10.96.0.20"}},
		{"web.default", []string{"10.96.0.20"}},
		{"web.default.svc", []string{"10.96.0.20"}},
		{"web.default.svc.cluster.local", []string{"10.96.0.20"}},
		{"web.default.svc.cluster.local.", []string{"10.96.0.20"}},
		{"web.", nil},
		{"kube-dns", nil},
		{"kube-dns.kube-system", []string{"10.96.0.10"}},
		{"db", []string{"10.244.1.2", "10.244.2.2"}},
		{"db-0.db", []string{"10.244.1.2"}},
		{"10-244-2-2.db", []string{"10.244.2.2"}},
		{"10-244-3-2.db", nil}, // not ready
		{"nobody", nil},
		{"old", []string{"10.96.0.20"}},
		{"outside", nil},
		{"10-1-2-3.default.pod.cluster.local", []string{"10.1.2.3"}},
		{"10-1-2-3.nowhere.pod.cluster.local", nil},
		{"localhost", []string{"127.0.0.1"}},
		{"10.1.1.1", []string{"10.1.1.1"}},
		{"example.com", nil},
		{"web..default", nil},
		{strings.Repeat("a", 300), nil},
		{"", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ips, err := h.client.LookupHost(t.Context(), tc.name)
			var got []string
			for _, ip := range ips {
				got = append(got, ip.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s%v", diff, err)
			}
			var de *net.DNSError
			if tc.want == nil && (!errors.As(err, &de) || !de.IsNotFound) {
				t.Errorf("error %v, want no such host", err)
			}
		})
	}
}

func TestQuery(t *testing.T) {
	h := withNames(t)
	for _, tc := range []struct {
		name, qtype string
		code        string
		want        []string
	}{
		{"web.default.svc.cluster.local", "A", noError, []string{"web.default.svc.cluster.local. A 10.96.0.20"}},
		{"web.default.svc.cluster.local", "AAAA", noError, nil},
		{"default.svc.cluster.local", "A", noError, nil},
		{"nope.default.svc.cluster.local", "A", nxDomain, nil},
		{"web.nowhere.svc.cluster.local", "A", nxDomain, nil},
		{"example.com", "A", nxDomain, nil},
		{"cluster.local.evil", "A", nxDomain, nil},
		{"xcluster.local", "A", nxDomain, nil},
		{"old.default.svc.cluster.local", "A", noError, []string{"old.default.svc.cluster.local. CNAME web.default.svc.cluster.local.", "web.default.svc.cluster.local. A 10.96.0.20"}},
		{"outside.default.svc.cluster.local", "A", noError, []string{"outside.default.svc.cluster.local. CNAME example.com."}},
		{"_http._tcp.web.default.svc.cluster.local", "SRV", noError, []string{"_http._tcp.web.default.svc.cluster.local. SRV 0 100 80 web.default.svc.cluster.local."}},
		{"_http._udp.web.default.svc.cluster.local", "SRV", nxDomain, nil},
		{"_http._tcp.db.default.svc.cluster.local", "SRV", noError, []string{
			"_http._tcp.db.default.svc.cluster.local. SRV 0 50 8080 db-0.db.default.svc.cluster.local.",
			"_http._tcp.db.default.svc.cluster.local. SRV 0 50 8080 10-244-2-2.db.default.svc.cluster.local."}},
		{"20.0.96.10.in-addr.arpa", "PTR", noError, []string{"20.0.96.10.in-addr.arpa. PTR web.default.svc.cluster.local."}},
		{"2.2.244.10.in-addr.arpa", "PTR", noError, []string{"2.2.244.10.in-addr.arpa. PTR 10-244-2-2.db.default.svc.cluster.local."}},
		{"9.9.9.9.in-addr.arpa", "PTR", nxDomain, nil},
		{"dns-version.cluster.local", "TXT", noError, []string{`dns-version.cluster.local. TXT "1.1.0"`}},
	} {
		t.Run(tc.qtype+" "+tc.name, func(t *testing.T) {
			a, err := h.client.Query(t.Context(), tc.name, tc.qtype)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range a.Records {
				got = append(got, r.Name+" "+r.Type+" "+r.Data())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || a.Code != tc.code {
				t.Errorf("%s, want %s (-want +got)\n%s", a.Code, tc.code, diff)
			}
		})
	}
}

func TestExternalNameLoopEnds(t *testing.T) {
	h := withNames(t)
	loop := clusterIPService("default", "loop", "")
	loop.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "loop.default.svc.cluster.local"}
	h.table.setService(loop)
	if ips, err := h.client.LookupHost(t.Context(), "loop"); err == nil {
		t.Errorf("a loop gave %v", ips)
	}
}

func TestHostsFileComesFirst(t *testing.T) {
	h := withNames(t)
	c := h.client.DNS()
	c.Hosts = map[string][]netip.Addr{"web": {netip.MustParseAddr("10.244.1.9")}}
	h.client.SetDNS(c)
	if got, err := h.client.LookupHost(t.Context(), "Web"); err != nil || len(got) != 1 || got[0].String() != "10.244.1.9" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestCandidates(t *testing.T) {
	c := DNSConfig{Search: []string{"a.b.", "b"}, Ndots: 2}
	for name, want := range map[string][]string{
		"x":     {"x.a.b", "x.b", "x"},
		"x.y":   {"x.y.a.b", "x.y.b", "x.y"},
		"x.y.z": {"x.y.z", "x.y.z.a.b", "x.y.z.b"},
		"x.":    {"x"},
	} {
		if diff := cmp.Diff(want, c.Candidates(name)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestNameServerThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		defer n.Close()
		table := newServiceTable()
		table.setNamespace(namespace("default"))
		table.setService(dnsService())
		table.setService(clusterIPService("default", "web", "10.96.0.20"))
		n.SetServices(table)
		i := attach(t, n, "client", "10.244.1.9")
		server := attach(t, n, "coredns", "10.244.3.2")
		i.SetDNS(DNSConfig{Nameserver: netip.MustParseAddr("10.96.0.10"), Search: []string{"default.svc.cluster.local"}, Ndots: 5})
		lookup := func() (time.Duration, error) {
			start := time.Now()
			_, err := i.LookupHost(context.Background(), "web")
			return time.Since(start), err
		}
		check := func(what string, want time.Duration) {
			took, err := lookup()
			var de *net.DNSError
			if !errors.As(err, &de) || !de.IsTimeout || de.Err != noServers || took != want {
				t.Errorf("%s: %v after %v, want %q after %v", what, err, took, noServers, want)
			}
		}
		check("no endpoint", 0)
		table.setSlice(dnsSlice("10.244.3.2"))
		if _, err := lookup(); err != nil {
			t.Errorf("ready: %v", err)
		}
		server.SetDown(true)
		check("silent endpoint", 10*time.Second)
		time.AfterFunc(time.Second, func() { server.SetDown(false) })
		if took, err := lookup(); err != nil || took != 5*time.Second {
			t.Errorf("back after a second: %v after %v, want the second attempt to succeed", err, took)
		}
		n.SetDNSReady(func() bool { return false })
		check("hook says no", 10*time.Second)
	})
}

func FuzzDNSName(f *testing.F) {
	for _, s := range []string{"web", "web.default.svc.cluster.local.", "_http._tcp.web.default.svc.cluster.local", "1.0.0.10.in-addr.arpa", "..", "a.cluster.local", strings.Repeat("a.", 130)} {
		f.Add(s)
	}
	table := newServiceTable()
	table.setNamespace(namespace("default"))
	table.setService(clusterIPService("default", "web", "10.96.0.20"))
	table.setSlice(sliceOf("default", "web", "web-a", "10.244.1.2"))
	c := DNSConfig{Search: []string{"default.svc.cluster.local"}, Ndots: 5}
	f.Fuzz(func(t *testing.T, name string) {
		for _, full := range append(c.candidates(name), name) {
			for _, qtype := range []string{"A", "SRV", "PTR"} {
				a := table.answer(full, qtype)
				if a.Code != noError && a.Code != nxDomain {
					t.Fatalf("code %q", a.Code)
				}
				if a.Code == nxDomain && len(a.Records) > 0 {
					t.Fatalf("NXDOMAIN with records %v", a.Records)
				}
				for _, r := range a.Records {
					if r.Type == "A" && !slices.Contains([]string{"10.96.0.20", "10.244.1.2"}, r.Addr.String()) && !strings.Contains(strings.ToLower(full), ".pod.") {
						t.Fatalf("%s gave %v", full, r)
					}
				}
			}
		}
		if a, ok := reverseAddr(name); ok && strings.Count(name, ".") == 5 && ReverseName(a) != name && !strings.Contains(name, "0") {
			t.Fatalf("%s reads as %v, which is %s", name, a, ReverseName(a))
		}
	})
}
