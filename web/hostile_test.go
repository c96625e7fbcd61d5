package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"kubistro/web"
	"kubistro/web/webtest"
)

func failing(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// TestEveryRouteAgainstHostileInput sends bad names, queries and bodies to every
// route of the table: none may crash, answer 500, or show a part of the server.
func TestEveryRouteAgainstHostileInput(t *testing.T) {
	generous := func(c *web.Config) {
		c.Limits = web.DefaultLimits()
		c.Limits.RequestBurst, c.Limits.HeavyBurst, c.Limits.NewBurst = 100_000, 100_000, 100_000
	}
	s := webtest.NewServer(t, generous)
	owner := newClient(t, s)
	id := owner.open()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	cookies := owner.Jar.Cookies(u)
	names := []string{"", id, "..", "%2e%2e%2f%2e%2e", "%00", "%ff%fe", "<script>alert(1)</script>", strings.Repeat("a", 5000), "1'; DROP TABLE learners;--", "{session}", "%25%32%65", "🍳", "a%0d%0aSet-Cookie:x=y"}
	bodies := []string{"", "null", "[]", "{", `{"course":1}`, `{"course":"restaurant","x":1}`, `{"answer":null}`, `{"text":"\u0000"}`, `{"solution":-1}`, `{"solution":99999999999999999999}`, strings.Repeat("[", 20_000), strings.Repeat("9", 100_000)}
	tried := 0
	for _, route := range s.Web.Routes() {
		for i, name := range names {
			path := fill(route.Pattern, name)
			for _, target := range []string{path, path + "?after=18446744073709551616&before=-1&limit=x&tab=../x&level=%00&lang=xx"} {
				body := bodies[(i+tried)%len(bodies)]
				w := serve(s.Web, route.Method, target, body, cookies)
				tried++
				if w == nil {
					continue // not even a request
				}
				if w.Code >= 500 {
					t.Errorf("%s %.100q with %.40q: %d %.200s", route.Method, target, body, w.Code, w.Body)
				}
				for _, leak := range []string{"goroutine ", ".go:", "panic", "<script>alert"} {
					if strings.Contains(w.Body.String(), leak) {
						t.Errorf("%s %.100q shows %q: %.300s", route.Method, target, leak, w.Body)
					}
				}
				if w.Code >= 400 && strings.HasPrefix(path, "/api/") && route.Method != http.MethodHead {
					var e struct {
						Error struct{ Code, Message string }
					}
					if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error.Code == "" || e.Error.Message == "" {
						t.Errorf("%s %.100q: %d without a message: %.200s", route.Method, target, w.Code, w.Body)
					}
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d requests were tried", tried)
	}
}

// fill puts a name into every parameter of a pattern.
func fill(pattern, name string) string {
	parts := strings.Split(pattern, "/")
	for i, p := range parts {
		if p == "*" || strings.HasPrefix(p, "{") {
			parts[i] = name
		}
	}
	return strings.Join(parts, "/")
}

// serve answers one request; nil when its address can't be parsed at all. A
// stream ends because its context does.
func serve(h http.Handler, method, target, body string, cookies []*http.Cookie) *httptest.ResponseRecorder {
	if _, err := url.ParseRequestURI(strings.ReplaceAll(target, " ", "%20")); err != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, method, strings.ReplaceAll(target, " ", "%20"), strings.NewReader(body))
	if err != nil {
		cancel()
		return nil
	}
	r.RemoteAddr, r.Host = "192.0.2.1:4711", "kubistro.example"
	for _, c := range cookies {
		r.AddCookie(c)
	}
	if strings.HasSuffix(r.URL.Path, "/events") {
		cancel()
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	cancel()
	return w
}

func TestBodiesOfAnySizeAreBounded(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	id := c.open()
	huge := strings.Repeat("x", 5<<20)
	for _, r := range []struct{ method, path string }{
		{"POST", "/api/v1/sessions"}, {"PUT", "/api/v1/sessions/" + id + "/files/a"}, {"PUT", "/api/v1/preferences"},
		{"PUT", "/api/v1/courses/restaurant/levels/1/quiz/new-pod"}, {"POST", "/api/v1/sessions/" + id + "/exercises/bare-pod/solve"},
	} {
		if got := c.do(r.method, r.path, huge); got.StatusCode != 413 {
			t.Errorf("%s %s with 5 MB: %d %s", r.method, r.path, got.StatusCode, got.body)
		}
	}
}

func TestWrongMethods(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	for _, r := range []struct{ method, path string }{{"PATCH", "/api/v1/sessions"}, {"POST", "/"}, {"DELETE", "/api/v1/courses"}, {"BREW", "/courses/restaurant"}} {
		if got := c.do(r.method, r.path, ""); got.StatusCode != 405 {
			t.Errorf("%s %s: %d", r.method, r.path, got.StatusCode)
		}
	}
	if got := c.do("GET", "/metrics", ""); strings.Contains(got.body, "BREW") {
		t.Error("invented methods become metrics")
	}
}
