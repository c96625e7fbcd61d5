package kubelet_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// fromStreet asks for a page from outside of the cluster.
func (h *host) fromStreet(t *testing.T, url string) string {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return h.api.Dial(ctx, "street", address)
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (h *host) service(t *testing.T, ns, name string, check func(*corev1.Service) string) *corev1.Service {
	t.Helper()
	var got *corev1.Service
	within(t, func() string {
		s, err := h.client.CoreV1().Services(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		got = s
		return check(s)
	})
	return got
}

// events are the reasons of an object's Events, in order.
func (h *host) events(t *testing.T, ns, name string) []string {
	t.Helper()
	list, err := h.client.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Source.Component+" "+e.Reason+": "+e.Message)
	}
	return out
}

const whoami = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  nodeName: %[2]s
  containers:
  - {name: c, image: traefik/whoami, ports: [{name: web, containerPort: 80%[3]s}]}
`

func TestLoadBalancer(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, fmt.Sprintf(whoami, "door", "kitchen-2", ""))
	h.apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: door}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {app: door}, ports: [{port: 8000, targetPort: web}]}
`)
	h.pod(t, ns, "door", ready)
	s := h.service(t, ns, "door", func(s *corev1.Service) string {
		if len(s.Status.LoadBalancer.Ingress) == 0 {
			return "has no address"
		}
		return ""
	})
	ip := s.Status.LoadBalancer.Ingress[0].IP
	if !strings.HasPrefix(ip, "172.18.255.") || len(s.Finalizers) != 1 || s.Spec.HealthCheckNodePort == 0 {
		t.Errorf("address %s, finalizers %v, health check %d", ip, s.Finalizers, s.Spec.HealthCheckNodePort)
	}
	within(t, func() string {
		if got := h.fromStreet(t, "http://"+ip+":8000/"); !strings.Contains(got, "Hostname: door\n") || !strings.Contains(got, "RemoteAddr: 172.18.0.1:") {
			return "through the door: " + got
		}
		return ""
	})
	for node, want := range map[string]string{"kitchen-2": `"localEndpoints":1`, "kitchen-1": `"localEndpoints":0`} {
		if got := h.fromStreet(t, fmt.Sprintf("http://%s:%d/", node, s.Spec.HealthCheckNodePort)); !strings.Contains(got, want) {
			t.Errorf("health check of %s: %s", node, got)
		}
	}
	if got := h.fromStreet(t, fmt.Sprintf("http://kitchen-2:%d/", s.Spec.Ports[0].NodePort)); !strings.Contains(got, "Hostname: door\n") {
		t.Errorf("node port: %s", got)
	}
	if got := h.fromStreet(t, "http://"+s.Spec.ClusterIP+":8000/"); !strings.Contains(got, "no route to host") {
		t.Errorf("ClusterIP from the street: %s", got)
	}
	within(t, func() string {
		all := strings.Join(h.events(t, ns, "door"), "\n")
		for _, want := range []string{"service-controller EnsuringLoadBalancer: Ensuring load balancer", "service-controller EnsuredLoadBalancer: Ensured load balancer"} {
			if !strings.Contains(all, want) {
				return "no event " + want + " in\n" + all
			}
		}
		return ""
	})
	if err := h.client.CoreV1().Services(ns).Delete(t.Context(), "door", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, func() string {
		if _, err := h.client.CoreV1().Services(ns).Get(t.Context(), "door", metav1.GetOptions{}); err == nil {
			return "the Service is still there"
		}
		return ""
	})
	within(t, func() string {
		if got := h.fromStreet(t, "http://"+ip+":8000/"); !strings.Contains(got, "no route to host") {
			return "after deletion: " + got
		}
		return ""
	})
}

func TestNetworkPolicyOfACluster(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, fmt.Sprintf(whoami, "kitchen", "kitchen-1", ""))
	h.apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: kitchen}
