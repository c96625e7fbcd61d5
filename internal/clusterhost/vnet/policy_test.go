package vnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func netpol(t *testing.T, name, spec string) *networkingv1.NetworkPolicy {
	t.Helper()
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

func podObject(namespace, name, ip string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: ip}}},
	}
}

// guarded is a town with policies: cooks 1 and 2 are grills in default, cook 3 is a
// waiter in front, the client in default has no label.
func guarded(t *testing.T) (*town, *PolicyTable) {
	w := newTown(t)
	p := newPolicyTable()
	w.net.SetPolicies(p)
	w.cooks["10.244.3.2"].SetPod("front", "cook-kitchen-3")
	for n, labels := range map[string]map[string]string{"default": {"team": "kitchen"}, "front": {"team": "front"}} {
		o := namespace(n)
		o.Labels = labels
		p.setNamespace(o)
	}
	p.setPod(podObject("default", "cook-kitchen-1", "10.244.1.2", map[string]string{"app": "grill"}))
	p.setPod(podObject("default", "cook-kitchen-2", "10.244.2.2", map[string]string{"app": "grill"}))
	p.setPod(podObject("front", "cook-kitchen-3", "10.244.3.2", map[string]string{"app": "waiter"}))
	p.setPod(podObject("default", "client", "10.244.1.9", nil))
	return w, p
}

func TestNetworkPolicies(t *testing.T) {
	const grill = "10.244.2.2:8080"
	for _, tc := range []struct {
		name, spec string
		// Who reaches the grill on kitchen-2.
		client, waiter, grill, guest, node bool
	}{
		{"none selects it", `{podSelector: {matchLabels: {app: soup}}}`, true, true, true, true, true},
		{"deny all", `{podSelector: {}}`, false, false, false, false, true},
		{"empty rule", `{podSelector: {}, ingress: [{}]}`, true, true, true, true, true},
		{"own namespace", `{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}`, true, false, true, false, true},
		{"pods of the namespace", `{podSelector: {matchLabels: {app: grill}}, ingress: [{from: [{podSelector: {matchLabels: {app: grill}}}]}]}`, false, false, true, false, true},
		{"other namespace", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: front}}}]}]}`, false, true, false, false, true},
		{"both selectors", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: grill}}}]}]}`, false, false, true, false, true},
		{"either", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: front}}}, {podSelector: {matchLabels: {app: grill}}}]}]}`, false, true, true, false, true},
		{"block with exception", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.244.0.0/16, except: [10.244.1.0/24]}}]}]}`, false, true, false, false, true},
		{"block of the street", `{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 172.18.0.1/32}}]}]}`, false, false, false, true, true},
		{"other port", `{podSelector: {}, ingress: [{ports: [{port: 80}]}]}`, false, false, false, false, true},
		{"this port", `{podSelector: {}, ingress: [{ports: [{port: 8080}]}]}`, true, true, true, true, true},
		{"port range", `{podSelector: {}, ingress: [{ports: [{port: 8000, endPort: 8100}]}]}`, true, true, true, true, true},
		{"range beside", `{podSelector: {}, ingress: [{ports: [{port: 8000, endPort: 8079}]}]}`, false, false, false, false, true},
		{"named port", `{podSelector: {}, ingress: [{ports: [{port: http}]}]}`, true, true, true, true, true},
		{"unknown name", `{podSelector: {}, ingress: [{ports: [{port: https}]}]}`, false, false, false, false, true},
		{"UDP only", `{podSelector: {}, ingress: [{ports: [{protocol: UDP, port: 8080}]}]}`, false, false, false, false, true},
		{"egress of the namespace denied", `{podSelector: {}, policyTypes: [Egress]}`, false, true, false, true, true},
		{"egress to grills", `{podSelector: {matchExpressions: [{key: app, operator: DoesNotExist}]}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: grill}}}], ports: [{port: http}]}]}`, true, true, true, true, true},
		{"egress to the front", `{podSelector: {matchExpressions: [{key: app, operator: DoesNotExist}]}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {team: front}}}]}]}`, false, true, true, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, p := guarded(t)
				p.setPolicy(netpol(t, "rule", tc.spec))
				for _, c := range []struct {
					who  string
					from *Interface
					want bool
				}{
					{"client", w.client, tc.client}, {"waiter", w.cooks["10.244.3.2"], tc.waiter}, {"grill", w.cooks["10.244.1.2"], tc.grill},
					{"guest", w.guest, tc.guest}, {"the grill's node", w.nodes["kitchen-2"], tc.node},
				} {
					got := w.ask(t, c.from, grill)
					if through := got != "timeout"; through != c.want || got == "refused" {
						t.Errorf("%s: %s, want through %t", c.who, got, c.want)
					}
				}
				if got := w.ask(t, w.cooks["10.244.2.2"], grill); got != "10.244.2.2 sees 10.244.2.2" {
					t.Errorf("itself: %s", got)
				}
			})
		})
	}
}

