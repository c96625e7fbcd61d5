package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"kubistro/internal/clusterhost/controlapi"
)

// trap is a listener on the host's loopback that nothing of a cluster may reach.
type trap struct {
	port      int
	listeners []net.Listener
	wg        sync.WaitGroup

	mu   sync.Mutex
	hits []string
}

// newTrap sets a trap that fails the test when it is reached.
func newTrap(t *testing.T) *trap {
	t.Helper()
	tr := listenTrap(t)
	t.Cleanup(func() {
		tr.close()
		if len(tr.hits) > 0 {
			t.Errorf("the host's loopback was reached %d times", len(tr.hits))
		}
	})
	return tr
}

// listenTrap listens on 127.0.0.1, and on ::1 where there is one, with the same port.
func listenTrap(t *testing.T) *trap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := &trap{port: l.Addr().(*net.TCPAddr).Port, listeners: []net.Listener{l}}
	if l6, err := net.Listen("tcp", fmt.Sprintf("[::1]:%d", tr.port)); err == nil {
		tr.listeners = append(tr.listeners, l6)
	}
	for _, l := range tr.listeners {
		tr.wg.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				tr.mu.Lock()
				tr.hits = append(tr.hits, c.RemoteAddr().String())
				tr.mu.Unlock()
				c.Close()
			}
		})
	}
	return tr
}

// close ends the trap; connections that wait in its queue count as hits.
func (tr *trap) close() {
	for _, l := range tr.listeners {
		d := l.(*net.TCPListener)
		d.SetDeadline(time.Now().Add(50 * time.Millisecond))
	}
	tr.wg.Wait()
	for _, l := range tr.listeners {
		l.Close()
	}
}

// hosts are the ways to write the host's own addresses.
func (tr *trap) hosts() []string {
	return []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1", "127.0.0.1.nip.io"}
}

// TestTrapCatches makes sure that the other tests of this file can fail.
func TestTrapCatches(t *testing.T) {
	tr := listenTrap(t)
	c, err := net.Dial("tcp", fmt.Sprintf("localhost:%d", tr.port))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	tr.close()
	if len(tr.hits) != 1 {
		t.Errorf("%d hits after one dial", len(tr.hits))
	}
}

// learner sends a raw request as the learner.
func learner(t *testing.T, method, path string, body any) (int, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(shared.rest)
	if err != nil {
		t.Fatal(err)
	}
	var b io.Reader
	if body != nil {
		j, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.NewReader(j)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, shared.rest.Host+path, b)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	out, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(out)
}

type object = map[string]any

// mustCreate creates an object and deletes it after the test.
func mustCreate(t *testing.T, path string, o object) {
	t.Helper()
	code, out := learner(t, "POST", path, o)
	if code != 201 {
		t.Fatalf("create at %s: %d %s", path, code, out)
	}
	name := o["metadata"].(object)["name"].(string)
	t.Cleanup(func() { removeObject(path + "/" + name) })
}

func removeObject(path string) {
	shared.client.RESTClient().Delete().AbsPath(path).Do(context.Background())
}

// TestWebhooksStayInside: admission webhooks by URL and by Service.
func TestWebhooksStayInside(t *testing.T) {
	tr := newTrap(t)
	for i, host := range tr.hosts() {
		for _, kind := range []string{"validating", "mutating"} {
			t.Run(kind+" "+host, func(t *testing.T) {
				name := fmt.Sprintf("trap-%s-%d", kind, i)
				mustCreate(t, "/apis/admissionregistration.k8s.io/v1/"+kind+"webhookconfigurations", object{
					"apiVersion": "admissionregistration.k8s.io/v1",
					"kind":       strings.ToUpper(kind[:1]) + kind[1:] + "WebhookConfiguration",
					"metadata":   object{"name": name},
					"webhooks": []object{{
						"name": "trap.example.com", "sideEffects": "None", "timeoutSeconds": 2, "failurePolicy": "Fail",
						"admissionReviewVersions": []string{"v1"},
						"clientConfig":            object{"url": fmt.Sprintf("https://%s:%d/x", host, tr.port)},
						"objectSelector":          object{"matchLabels": object{"trap": name}},
						"rules": []object{{
							"apiGroups": []string{""}, "apiVersions": []string{"v1"}, "operations": []string{"CREATE"}, "resources": []string{"configmaps"},
						}},
					}},
				})
				eventuallyRefused(t, "/api/v1/namespaces/default/configmaps", object{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "labels": object{"trap": name}},
				})
			})
		}
	}
}

// eventuallyRefused creates the object until the webhook that has just been made is in force.
func eventuallyRefused(t *testing.T, path string, o object) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		code, out := learner(t, "POST", path, o)
		if code >= 500 && strings.Contains(out, "failed calling webhook") {
			return
		}
		if code == 201 {
			removeObject(path + "/" + o["metadata"].(object)["name"].(string))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the webhook was never called: %d %s", code, out)
		}
	}
}

