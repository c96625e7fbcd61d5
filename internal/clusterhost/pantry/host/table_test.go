package host

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func TestHostMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, host string
		one, want     bool
	}{
		{"", "any", false, true}, {"a.io", "a.io", false, true}, {"a.io", "b.a.io", false, false},
		{"*.a.io", "b.a.io", true, true}, {"*.a.io", "a.io", true, false}, {"*.a.io", "c.b.a.io", true, false}, {"*.a.io", "c.b.a.io", false, true},
		{"*.a.io", ".a.io", false, false},
	} {
		if got := hostMatches(c.pattern, c.host, c.one); got != c.want {
			t.Errorf("hostMatches(%q, %q, %v) = %v", c.pattern, c.host, c.one, got)
		}
	}
}

func TestIntersect(t *testing.T) {
	for _, c := range []struct {
		listener, route, want string
		ok                    bool
	}{
		{"", "", "", true}, {"", "a.io", "a.io", true}, {"a.io", "", "a.io", true}, {"a.io", "b.io", "", false},
		{"*.a.io", "b.a.io", "b.a.io", true}, {"*.a.io", "a.io", "", false}, {"b.a.io", "*.a.io", "b.a.io", true},
		{"*.a.io", "*.b.a.io", "*.b.a.io", true}, {"*.b.a.io", "*.a.io", "*.b.a.io", true}, {"*.a.io", "*.a.io", "*.a.io", true},
	} {
		if got, ok := intersect(c.listener, c.route); got != c.want || ok != c.ok {
			t.Errorf("intersect(%q, %q) = %q, %v", c.listener, c.route, got, ok)
		}
	}
}

