package host_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kubistro/lessons"
)

const gatewayAPI = "gateway.networking.k8s.io/v1"

func gateway(name, more string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: Gateway\nmetadata: {name: %s}\nspec: {gatewayClassName: host, listeners: [%s]}\n---\n", gatewayAPI, name, more)
}

func httpRoute(name, parent, host, rules string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: HTTPRoute\nmetadata: {name: %s}\nspec: {parentRefs: [{name: %s}], hostnames: [%q], rules: [%s]}\n---\n", gatewayAPI, name, parent, host, rules)
}

// says is the reason of a condition, with its status.
func says(conditions []metav1.Condition, kind string) string {
	for _, c := range conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return "absent"
}

// route waits until the reasons of a route's conditions at its first parent are these.
func (l *lab) route(t *testing.T, ns, name, accepted, resolved string) {
	t.Helper()
	until(t, func() string {
		var r gatewayv1.HTTPRoute
		if !l.object(t, gatewayAPI, "HTTPRoute", ns, name, &r) || len(r.Status.Parents) == 0 {
			return "route " + name + " has no status"
		}
		p := r.Status.Parents[0]
		if a, b := says(p.Conditions, "Accepted"), says(p.Conditions, "ResolvedRefs"); a != accepted || b != resolved || p.ControllerName != "kubistro.io/gateway-controller" {
			return fmt.Sprintf("route %s: Accepted is %s, want %s; ResolvedRefs is %s, want %s: %+v", name, a, accepted, b, resolved, p)
		}
		return ""
	})
}

// gateway waits for a state of a Gateway.
func (l *lab) gateway(t *testing.T, ns, name string, check func(*gatewayv1.Gateway) string) *gatewayv1.Gateway {
	t.Helper()
	var gw gatewayv1.Gateway
	until(t, func() string {
		gw = gatewayv1.Gateway{}
		if !l.object(t, gatewayAPI, "Gateway", ns, name, &gw) {
			return "there is no Gateway " + name
		}
		return check(&gw)
	})
	return &gw
}