// TestServicesStayInside: a Service with hand-made EndpointSlice, an ExternalName
// Service and the Service proxy, for webhooks, aggregated APIs and proxies.
func TestServicesStayInside(t *testing.T) {
	tr := newTrap(t)
	const ns = "/api/v1/namespaces/default/services"
	port := []object{{"name": "https", "port": 443, "targetPort": tr.port, "protocol": "TCP"}}
	mustCreate(t, ns, object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "trap-external"},
		"spec": object{"type": "ExternalName", "externalName": "localhost", "ports": []object{{"name": "https", "port": tr.port}}}})
	mustCreate(t, ns, object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "trap-slice"}, "spec": object{"ports": port}})
	for i, address := range []string{"10.244.200.200", "172.18.0.1", "172.17.0.1", "192.168.0.1"} {
		mustCreate(t, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", object{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
			"metadata":  object{"name": fmt.Sprintf("trap-slice-%d", i), "labels": object{"kubernetes.io/service-name": "trap-slice"}},
			"ports":     []object{{"name": "https", "port": tr.port, "protocol": "TCP"}},
			"endpoints": []object{{"addresses": []string{address}, "conditions": object{"ready": true}}},
		})
	}
	for _, service := range []string{"trap-external", "trap-slice"} {
		t.Run("APIService "+service, func(t *testing.T) {
			group := service + ".example.com"
			mustCreate(t, "/apis/apiregistration.k8s.io/v1/apiservices", object{
				"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": object{"name": "v1." + group},
				"spec": object{"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": true,
					"service": object{"name": service, "namespace": "default", "port": 443}},
			})
			if code, out := learner(t, "GET", "/apis/"+group+"/v1", nil); code == 200 {
				t.Errorf("answered: %s", out)
			}
		})
		t.Run("proxy "+service, func(t *testing.T) {
			for _, path := range []string{":https/proxy/", ":443/proxy/", "/proxy/", fmt.Sprintf(":%d/proxy/", tr.port)} {
				if code, out := learner(t, "GET", ns+"/"+service+path, nil); code == 200 {
					t.Errorf("%s answered: %s", path, out)
				}
				if code, out := learner(t, "GET", ns+"/https:"+service+path, nil); code == 200 {
					t.Errorf("https %s answered: %s", path, out)
				}
			}
		})
	}
}

// TestLoopbackEndpointsAreRefused: the API server's own validation, which the rest relies on.
func TestLoopbackEndpointsAreRefused(t *testing.T) {
	code, out := learner(t, "POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", object{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "metadata": object{"name": "trap-loopback"},
		"endpoints": []object{{"addresses": []string{"127.0.0.1"}}},
	})
	if code != 422 {
		t.Errorf("loopback in an EndpointSlice: %d %s", code, out)
		removeObject("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/trap-loopback")
	}
}

// TestNodesStayInside: nodes with forged addresses, for the node proxy and the kubelet's API.
func TestNodesStayInside(t *testing.T) {
	tr := newTrap(t)
	addresses := append(tr.hosts(), "172.18.0.1", "10.0.2.2")
	for i, address := range addresses {
		address = strings.Trim(address, "[]")
		t.Run(address, func(t *testing.T) {
			name := fmt.Sprintf("trap-node-%d", i)
			mustCreate(t, "/api/v1/nodes", object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name}})
			code, _ := learner(t, "PATCH", "/api/v1/nodes/"+name+"/status", object{"status": object{
				"addresses":       []object{{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": address}},
				"daemonEndpoints": object{"kubeletEndpoint": object{"Port": tr.port}},
			}})
			if code != 200 {
				return // refused at once: as good
			}
			pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name},
				"spec": object{"nodeName": name, "terminationGracePeriodSeconds": 0, "containers": []object{{"name": "c", "image": "nginx"}}}}
			mustCreate(t, "/api/v1/namespaces/default/pods", pod)
			for _, path := range []string{
				"/api/v1/nodes/" + name + "/proxy/pods",
				fmt.Sprintf("/api/v1/nodes/%s:%d/proxy/", name, tr.port),
				fmt.Sprintf("/api/v1/nodes/https:%s:%d/proxy/", name, tr.port),
				"/api/v1/namespaces/default/pods/" + name + "/log",
				"/api/v1/namespaces/default/pods/" + name + "/log?insecureSkipTLSVerifyBackend=true",
				"/api/v1/namespaces/default/pods/" + name + "/exec?command=id&stdout=true",
			} {
				if code, out := learner(t, "GET", path, nil); code == 200 {
					t.Errorf("%s answered: %s", path, out)
				}
			}
		})
	}
}

// TestPodProxyStaysInside: Pods with a forged address.
func TestPodProxyStaysInside(t *testing.T) {
	tr := newTrap(t)
	for i, address := range []string{"127.0.0.1", "::1", "172.18.0.1", "0.0.0.0"} {
		name := fmt.Sprintf("trap-pod-%d", i)
		mustCreate(t, "/api/v1/namespaces/default/pods", object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name},
			"spec": object{"nodeName": "trap-nowhere", "terminationGracePeriodSeconds": 0, "containers": []object{{"name": "c", "image": "nginx"}}}})
		code, _ := learner(t, "PATCH", "/api/v1/namespaces/default/pods/"+name+"/status", object{"status": object{
			"podIP": address, "podIPs": []object{{"ip": address}}, "phase": "Running",
		}})
		t.Logf("%s: status patch %d", address, code)
		for _, path := range []string{name + ":" + fmt.Sprint(tr.port), "https:" + name + ":" + fmt.Sprint(tr.port)} {
			if code, out := learner(t, "GET", "/api/v1/namespaces/default/pods/"+path+"/proxy/", nil); code == 200 {
				t.Errorf("%s at %s answered: %s", path, address, out)
			}
		}
	}
}

