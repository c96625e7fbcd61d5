package vnet

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// town is a house whose cooks work on nodes, one on each, and a guest outside.
type town struct {
	*house
	nodes map[string]*Interface
	guest *Interface
}

func newTown(t *testing.T) *town {
	w := &town{house: newHouse(t), nodes: map[string]*Interface{}}
	for n, ip := range map[string]string{"kitchen-1": "172.18.0.3", "kitchen-2": "172.18.0.4", "kitchen-3": "172.18.0.5"} {
		w.nodes[n] = attach(t, w.net, n, ip)
		w.nodes[n].ServeNodePorts(true)
		w.table.setNode(nodeObject(n, ip))
	}
	for ip, n := range map[string]string{"10.244.1.2": "kitchen-1", "10.244.2.2": "kitchen-2", "10.244.3.2": "kitchen-3"} {
		w.cooks[ip].SetNode(w.nodes[n])
		w.cooks[ip].SetPod("default", "cook-"+n)
	}
	w.client.SetNode(w.nodes["kitchen-1"])
	w.client.SetPod("default", "client")
	w.guest = attach(t, w.net, "street", "172.18.0.1")
	return w
}

func nodeObject(name, ip string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: "zone-of-" + name}},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// on is a slice whose endpoints are on the nodes of the cooks.
func on(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	for k, e := range s.Endpoints {
		s.Endpoints[k].NodeName = ptr("kitchen-" + string(e.Addresses[0][len("10.244.")]))
	}
	return s
}

// ask returns "COOK sees CLIENT", "refused", "timeout" or another error.
func (w *town) ask(t *testing.T, from *Interface, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // an answer takes no time of its own: only silence waits
	defer cancel()
	c, err := from.DialContext(ctx, "tcp", address)
	var ne net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.As(err, &ne) && ne.Timeout():
		return "timeout"
	case err != nil:
		return err.Error()
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// answers collects the different results of many tries.
func (w *town) answers(t *testing.T, from *Interface, address string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for range 60 {
		out[w.ask(t, from, address)] = true
	}
	return out
}

func set(results ...string) map[string]bool {
	out := map[string]bool{}
	for _, r := range results {
		out[r] = true
	}
	return out
}

func balanced(local bool) *corev1.Service {
	s := clusterIPService("default", "web", "10.96.0.20")
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	s.Spec.Ports[0].NodePort = 30080
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	if local {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.HealthCheckNodePort = 32000
	}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "172.18.255.200"}}
	return s
}

func TestTrafficPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		check := func(what string, from *Interface, address string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(set(want...), w.answers(t, from, address)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		w.table.setService(balanced(false))
		w.table.setSlice(on(sliceOf("default", "web", "web-a", "10.244.1.2", "10.244.2.2")))
		check("node port, Cluster", w.guest, "172.18.0.5:30080", "10.244.1.2 sees 172.18.0.5", "10.244.2.2 sees 172.18.0.5")
		check("load balancer, Cluster", w.guest, "172.18.255.200:80",
			"10.244.1.2 sees 172.18.0.3", "10.244.1.2 sees 172.18.0.4", "10.244.1.2 sees 172.18.0.5",
			"10.244.2.2 sees 172.18.0.3", "10.244.2.2 sees 172.18.0.4", "10.244.2.2 sees 172.18.0.5")
		check("load balancer from a Pod", w.client, "172.18.255.200:80", "10.244.1.2 sees 172.18.0.3", "10.244.2.2 sees 172.18.0.3")
		check("load balancer's other port", w.guest, "172.18.255.200:81", "refused")

		w.table.setService(balanced(true))
		check("node port, Local", w.guest, "172.18.0.4:30080", "10.244.2.2 sees 172.18.0.1")
		check("node port, Local, none on the node", w.guest, "172.18.0.5:30080", "timeout")
		check("node port, Local, from a Pod", w.client, "172.18.0.5:30080", "10.244.1.2 sees 10.244.1.9", "10.244.2.2 sees 10.244.1.9")
		check("load balancer, Local", w.guest, "172.18.255.200:80", "10.244.1.2 sees 172.18.0.1", "10.244.2.2 sees 172.18.0.1")
		w.nodes["kitchen-1"].SetDown(true)
		check("load balancer avoids a dead node", w.guest, "172.18.255.200:80", "10.244.2.2 sees 172.18.0.1")
		w.nodes["kitchen-1"].SetDown(false)
		w.table.setSlice(on(sliceOf("default", "web", "web-a", "10.244.1.2:leaving", "10.244.2.2:unready")))
		check("node port, Local, terminating", w.guest, "172.18.0.3:30080", "10.244.1.2 sees 172.18.0.1")
		check("load balancer, Local, health checks fail", w.guest, "172.18.255.200:80", "refused")
		w.table.setSlice(on(sliceOf("default", "web", "web-a")))
		check("node port, Local, no endpoints at all", w.guest, "172.18.0.3:30080", "refused")

		inner := clusterIPService("default", "web", "10.96.0.20")
		inner.Spec.InternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicyLocal)
		w.table.setService(inner)
		w.table.setSlice(on(sliceOf("default", "web", "web-a", "10.244.1.2", "10.244.2.2")))
		check("ClusterIP, Local", w.client, "10.96.0.20:80", "10.244.1.2 sees 10.244.1.9")
		check("ClusterIP, Local, none on the node", w.cooks["10.244.3.2"], "10.96.0.20:80", "timeout")

		ranged := balanced(false)
		ranged.Spec.LoadBalancerSourceRanges = []string{"192.168.0.0/16", "10.244.1.0/24"}
		w.table.setService(ranged)
		check("source range", w.guest, "172.18.255.200:80", "timeout")
		check("source range of a Pod", w.client, "172.18.255.200:80", "10.244.1.2 sees 172.18.0.3", "10.244.2.2 sees 172.18.0.3")
	})
}

func TestTopologyHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.table.setService(clusterIPService("default", "web", "10.96.0.20"))
		hinted := func(ready2 string, forNode bool) *discoveryv1.EndpointSlice {
			s := on(sliceOf("default", "web", "web-a", "10.244.1.2", "10.244.2.2"+ready2))
			for k, e := range s.Endpoints {
				s.Endpoints[k].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone-of-" + *e.NodeName}}}
				if forNode {
					s.Endpoints[k].Hints.ForNodes = []discoveryv1.ForNode{{Name: *e.NodeName}}
				}
			}
			return s
		}
		for _, forNode := range []bool{false, true} {
			w.table.setSlice(hinted("", forNode))
			if diff := cmp.Diff(set("10.244.1.2 sees 10.244.1.9"), w.answers(t, w.client, "10.96.0.20:80")); diff != "" {
				t.Errorf("near, by node %t (-want +got):\n%s", forNode, diff)
			}
			both := set("10.244.1.2 sees 10.244.3.2", "10.244.2.2 sees 10.244.3.2")
			if diff := cmp.Diff(both, w.answers(t, w.cooks["10.244.3.2"], "10.96.0.20:80")); diff != "" {
				t.Errorf("no hint for this node, by node %t (-want +got):\n%s", forNode, diff)
			}
		}
		half := hinted("", false)
		half.Endpoints[1].Hints = nil
		w.table.setSlice(half)
		if got := w.answers(t, w.client, "10.96.0.20:80"); len(got) != 2 {
			t.Errorf("one endpoint without a hint: %v, want both", got)
		}
	})
}

func TestHealthChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.table.setService(balanced(true))
		w.table.setSlice(on(sliceOf("default", "web", "web-a", "10.244.1.2", "10.244.2.2:leaving")))
		tr := &http.Transport{DialContext: w.guest.DialContext, DisableKeepAlives: true}
		get := func(url string) (int, map[string]any) {
			t.Helper()
			res, err := (&http.Client{Transport: tr}).Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var body map[string]any
			json.NewDecoder(res.Body).Decode(&body)
			return res.StatusCode, body
		}
		want := func(n float64) map[string]any {
			return map[string]any{"service": map[string]any{"namespace": "default", "name": "web"}, "localEndpoints": n, "serviceProxyHealthy": true}
		}
		if code, body := get("http://172.18.0.3:32000/"); code != 200 || cmp.Diff(want(1), body) != "" {
			t.Errorf("node with an endpoint: %d %v", code, body)
		}
		if code, body := get("http://172.18.0.4:32000/healthz"); code != 503 || cmp.Diff(want(0), body) != "" {
			t.Errorf("node whose endpoint leaves: %d %v", code, body)
		}
		if code, body := get("http://172.18.0.5:10256/healthz"); code != 200 || body["nodeEligible"] != true {
			t.Errorf("kube-proxy: %d %v", code, body)
		}
		w.table.deleteService(balanced(true))
		if got := w.ask(t, w.guest, "172.18.0.3:32000"); got != "refused" {
			t.Errorf("after deletion: %s", got)
		}
	})
}

func TestHostPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.cooks["10.244.1.2"].MapHostPort(w.nodes["kitchen-1"], "TCP", netip.Addr{}, 8080, 8080)
		w.cooks["10.244.2.2"].MapHostPort(w.nodes["kitchen-1"], "TCP", netip.MustParseAddr("172.18.0.99"), 9090, 8080)
		for address, want := range map[string]string{
			"172.18.0.3:8080": "10.244.1.2 sees 172.18.0.1",
			"172.18.0.4:8080": "refused",
			"172.18.0.3:9090": "refused",
		} {
			if got := w.ask(t, w.guest, address); got != want {
				t.Errorf("%s: %s, want %s", address, got, want)
			}
		}
		w.cooks["10.244.1.2"].Close()
		if got := w.ask(t, w.guest, "172.18.0.3:8080"); got != "refused" {
			t.Errorf("after the Pod's end: %s", got)
		}
	})
}