// Through a Service it is the Pod behind it that policies look at, and the client's own address.
func TestPolicyBehindAService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := guarded(t)
		w.table.setService(balanced(false))
		w.table.setSlice(on(sliceOf("default", "web", "web-a", "10.244.2.2")))
		p.setPolicy(netpol(t, "rule", `{podSelector: {matchLabels: {app: grill}}, ingress: [{from: [{podSelector: {matchLabels: {app: grill}}}], ports: [{port: 8080}]}]}`))
		for from, want := range map[*Interface]string{w.client: "timeout", w.cooks["10.244.1.2"]: "10.244.2.2 sees 10.244.1.2"} {
			if got := w.ask(t, from, "10.96.0.20:80"); got != want {
				t.Errorf("from %s: %s, want %s", from.Name(), got, want)
			}
		}
		if got := w.ask(t, w.guest, "172.18.0.4:30080"); got != "timeout" {
			t.Errorf("from the street: %s", got)
		}
		p.deletePolicy(netpol(t, "rule", `{podSelector: {}}`))
		if got := w.ask(t, w.client, "10.96.0.20:80"); got != "10.244.2.2 sees 10.244.1.9" {
			t.Errorf("without the policy: %s", got)
		}
	})
}

func TestAtIsThePodItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := guarded(t)
		p.setPolicy(netpol(t, "rule", `{podSelector: {matchLabels: {app: grill}}, ingress: [{from: [{podSelector: {matchLabels: {app: grill}}}]}]}`))
		for ip, want := range map[string]string{"10.244.1.9": "timeout", "10.244.1.2": "10.244.2.2 sees 10.244.1.2"} {
			at := w.net.At(netip.MustParseAddr(ip))
			if at == nil {
				t.Fatalf("nobody at %s", ip)
			}
			if got := w.ask(t, at, "10.244.2.2:8080"); got != want {
				t.Errorf("from %s: %s, want %s", ip, got, want)
			}
		}
		if w.net.At(netip.MustParseAddr("10.244.9.9")) != nil {
			t.Error("somebody has an address that nobody has")
		}
	})
}

// A policy that comes while a dial waits lets it through at the next try; one that comes later leaves open connections alone.
func TestPolicyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := guarded(t)
		l, err := w.cooks["10.244.2.2"].Listen(":9000")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		p.setPolicy(netpol(t, "deny", `{podSelector: {}}`))
		time.AfterFunc(2*time.Second, func() { p.deletePolicy(netpol(t, "deny", `{podSelector: {}}`)) })
		c, err := w.client.DialContext(t.Context(), "tcp", "10.244.2.2:9000")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		p.setPolicy(netpol(t, "deny", `{podSelector: {}}`))
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Errorf("open connection: %v", err)
		}
	})
}

func TestPolicyOnDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := guarded(t)
		dns := dnsService()
		w.table.setService(dns)
		s := dnsSlice("10.244.3.2")
		s.Ports[0].Port = ptr(int32(53))
		w.table.setSlice(s)
		w.table.setService(clusterIPService("default", "web", "10.96.0.20"))
		lookup := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := w.client.LookupHost(ctx, "web")
			return err
		}
		if err := lookup(); err != nil {
			t.Fatalf("without a policy: %v", err)
		}
		p.setPolicy(netpol(t, "egress", `{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 80}]}]}`))
		var de *net.DNSError
		if err := lookup(); !errors.As(err, &de) || !de.IsTimeout {
			t.Errorf("DNS forbidden: %v, want a timeout", err)
		}
		p.setPolicy(netpol(t, "egress", `{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{protocol: UDP, port: 53}]}]}`))
		if err := lookup(); err != nil {
			t.Errorf("DNS allowed: %v", err)
		}
	})
}

func TestNameServersOfAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.net.SetUpstream(netip.MustParseAddr("172.18.0.1"))
		w.table.setService(clusterIPService("default", "web", "10.96.0.20"))
		dns := dnsService()
		w.table.setService(dns)
		s := dnsSlice("10.244.3.2")
		s.Ports[0].Port = ptr(int32(53))
		w.table.setSlice(s)
		search := []string{"default.svc.cluster.local"}
		for _, tc := range []struct {
			name    string
			c       DNSConfig
			found   bool
			timeout bool
			took    time.Duration
		}{
			{"cluster DNS", DNSConfig{Nameserver: netip.MustParseAddr("10.96.0.10"), Search: search}, true, false, 0},
			{"the node's", DNSConfig{Nameserver: netip.MustParseAddr("172.18.0.1"), Search: search}, false, false, 0},
			{"one that isn't there", DNSConfig{Nameserver: netip.MustParseAddr("8.8.8.8"), Search: search}, false, true, 2 * dnsTimeout},
			{"the second one", DNSConfig{Nameserver: netip.MustParseAddr("8.8.8.8"), More: []netip.Addr{netip.MustParseAddr("10.96.0.10")}, Search: search}, true, false, 2 * dnsTimeout},
		} {
			view := w.client.WithDNS(tc.c)
			start := time.Now()
			_, err := view.LookupHost(t.Context(), "web")
			var de *net.DNSError
			if (err == nil) != tc.found || errors.As(err, &de) && de.IsTimeout != tc.timeout || time.Since(start) != tc.took {
				t.Errorf("%s: %v after %v", tc.name, err, time.Since(start))
			}
		}
	})
}