// TestConversionStaysInside: a CRD whose conversion webhook points to the host.
func TestConversionStaysInside(t *testing.T) {
	tr := newTrap(t)
	version := func(name string, storage bool) object {
		return object{"name": name, "served": true, "storage": storage,
			"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
	}
	const group = "trap.example.com"
	mustCreate(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "dishes." + group},
		"spec": object{"group": group, "scope": "Namespaced", "names": object{"plural": "dishes", "kind": "Dish"},
			"versions": []object{version("v1", true), version("v2", false)},
			"conversion": object{"strategy": "Webhook", "webhook": object{"conversionReviewVersions": []string{"v1"},
				"clientConfig": object{"url": fmt.Sprintf("https://127.0.0.1:%d/convert", tr.port)}}}},
	})
	path := "/apis/" + group + "/v1/namespaces/default/dishes"
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		code, out := learner(t, "POST", path, object{"apiVersion": group + "/v1", "kind": "Dish", "metadata": object{"name": "soup"}})
		if code == 201 || code == 409 {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("custom resource: %d %s", code, out)
		}
	}
	if code, out := learner(t, "GET", "/apis/"+group+"/v2/namespaces/default/dishes/soup", nil); code == 200 {
		t.Errorf("converted: %s", out)
	}
}

// TestKubernetesServiceWebhook: a webhook at the API server's own name goes to the
// API server itself at most, never to the host's network.
func TestKubernetesServiceWebhook(t *testing.T) {
	tr := newTrap(t)
	for i, config := range []object{
		{"url": "https://kubernetes.default.svc:443/x"},
		{"url": "https://kubernetes.default.svc/x"},
		{"url": fmt.Sprintf("https://kubernetes.default.svc:%d/x", tr.port)},
		{"service": object{"name": "kubernetes", "namespace": "default", "port": 443, "path": "/x"}},
	} {
		name := fmt.Sprintf("trap-self-%d", i)
		mustCreate(t, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", object{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": object{"name": name},
			"webhooks": []object{{"name": "trap.example.com", "sideEffects": "None", "timeoutSeconds": 2, "failurePolicy": "Fail",
				"admissionReviewVersions": []string{"v1"}, "clientConfig": config, "objectSelector": object{"matchLabels": object{"trap": name}},
				"rules": []object{{"apiGroups": []string{""}, "apiVersions": []string{"v1"}, "operations": []string{"CREATE"}, "resources": []string{"configmaps"}}}}},
		})
		eventuallyRefused(t, "/api/v1/namespaces/default/configmaps", object{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "labels": object{"trap": name}},
		})
	}
}

// TestHostNamesDontResolve: nothing in the process asks the host's resolver.
func TestHostNamesDontResolve(t *testing.T) {
	for _, name := range []string{"example.com", "metadata.google.internal", "host.docker.internal"} {
		if ips, err := net.DefaultResolver.LookupIPAddr(t.Context(), name); err == nil {
			t.Errorf("%s resolves to %v", name, ips)
		}
	}
}

// TestStreetStaysInside: what the learner's terminal dials.
func TestStreetStaysInside(t *testing.T) {
	tr := newTrap(t)
	for _, host := range append(tr.hosts(), "example.com", "169.254.169.254") {
		for _, network := range []string{"tcp", controlapi.NetworkStreet} {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			c, err := shared.Dial(ctx, network, net.JoinHostPort(strings.Trim(host, "[]"), fmt.Sprint(tr.port)))
			cancel()
			if err == nil {
				c.Close()
				t.Errorf("%s can be dialled by %s", host, network)
			}
		}
	}
}

// TestNothingListensOnTheHost: the process has no TCP or UDP socket.
func TestNothingListensOnTheHost(t *testing.T) {
	if open := hostSockets(t); len(open) > 0 {
		t.Errorf("sockets of the host: %v", open)
	}
}

// TestAPIServerServesTLS: through the office's port in the cluster's network, with the CA of Access.
func TestAPIServerServesTLS(t *testing.T) {
	a, _ := shared.Access()
	for _, address := range []string{"172.18.0.2:6443", "10.96.0.1:443", "kubernetes.default.svc:443", "kubernetes.default:443"} {
		transport, err := newTransport(shared.street.DialContext, a.CAPEM, "")
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Get("https://" + address + "/version")
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		resp.Body.Close()
		transport.CloseIdleConnections()
		if resp.StatusCode != 200 {
			t.Errorf("%s: %s", address, resp.Status)
		}
	}
}