func TestGatewayRoutes(t *testing.T) {
	l := cluster(t)
	ns := l.space(t)
	host := ns + ".example.com"
	l.mustApply(t, ns, app("old", "traefik/whoami", 80, 1, named("old"))+app("new", "traefik/whoami", 80, 1, named("new"))+
		gateway("door", "{name: http, port: 80, protocol: HTTP}")+
		httpRoute("main", "door", host, `
  {matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{name: old, port: 80, weight: 9}, {name: new, port: 80, weight: 1}]},
  {matches: [{headers: [{name: X-Guest, value: tester}]}, {queryParams: [{name: try, value: "1"}]}, {path: {type: Exact, value: /only}, method: POST}], backendRefs: [{name: new, port: 80}]},
  {matches: [{path: {type: PathPrefix, value: /v1}}], filters: [
    {type: URLRewrite, urlRewrite: {hostname: inner.example, path: {type: ReplacePrefixMatch, replacePrefixMatch: /api}}},
    {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Set, value: "1"}], remove: [X-Gone]}},
    {type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: X-From, value: host}]}}], backendRefs: [{name: old, port: 80}]},
  {matches: [{path: {type: PathPrefix, value: /moved}}], filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 301, path: {type: ReplacePrefixMatch, replacePrefixMatch: /there}}}]},
  {matches: [{path: {type: PathPrefix, value: /slow}}], timeouts: {request: 200ms}, filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /}}}], backendRefs: [{name: old, port: 80}]}`))
	l.route(t, ns, "main", "True Accepted", "True ResolvedRefs")
	l.comes(t, "http://"+host+"/", 200, "Name: ")
	names := map[string]int{}
	for range 20 {
		a := l.get(t, "http://"+host+"/")
		name, _, _ := strings.Cut(a.body, "\n")
		names[name]++
	}
	if names["Name: old"] != 18 || names["Name: new"] != 2 {
		t.Errorf("of 20 requests 18 and 2 were to go to old and new, got %v", names)
	}
	for range 3 { // by chance one of ten would come to it anyway
		for _, a := range []answer{
			l.get(t, "http://"+host+"/", "X-Guest: tester"), l.get(t, "http://"+host+"/?try=1"), l.visit(t.Context(), "POST", "http://"+host+"/only"),
		} {
			if a.code != 200 || !strings.HasPrefix(a.body, "Name: new\n") {
				t.Errorf("a request for the new cook got %s", a)
			}
		}
	}
	a := l.get(t, "http://"+host+"/v1/soup?x=1", "X-Gone: 1")
	for _, want := range []string{"GET /api/soup?x=1 HTTP/1.1\r\n", "Host: inner.example\r\n", "X-Set: 1\r\n"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %q in\n%s", want, a)
		}
	}
	if strings.Contains(a.body, "X-Gone") || a.header.Get("X-From") != "host" {
		t.Errorf("headers: %v\n%s", a.header, a.body)
	}
	if a := l.get(t, "http://"+host+"/moved/x?y=1"); a.code != 301 || a.header.Get("Location") != "https://"+host+"/there/x?y=1" {
		t.Errorf("redirect: %s %v", a, a.header)
	}
	if a := l.get(t, "http://"+host+"/slow?wait=30s"); a.code != 504 || a.body != "Gateway Timeout" {
		t.Errorf("a timeout: %s", a)
	}
	if a := l.get(t, "http://other."+host+"/"); a.code != 404 || a.body != "404 page not found\n" {
		t.Errorf("another host: %s", a)
	}
	var class gatewayv1.GatewayClass
	l.object(t, gatewayAPI, "GatewayClass", "", "host", &class)
	if says(class.Status.Conditions, "Accepted") != "True Accepted" || len(class.Status.SupportedFeatures) == 0 {
		t.Errorf("GatewayClass: %+v", class.Status)
	}
	l.gateway(t, ns, "door", func(gw *gatewayv1.Gateway) string {
		if len(gw.Status.Listeners) != 1 || gw.Status.Listeners[0].AttachedRoutes != 1 {
			return fmt.Sprintf("listeners: %+v", gw.Status.Listeners)
		}
		s := gw.Status.Listeners[0]
		for kind, want := range map[string]string{"Accepted": "True Accepted", "Programmed": "True Programmed", "ResolvedRefs": "True ResolvedRefs", "Conflicted": "False NoConflicts"} {
			if got := says(s.Conditions, kind); got != want {
				return fmt.Sprintf("listener: %s is %s, want %s", kind, got, want)
			}
		}
		return ""
	})
}