spec: {selector: {app: kitchen}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: waiter, labels: {app: waiter}}
spec: {containers: [{name: c, image: toolbox, command: [sleep, infinity]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: stranger}
spec: {containers: [{name: c, image: toolbox, command: [sleep, infinity]}]}
`)
	for _, p := range []string{"kitchen", "waiter", "stranger"} {
		h.pod(t, ns, p, ready)
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "kitchen"}}
	if err := yaml.UnmarshalStrict([]byte(`{podSelector: {matchLabels: {app: kitchen}}, ingress: [{from: [{podSelector: {matchLabels: {app: waiter}}}], ports: [{port: web}]}]}`), &policy.Spec); err != nil {
		t.Fatal(err)
	}
	call := func(pod string) string {
		out, errs, _ := h.exec(t, ns, pod, nil, false, "curl", "-sS", "-m", "2", "http://kitchen")
		return out + errs
	}
	within(t, func() string {
		if got := call("stranger"); !strings.Contains(got, "Hostname: kitchen") {
			return "without a policy: " + got
		}
		return ""
	})
	if _, err := h.client.NetworkingV1().NetworkPolicies(ns).Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, func() string {
		if got := call("stranger"); !strings.Contains(got, "curl: (28) Connection timed out") {
			return "stranger: " + got
		}
		return ""
	})
	within(t, func() string {
		if got := call("waiter"); !strings.Contains(got, "Hostname: kitchen") {
			return "waiter: " + got
		}
		return ""
	})
}

func TestHostPortsAndResolvers(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, fmt.Sprintf(whoami, "porter", "kitchen-3", ", hostPort: 8088"))
	h.apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: crew}
spec: {clusterIP: None, selector: {crew: grill}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: cook, labels: {crew: grill}}
spec:
  hostname: chef
  subdomain: crew
  hostAliases: [{ip: 172.18.0.5, hostnames: [porter.example]}]
  dnsConfig: {searches: [crew.example], options: [{name: ndots, value: "2"}, {name: edns0}]}
  containers: [{name: c, image: toolbox, command: [sleep, infinity]}]
---
apiVersion: v1
kind: Pod
metadata: {name: outsider}
spec:
  dnsPolicy: Default
  containers: [{name: c, image: toolbox, command: [sleep, infinity]}]
---
apiVersion: v1
kind: Pod
metadata: {name: guard}
spec:
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  containers: [{name: c, image: toolbox, command: [sleep, infinity]}]
`)
	for _, p := range []string{"porter", "cook", "outsider", "guard"} {
		h.pod(t, ns, p, ready)
	}
	if got := h.fromStreet(t, "http://kitchen-3:8088/"); !strings.Contains(got, "Hostname: porter\n") {
		t.Errorf("host port: %s", got)
	}
	if got := h.mustExec(t, ns, "cook", "curl", "-sS", "http://porter.example:8088/"); !strings.Contains(got, "Hostname: porter\n") {
		t.Errorf("host alias: %s", got)
	}
	want := fmt.Sprintf("search %s.svc.cluster.local svc.cluster.local cluster.local crew.example\nnameserver 10.96.0.10\noptions ndots:2 edns0\n", ns)
	if got := h.mustExec(t, ns, "cook", "cat", "/etc/resolv.conf"); got != want {
		t.Errorf("resolv.conf:\n%swant:\n%s", got, want)
	}
	name := "chef.crew." + ns + ".svc.cluster.local"
	for _, from := range []string{"cook", "guard"} {
		within(t, func() string {
			if out, errs, err := h.exec(t, ns, from, nil, false, "nslookup", name); err != nil || !strings.Contains(out, "Name:\t"+name) {
				return fmt.Sprintf("from %s: %v %s%s", from, err, out, errs)
			}
			return ""
		})
	}
	if out, _, err := h.exec(t, ns, "outsider", nil, false, "nslookup", name); err == nil || !strings.Contains(out, "NXDOMAIN") || !strings.Contains(out, "Server:\t\t172.18.0.1") {
		t.Errorf("dnsPolicy Default: %v %s", err, out)
	}
	if got := h.mustExec(t, ns, "cook", "sh", "-c", "dig +short -t SRV _http._tcp.crew."+ns+".svc.cluster.local"); got != "0 100 80 "+name+".\n" {
		t.Errorf("SRV: %q", got)
	}
}

func TestUDPOfACluster(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: waiter}
spec:
  selector: {app: waiter}
  ports:
  - {name: tcp, port: 80, targetPort: 8080}
  - {name: udp, port: 80, targetPort: 8080, protocol: UDP}
---
apiVersion: v1
kind: Pod
metadata: {name: waiter, labels: {app: waiter}}
spec:
  containers:
  - name: c
    image: registry.k8s.io/e2e-test-images/agnhost:2.66.1
    args: [netexec, --http-port=8080, --udp-port=8080]
    ports: [{containerPort: 8080, hostPort: 8090, protocol: UDP}]
    readinessProbe: {httpGet: {path: /readyz, port: 8080}}
---
apiVersion: v1
kind: Pod
metadata: {name: guest}
spec:
  containers: [{name: c, image: toolbox, command: [sleep, infinity]}]
`)
	waiter := h.pod(t, ns, "waiter", ready)
	h.pod(t, ns, "guest", ready)
	ask := func(host string, port int) func() string {
		return func() string {
			out, errs, err := h.exec(t, ns, "guest", nil, false, "sh", "-c", fmt.Sprintf("echo hostName | nc -u -w 3 %s %d", host, port))
			if out != "waiter" {
				return fmt.Sprintf("%s:%d by UDP: %q %s %v", host, port, out, errs, err)
			}
			return ""
		}
	}
	within(t, ask("waiter", 80))
	within(t, ask(waiter.Status.HostIP, 8090))
	if got := h.mustExec(t, ns, "guest", "curl", "-sS", "http://waiter/hostName"); got != "waiter" {
		t.Errorf("by TCP: %q", got)
	}
	if out, _, err := h.exec(t, ns, "guest", nil, false, "sh", "-c", fmt.Sprintf("nc -z -w 2 %s 8090", waiter.Status.HostIP)); err == nil {
		t.Errorf("TCP reaches a host port of UDP: %q", out)
	}
}
