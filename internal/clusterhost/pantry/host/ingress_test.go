package host_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// app is a Deployment and its Service on port 80.
func app(name, image string, port, replicas int, more string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[4]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
        - {name: c, image: "%[2]s"%[5]s}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  selector: {app: %[1]s}
  ports: [{name: http, port: 80, targetPort: %[3]d}]
---
`, name, image, port, replicas, more)
}

func named(name string) string { return fmt.Sprintf(`, args: [--name, %s]`, name) }

// ingress is one rule for each "path type service" at a host.
func ingress(name, host string, annotations string, rules ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: %s, annotations: {%s}}\nspec:\n  ingressClassName: host\n  rules:\n    - ", name, annotations)
	if host != "" {
		fmt.Fprintf(&b, "host: %q\n      ", host)
	}
	b.WriteString("http:\n        paths:\n")
	for _, r := range rules {
		f := strings.Fields(r)
		fmt.Fprintf(&b, "          - {path: %s, pathType: %s, backend: {service: {name: %s, port: {number: 80}}}}\n", f[0], f[1], f[2])
	}
	return b.String() + "---\n"
}

func TestIngressRoutes(t *testing.T) {
	l := cluster(t)
	ns := l.space(t)
	host := ns + ".example.com"
	l.mustApply(t, ns, app("front", "traefik/whoami", 80, 2, named("front"))+app("menu", "traefik/whoami", 80, 1, named("menu"))+app("exact", "traefik/whoami", 80, 1, named("exact"))+
		ingress("main", host, "", "/ Prefix front", "/menu Prefix menu", "/menu/today Exact exact")+
		ingress("wild", "*."+host, "", "/ Prefix menu"))
	for path, want := range map[string]string{
		"/": "front", "/menu": "menu", "/menu/": "menu", "/menu/soup": "menu", "/menus": "front",
		"/menu/today": "exact", "/menu/today/x": "menu", "/menu/../menu/today": "exact",
	} {
		l.comes(t, "http://"+host+path, 200, "Name: "+want+"\n")
	}
	l.comes(t, "http://sub."+host+"/", 200, "Name: menu\n")
	for _, url := range []string{"http://a.sub." + host + "/", "http://nobody." + ns + ".test/"} {
		if a := l.get(t, url); a.code != 404 || a.body != "404 page not found\n" {
			t.Errorf("GET %s: %s", url, a)
		}
	}
	a := l.get(t, "http://"+host+":8080/x?y=1", "X-Forwarded-For: 6.6.6.6", "X-Forwarded-Host: evil", "User-Agent: me")
	for _, want := range []string{
		"GET /x?y=1 HTTP/1.1\r\n", "Host: " + host + ":8080\r\n", "X-Forwarded-Host: " + host + ":8080\r\n", "X-Forwarded-Port: 8080\r\n",
		"X-Forwarded-Proto: http\r\n", "X-Forwarded-Server: host-", "X-Real-Ip: ", "User-Agent: me\r\n",
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the cook didn't get %q, but\n%s", want, a.body)
		}
	}
	if strings.Contains(a.body, "6.6.6.6") || strings.Contains(a.body, "evil") {
		t.Errorf("what a client says of itself is passed on:\n%s", a.body)
	}
	pods := map[string]int{}
	for range 10 {
		a := l.get(t, "http://"+host+"/")
		name, _, _ := strings.Cut(a.body[strings.Index(a.body, "Hostname: "):], "\n")
		pods[name]++
	}
	if len(pods) != 2 {
		t.Errorf("ten requests went to %v, want both Pods", pods)
	}
	until(t, func() string {
		const want = `"GET /x?y=1 HTTP/1.1" 200`
		if out := l.logs("host", "app.kubernetes.io/name=host"); !strings.Contains(out, want) || !strings.Contains(out, "main-"+strings.ReplaceAll(host, ".", "-")+`@kubernetes" "http://10.`) {
			return "no line of the access log says " + want + "\n" + out
		}
		return ""
	})
}