func TestGatewayStatus(t *testing.T) {
	l := cluster(t)
	ns, other := l.space(t), l.space(t)
	host := ns + ".example.com"
	l.mustApply(t, ns, app("cook", "traefik/whoami", 80, 1, named("cook"))+certificate(t, "cert", host)+
		gateway("door", fmt.Sprintf(`{name: web, port: 80, protocol: HTTP, hostname: "*.%s"}, {name: tls, port: 443, protocol: HTTPS, hostname: %q, tls: {certificateRefs: [{name: cert}]}},
  {name: tcp, port: 9000, protocol: TCP}, {name: far, port: 4711, protocol: HTTP}, {name: lost, port: 443, protocol: HTTPS, hostname: lost.example, tls: {certificateRefs: [{name: none}]}}`, host, host)))
	l.mustApply(t, other, app("cook", "traefik/whoami", 80, 1, named("elsewhere")))
	gw := l.gateway(t, ns, "door", func(gw *gatewayv1.Gateway) string {
		if len(gw.Status.Listeners) != 5 {
			return "no status of the listeners"
		}
		return ""
	})
	got := map[string]string{}
	for _, s := range gw.Status.Listeners {
		got[string(s.Name)] = says(s.Conditions, "Accepted") + ", " + says(s.Conditions, "ResolvedRefs") + ", " + says(s.Conditions, "Programmed")
	}
	if diff := cmp.Diff(map[string]string{
		"web":  "True Accepted, True ResolvedRefs, True Programmed",
		"tls":  "True Accepted, True ResolvedRefs, True Programmed",
		"tcp":  "False UnsupportedProtocol, True ResolvedRefs, False Invalid",
		"far":  "False PortUnavailable, True ResolvedRefs, False Invalid",
		"lost": "True Accepted, False InvalidCertificateRef, False Invalid",
	}, got); diff != "" {
		t.Error(diff)
	}
	if a := says(gw.Status.Conditions, "Accepted"); a != "True ListenersNotValid" {
		t.Errorf("the Gateway is Accepted: %s", a)
	}
	for name, c := range map[string]struct{ host, rule, accepted, resolved string }{
		"good":    {host, `{backendRefs: [{name: cook, port: 80}]}`, "True Accepted", "True ResolvedRefs"},
		"nohost":  {"elsewhere.example", `{backendRefs: [{name: cook, port: 80}]}`, "False NoMatchingListenerHostname", "True ResolvedRefs"},
		"nobody":  {"nobody." + host, `{backendRefs: [{name: nobody, port: 80}]}`, "True Accepted", "False BackendNotFound"},
		"noport":  {"noport." + host, `{backendRefs: [{name: cook, port: 81}]}`, "True Accepted", "False BackendNotFound"},
		"kind":    {"kind." + host, `{backendRefs: [{group: example.com, kind: Cook, name: cook, port: 80}]}`, "True Accepted", "False InvalidKind"},
		"foreign": {"foreign." + host, fmt.Sprintf(`{backendRefs: [{name: cook, namespace: %s, port: 80}]}`, other), "True Accepted", "False RefNotPermitted"},
		"mirror":  {"mirror." + host, `{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: cook, port: 80}}}], backendRefs: [{name: cook, port: 80}]}`, "False UnsupportedValue", "True ResolvedRefs"},
	} {
		l.mustApply(t, ns, httpRoute(name, "door", c.host, c.rule))
		l.route(t, ns, name, c.accepted, c.resolved)
	}
	if a := l.comes(t, "https://"+host+"/", 200, "Name: cook"); a.peer != host {
		t.Errorf("the certificate is %q's", a.peer)
	}
	for _, name := range []string{"nobody", "kind", "foreign"} {
		if a := l.get(t, "http://"+name+"."+host+"/"); a.code != 500 {
			t.Errorf("a route to what isn't there: %s", a)
		}
	}
	l.mustApply(t, other, fmt.Sprintf("apiVersion: %s\nkind: ReferenceGrant\nmetadata: {name: guests}\nspec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: %s}], to: [{group: '', kind: Service}]}\n---\n", strings.Replace(gatewayAPI, "v1", "v1beta1", 1), ns)+
		fmt.Sprintf("apiVersion: %s\nkind: HTTPRoute\nmetadata: {name: outside}\nspec: {parentRefs: [{name: door, namespace: %s}], hostnames: [outside.%s], rules: [{backendRefs: [{name: cook, port: 80}]}]}", gatewayAPI, ns, host))
	l.route(t, ns, "foreign", "True Accepted", "True ResolvedRefs")
	l.comes(t, "http://foreign."+host+"/", 200, "Name: elsewhere")
	l.route(t, other, "outside", "False NotAllowedByListeners", "True ResolvedRefs")
	l.patch(t, gatewayAPI, "Gateway", ns, "door", fmt.Sprintf(`{"spec": {"listeners": [{"name": "web", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"kubernetes.io/metadata.name": %q}}}}}]}}`, other))
	l.route(t, other, "outside", "True Accepted", "True ResolvedRefs")
	l.route(t, ns, "good", "False NotAllowedByListeners", "True ResolvedRefs")
	l.comes(t, "http://outside."+host+"/", 200, "Name: elsewhere")
}

// The CRDs that lessons install are those of the module, byte for byte.
func TestCRDsAreTheModules(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	var want strings.Builder
	for _, kind := range []string{"gatewayclasses", "gateways", "httproutes", "referencegrants"} {
		raw, err := os.ReadFile(filepath.Join(dir, "config/crd/standard/gateway.networking.k8s.io_"+kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		want.WriteString("---\n" + string(raw))
	}
	got, err := fs.ReadFile(lessons.FS, "shared/gateway-api/crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, docs, _ := strings.Cut(string(got), "\n---\n"); "---\n"+docs != want.String() {
		t.Error("shared/gateway-api/crds.yaml differs from the CRDs of sigs.k8s.io/gateway-api in go.mod: make it anew")
	}
	licence, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := fs.ReadFile(lessons.FS, "shared/gateway-api/LICENSE"); err != nil || string(kept) != string(licence) {
		t.Errorf("the licence isn't kept: %v", err)
	}
}
