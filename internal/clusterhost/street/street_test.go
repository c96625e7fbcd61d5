package street

import (
	"net/netip"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
)

func ips(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func TestNamesLeadToDoors(t *testing.T) {
	menu := Door{Hosts: []string{"menu.example", "*.wild.example"}, IPs: ips("172.18.255.201")}
	gate := Door{Hosts: []string{"gate.example"}, IPs: ips("172.18.255.202")}
	waits := Door{Hosts: []string{"later.example"}}
	for _, tc := range []struct {
		what, host string
		doors      []Door
		balancers  []netip.Addr
		want       []netip.Addr
	}{
		{"its own door", "Menu.Example.", []Door{menu, gate}, nil, menu.IPs},
		{"a wildcard", "a.wild.example", []Door{menu, gate}, nil, menu.IPs},
		{"a wildcard is one label", "a.b.wild.example", []Door{menu}, nil, menu.IPs}, // by the only entrance
		{"a name that nobody has goes to all doors", "who.example", []Door{menu, gate}, nil, ips("172.18.255.201", "172.18.255.202")},
		{"a door without an address yet", "later.example", []Door{waits}, nil, nil},
		{"no door, one load balancer", "who.example", nil, ips("172.18.255.200"), ips("172.18.255.200")},
		{"no door, two load balancers", "who.example", nil, ips("172.18.255.200", "172.18.255.203"), nil},
		{"a name without a dot", "menu", []Door{menu}, nil, nil},
		{"the cluster's names", "menu.default.svc.cluster.local", []Door{menu}, nil, nil},
		{"short ones, too", "menu.default.svc", []Door{menu}, nil, nil},
	} {
		if got := Lookup(tc.host, tc.doors, tc.balancers); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %s = %v, want %v", tc.what, tc.host, got, tc.want)
		}
	}
}

func TestDoorOfAnIngress(t *testing.T) {
	o := &networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "Menu.Example"}, {}}}}
	o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "172.18.255.200"}, {Hostname: "lb.example"}}
	if d := OfIngress(o); !slices.Equal(d.Hosts, []string{"menu.example"}) || !slices.Equal(d.IPs, ips("172.18.255.200")) {
		t.Errorf("door = %+v", d)
	}
}