func TestIngressErrors(t *testing.T) {
	l := cluster(t)
	ns := l.space(t)
	host := ns + ".example.com"
	url := "http://" + host + "/"
	l.mustApply(t, ns, strings.Replace(app("cook", "grill-cook:1.5", 8080, 1, ""), "      containers:", "      readinessGates: [{conditionType: example.com/open}]\n      containers:", 1)+ingress("main", host, "", "/ Prefix cook"))
	l.gate(t, ns, "True")
	l.comes(t, url, 200, "Welcome!")
	exact := func(what string, code int, body string) {
		t.Helper()
		if a := l.comes(t, url, code, body); a.body != body {
			t.Errorf("%s: %s, want the body %q", what, a, body)
		}
	}
	if a := l.get(t, url+"nothing"); a.code != 404 || !strings.Contains(a.body, "isn't on the menu") {
		t.Errorf("the app's own 404 isn't passed on: %s", a)
	}
	l.gate(t, ns, "False")
	exact("none is ready", 503, "no available server\n")
	l.patch(t, "v1", "Service", ns, "cook", `{"spec": {"selector": {"app": "cok"}}}`)
	exact("no endpoints", 503, "no available server\n")
	l.gate(t, ns, "True")
	l.patch(t, "v1", "Service", ns, "cook", `{"spec": {"selector": {"app": "cook"}}}`)
	l.comes(t, url, 200, "Welcome!")
	l.patch(t, "v1", "Service", ns, "cook", `{"spec": {"ports": [{"name": "http", "port": 80, "targetPort": 9999}]}}`)
	exact("nobody listens", 502, "Bad Gateway")
	if err := l.client.CoreV1().Services(ns).Delete(t.Context(), "cook", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	exact("no Service", 404, "404 page not found\n")
}

// gate sets the readiness gate of all Pods of a namespace, once there are any.
func (l *lab) gate(t *testing.T, ns, status string) {
	t.Helper()
	until(t, func() string {
		pods, err := l.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) == 0 {
			return fmt.Sprintf("no Pods: %v", err)
		}
		for _, p := range pods.Items {
			patch := fmt.Sprintf(`{"status": {"conditions": [{"type": "example.com/open", "status": %q}]}}`, status)
			if _, err := l.client.CoreV1().Pods(ns).Patch(t.Context(), p.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
				return err.Error()
			}
		}
		return ""
	})
}

func TestIngressRetries(t *testing.T) {
	l := cluster(t)
	ns := l.space(t)
	// Two addresses of which one refuses: a Service without a selector, with slices by hand.
	l.mustApply(t, ns, app("cook", "traefik/whoami", 80, 1, named("alive")))
	l.rolledOut(t, ns, "cook")
	pods, err := l.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Fatal(err, len(pods.Items))
	}
	l.mustApply(t, ns, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: half}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: half, labels: {kubernetes.io/service-name: half}}