// The order that HTTPRoute's documentation asks for, from best to worst.
func TestGatewayPrecedence(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	one := []valueMatch{{name: "a", value: "1"}}
	rules := []*rule{
		{name: "listener", match: match{listener: "a.io", host: "a.io"}},
		{name: "exact host", match: match{host: "b.a.io", kind: pathPrefix, path: "/"}},
		{name: "wildcard", match: match{host: "*.a.io", kind: pathExact, path: "/long/path"}},
		{name: "exact path", match: match{kind: pathExact, path: "/a"}},
		{name: "long prefix", match: match{kind: pathPrefix, path: "/abc"}},
		{name: "method", match: match{kind: pathPrefix, path: "/", method: "GET"}},
		{name: "headers", match: match{kind: pathPrefix, path: "/", headers: one}},
		{name: "queries", match: match{kind: pathPrefix, path: "/", queries: one}},
		{name: "older", match: match{kind: pathPrefix, path: "/"}, created: early, object: "z/z"},
		{name: "by name", match: match{kind: pathPrefix, path: "/"}, created: late, object: "a/a"},
		{name: "first rule", match: match{kind: pathPrefix, path: "/"}, created: late, object: "b/b", index: 0},
		{name: "second rule", match: match{kind: pathPrefix, path: "/"}, created: late, object: "b/b", index: 1},
	}
	var want, got []string
	for _, r := range rules {
		r.gateway = true
		if r.created.IsZero() {
			r.created = early
		}
		want = append(want, r.name)
	}
	shuffled := slices.Clone(rules)
	slices.Reverse(shuffled)
	cfg := &config{entries: map[string]*table{"web": {plain: shuffled}}}
	cfg.order()
	for _, r := range cfg.entries["web"].plain {
		got = append(got, r.name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMatchDetails(t *testing.T) {
	exact, re := gatewayv1.HeaderMatchExact, gatewayv1.HeaderMatchRegularExpression
	qre := gatewayv1.QueryParamMatchRegularExpression
	pathRE, value, method := gatewayv1.PathMatchRegularExpression, "/v[0-9]+/.*", gatewayv1.HTTPMethodPost
	m, err := matchOf(gatewayv1.HTTPRouteMatch{
		Path: &gatewayv1.HTTPPathMatch{Type: &pathRE, Value: &value}, Method: &method,
		Headers:     []gatewayv1.HTTPHeaderMatch{{Type: &exact, Name: "env", Value: "canary"}, {Type: &re, Name: "n", Value: "[0-9]+"}},
		QueryParams: []gatewayv1.HTTPQueryParamMatch{{Name: "q", Value: "1"}, {Type: &qre, Name: "r", Value: "a|b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	try := func(method, url string, headers ...string) bool {
		r := httptest.NewRequest(method, url, nil)
		for _, h := range headers {
			k, v, _ := strings.Cut(h, ": ")
			r.Header.Set(k, v)
		}
		return m.matches(r, hostOnly(r.Host))
	}
	if !try("POST", "/v1/x?q=1&r=b", "ENV: canary", "N: 42") {
		t.Error("a request that fits doesn't match")
	}
	for _, c := range [][]string{
		{"GET", "/v1/x?q=1&r=b", "ENV: canary", "N: 42"}, {"POST", "/x/v1/x?q=1&r=b", "ENV: canary", "N: 42"}, {"POST", "/v1/x?q=2&r=b", "ENV: canary", "N: 42"},
		{"POST", "/v1/x?q=1&r=ab", "ENV: canary", "N: 42"}, {"POST", "/v1/x?q=1&r=b", "N: 42"}, {"POST", "/v1/x?q=1&r=b", "ENV: canary", "N: 42x"},
	} {
		if try(c[0], c[1], c[2:]...) {
			t.Errorf("%q matches", c)
		}
	}
	if _, err := matchOf(gatewayv1.HTTPRouteMatch{Headers: []gatewayv1.HTTPHeaderMatch{{Type: &re, Name: "n", Value: "("}}}); err == nil {
		t.Error("a broken expression is accepted")
	}
}

func TestWeights(t *testing.T) {
	a := &action{backends: []*backend{{weight: 9}, {weight: 1}, {weight: 0}}}
	n := map[*backend]int{}
	for range 100 {
		n[a.choose()]++
	}
	if n[a.backends[0]] != 90 || n[a.backends[1]] != 10 {
		t.Errorf("of 100 requests %d and %d, want 90 and 10", n[a.backends[0]], n[a.backends[1]])
	}
	if b := (&action{backends: []*backend{{weight: 0}}}).choose(); b != nil {
		t.Error("a backend of weight 0 is chosen")
	}
}

func TestRedirectLocation(t *testing.T) {
	prefix := func(s string) *pathChange { return &pathChange{replacement: s} }
	for _, c := range []struct {
		url    string
		secure bool
		d      redirect
		match  string
		want   string
	}{
		{"http://a.io/x?y=1", false, redirect{scheme: "https"}, "/", "https://a.io/x?y=1"},
		{"http://a.io:8080/x", false, redirect{scheme: "https"}, "/", "https://a.io/x"},
		{"http://a.io:8080/x", false, redirect{host: "b.io"}, "/", "http://b.io:8080/x"},
		{"http://a.io/x", false, redirect{port: 8443, scheme: "https"}, "/", "https://a.io:8443/x"},
		{"https://a.io/x", true, redirect{port: 443}, "/", "https://a.io/x"},
		{"http://a.io/old/x/y", false, redirect{path: prefix("/new")}, "/old", "http://a.io/new/x/y"},
		{"http://a.io/old", false, redirect{path: prefix("/")}, "/old", "http://a.io/"},
		{"http://a.io/old/x", false, redirect{path: prefix("/")}, "/old/", "http://a.io/x"},
		{"http://a.io/old/x", false, redirect{path: &pathChange{full: true, replacement: "/all"}}, "/old", "http://a.io/all"},
	} {
		r := httptest.NewRequest(http.MethodGet, c.url, nil)
		if got := c.d.location(r, c.secure, c.match); got != c.want {
			t.Errorf("%s %+v: %s, want %s", c.url, c.d, got, c.want)
		}
	}
}

func TestFlags(t *testing.T) {
	var out bytes.Buffer
	o, code, done := parse([]string{
		"--entryPoints.web.address=:8000/tcp", "--entrypoints.websecure.address", ":8443", "--entryPoints.websecure.http.tls", "--entryPoints.dns.address=:53/udp",
		"--providers.kubernetesIngress.ingressClass=traefik", "--providers.kubernetesgateway", "--log.level=DEBUG", "--accesslog", "--ping",
		"--providers.providersThrottleDuration=500ms", "--api.insecure=true", "--certificatesresolvers.le.acme.email=a@b.c",
	}, &out)
	if done {
		t.Fatalf("parse ends with %d: %s", code, &out)
	}
	if !o.ingress || !o.gateway || o.ingressClass != "traefik" || o.logLevel != levelDebug || !o.accessLog || o.throttle != 500*time.Millisecond {
		t.Errorf("options: %+v", o)
	}
	want := map[string]string{"web": ":8000", "websecure": ":8443", "traefik": ":8080"}
	for name, address := range want {
		if e := o.entryPoints[name]; e == nil || e.address != address || e.tls != (name == "websecure") {
			t.Errorf("entry point %s: %+v", name, e)
		}
	}
	if len(o.entryPoints) != len(want) {
		t.Errorf("entry points: %v", o.entryPoints)
	}
	if diff := cmp.Diff([]string{"--entryPoints.dns.address=:53/udp", "--certificatesresolvers.le.acme.email=a@b.c"}, o.unknown); diff != "" {
		t.Error(diff)
	}
	if _, code, done := parse([]string{"--ping=perhaps"}, &out); !done || code != 1 || !strings.Contains(out.String(), "command traefik error:") {
		t.Errorf("a wrong value: %d %v %s", code, done, &out)
	}
}

func TestConditionsKeepTheirTime(t *testing.T) {
	start, later := time.Unix(1000, 0), time.Unix(2000, 0)
	first := newConditions(start, 1, nil)
	first.set("Accepted", true, "Accepted", "")
	first.set("Programmed", false, "Pending", "")
	second := newConditions(later, 2, first.list())
	second.set("Accepted", true, "ListenersNotValid", "some")
	second.set("Programmed", true, "Programmed", "")
	want := []metav1.Condition{
		{Type: "Accepted", Status: "True", Reason: "ListenersNotValid", Message: "some", ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(start.UTC())},
		{Type: "Programmed", Status: "True", Reason: "Programmed", ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(later.UTC())},
	}
	if diff := cmp.Diff(want, second.list()); diff != "" {
		t.Error(diff)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{"/a/../b": "/b", "/a//b/": "/a/b/", "/../../x": "/x", "/.well-known/x": "/.well-known/x", "/a/.": "/a", "/": "/"} {
		r := httptest.NewRequest(http.MethodGet, "http://a.io/", nil)
		r.URL.Path = in
		if clean(r); r.URL.Path != want {
			t.Errorf("clean(%q) = %q, want %q", in, r.URL.Path, want)
		}
	}
}