addressType: IPv4
ports: [{name: "", port: 80}]
endpoints: [{addresses: ["%s"], conditions: {ready: true}}, {addresses: ["%s"], conditions: {ready: true}}]
---
`, pods.Items[0].Status.PodIP, kitchen(t, l))+ingress("plain", "plain."+ns, "", "/ Prefix half")+ingress("retry", "retry."+ns, `kubistro.io/retry-attempts: "3"`, "/ Prefix half"))
	l.comes(t, "http://plain."+ns+"/", 200, "alive")
	l.comes(t, "http://retry."+ns+"/", 200, "alive")
	codes := map[int]int{}
	for range 4 {
		codes[l.get(t, "http://plain."+ns+"/").code]++
	}
	for range 4 {
		if a := l.get(t, "http://retry."+ns+"/"); a.code != 200 {
			t.Errorf("with retries: %s", a)
		}
	}
	if codes[502] == 0 || codes[200] == 0 {
		t.Errorf("without retries every other request was to fail, got %v", codes)
	}
}

// kitchen is the address of a node, where nobody listens on port 80.
func kitchen(t *testing.T, l *lab) string {
	t.Helper()
	nodes, err := l.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items {
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				return a.Address
			}
		}
	}
	t.Fatal("no node has an address")
	return ""
}

func TestIngressAddressAndClass(t *testing.T) {
	l := cluster(t)
	ns := l.space(t)
	l.mustApply(t, ns, app("cook", "traefik/whoami", 80, 1, named("cook"))+ingress("ours", "ours."+ns, "", "/ Prefix cook")+
		strings.ReplaceAll(ingress("theirs", "theirs."+ns, "", "/ Prefix cook"), "ingressClassName: host", "ingressClassName: other"))
	svc, err := l.client.CoreV1().Services("host").Get(t.Context(), "host", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(svc.Status.LoadBalancer.Ingress) == 0 { // what a load balancer's controller does, where there is none
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "172.18.255.200"}}
		if _, err := l.client.CoreV1().Services("host").UpdateStatus(t.Context(), svc, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, func() string {
		svc, err := l.client.CoreV1().Services("host").Get(t.Context(), "host", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		var ing networkingv1.Ingress
		l.object(t, "networking.k8s.io/v1", "Ingress", ns, "ours", &ing)
		want, got := svc.Status.LoadBalancer.Ingress, ing.Status.LoadBalancer.Ingress
		if len(want) == 0 || len(got) != len(want) || got[0].IP != want[0].IP {
			return fmt.Sprintf("the Ingress' address is %v, the Service's %v", got, want)
		}
		return ""
	})
	l.comes(t, "http://ours."+ns+"/", 200, "Name: cook")
	if a := l.get(t, "http://theirs."+ns+"/"); a.code != 404 {
		t.Errorf("an Ingress of another class is served: %s", a)
	}
	var ing networkingv1.Ingress
	l.object(t, "networking.k8s.io/v1", "Ingress", ns, "theirs", &ing)
	if diff := cmp.Diff(networkingv1.IngressStatus{}, ing.Status); diff != "" {
		t.Errorf("an Ingress of another class got a status: %s", diff)
	}
}

func TestIngressTLSAndDefaultBackend(t *testing.T) {
	l := cluster(t)
	ns := l.space(t)
	host := ns + ".example.com"
	l.mustApply(t, ns, app("cook", "traefik/whoami", 80, 1, named("cook"))+app("lost", "traefik/whoami", 80, 1, named("lost"))+certificate(t, "cert", host)+
		strings.Replace(ingress("main", host, "", "/ Prefix cook"), "  rules:", "  tls: [{hosts: ["+host+"], secretName: cert}]\n  rules:", 1))
	a := l.comes(t, "https://"+host+"/", 200, "Name: cook")
	if a.peer != host || !strings.Contains(a.body, "X-Forwarded-Proto: https\r\n") || !strings.Contains(a.body, "X-Forwarded-Port: 443\r\n") {
		t.Errorf("certificate of %q:\n%s", a.peer, a.body)
	}
	if a := l.get(t, "https://other."+ns+".test/"); a.code != 404 || a.peer != "TRAEFIK DEFAULT CERT" {
		t.Errorf("a name without a certificate: %s, certificate of %q", a, a.peer)
	}
	l.mustApply(t, ns, "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: default}\nspec: {ingressClassName: host, defaultBackend: {service: {name: lost, port: {name: http}}}}")
	l.comes(t, "http://anybody."+ns+".test/any", 200, "Name: lost")
	l.comes(t, "http://"+host+"/", 200, "Name: cook")
	if err := l.client.NetworkingV1().Ingresses(ns).Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	l.comes(t, "http://anybody."+ns+".test/any", 404, "404 page not found\n")
}

// certificate is a Secret with a self-signed certificate.
func certificate(t *testing.T, name, host string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte) string {
		var b bytes.Buffer
		if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}); err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ntype: kubernetes.io/tls\ndata: {tls.crt: %s, tls.key: %s}\n---\n", name, text("CERTIFICATE", der), text("PRIVATE KEY", raw))
}
