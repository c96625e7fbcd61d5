package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"kubistro/web"
	"kubistro/web/webtest"
)

// client is a browser without scripts.
type client struct {
	t *testing.T
	s *webtest.Server
	*http.Client
}

func newClient(t *testing.T, s *webtest.Server) *client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, s: s, Client: &http.Client{Jar: jar}}
}

type reply struct {
	*http.Response
	body string
}

// do sends a request; headers are pairs.
func (c *client) do(method, path, body string, headers ...string) reply {
	c.t.Helper()
	r, err := http.NewRequest(method, c.s.URL+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return reply{res, string(b)}
}

// want sends a request, checks its status and decodes its JSON.
func want[T any](c *client, code int, method, path, body string, headers ...string) T {
	c.t.Helper()
	r := c.do(method, path, body, headers...)
	if r.StatusCode != code {
		c.t.Fatalf("%s %s: got %d %s, want %d", method, path, r.StatusCode, r.body, code)
	}
	var v T
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		c.t.Fatalf("%s %s: %v in %q", method, path, err, r.body)
	}
	return v
}

type sessionAnswer struct {
	ID, Course, State, Stage, Since, Driver string
	Capabilities                            []string
}

func (c *client) open() string {
	c.t.Helper()
	return want[sessionAnswer](c, 201, "POST", "/api/v1/sessions", `{"course":"restaurant"}`).ID
}

func TestSessionIsOpenedOnce(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	id := c.open()
	again := want[sessionAnswer](c, 200, "POST", "/api/v1/sessions", `{"course":"restaurant"}`)
	if again.ID != id {
		t.Errorf("second open gave %q, want the running %q", again.ID, id)
	}
	got := want[sessionAnswer](c, 200, "GET", "/api/v1/sessions/"+id, "")
	if got.State != "ready" || got.Driver != "embedded" || got.Since == "" || len(got.Capabilities) == 0 {
		t.Errorf("session is %+v", got)
	}
	list := want[struct{ Sessions []sessionAnswer }](c, 200, "GET", "/api/v1/sessions", "")
	if len(list.Sessions) != 1 || list.Sessions[0].ID != id {
		t.Errorf("list is %+v", list)
	}
}

func TestAnotherLearnersSessionIsNotFound(t *testing.T) {
	s := webtest.NewServer(t, nil)
	id := newClient(t, s).open()
	stranger := newClient(t, s)
	base := "/api/v1/sessions/" + id
	for _, r := range []struct{ method, path, body string }{
		{"GET", base, ""}, {"DELETE", base, ""}, {"POST", base + "/reset", ""}, {"POST", base + "/wake", ""}, {"POST", base + "/retry", ""},
		{"POST", base + "/touch", ""}, {"GET", base + "/operations/o1", ""}, {"GET", base + "/kubeconfig", ""}, {"DELETE", base + "/kubeconfig", ""},
		{"GET", base + "/record", ""}, {"GET", base + "/exercises", ""}, {"POST", base + "/exercises/bare-pod/check", ""},
		{"POST", base + "/exercises/bare-pod/solve", `{"solution":0}`}, {"POST", base + "/exercises/bare-pod/reset", ""},
		{"PUT", base + "/exercises/bare-pod/answers/why", `{"text":"x"}`}, {"GET", base + "/files", ""}, {"GET", base + "/files/a.yaml", ""},
		{"PUT", base + "/files/a.yaml", "a"}, {"DELETE", base + "/files/a.yaml", ""}, {"GET", base + "/edits", ""}, {"POST", base + "/edits/e1", `{"saved":true}`},
		{"GET", base + "/kitchens", ""}, {"POST", base + "/kitchens", `{"name":"annex"}`}, {"PUT", base + "/kitchens/kitchen-1", `{"power":false}`},
		{"DELETE", base + "/kitchens/kitchen-1", ""}, {"GET", base + "/loops", ""}, {"PUT", base + "/loops", `{"name":"kube-scheduler","home":true}`},
		{"GET", base + "/clock", ""}, {"PUT", base + "/clock", `{"speed":10}`},
		{"GET", base + "/terminals", ""}, {"DELETE", base + "/terminals/main", ""}, {"GET", base + "/events", ""}, {"GET", base + "/terminal", ""},
	} {
		if got := stranger.do(r.method, r.path, r.body); got.StatusCode != 404 {
			t.Errorf("%s %s by a stranger: %d %s", r.method, r.path, got.StatusCode, got.body)
		}
	}
}

func TestLearnerCookie(t *testing.T) {
	for name, tc := range map[string]struct {
		ancestors []string
		sameSite  http.SameSite
		secure    bool
	}{
		"alone":        {nil, http.SameSiteLaxMode, false},
		"in an iframe": {[]string{"https://school.example"}, http.SameSiteNoneMode, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := webtest.NewServer(t, func(c *web.Config) { c.FrameAncestors = tc.ancestors })
			r := newClient(t, s).do("GET", "/api/v1/courses", "")
			if len(r.Cookies()) != 1 {
				t.Fatalf("cookies: %v", r.Cookies())
			}
			k := r.Cookies()[0]
			if k.Name != "kubistro_learner" || !k.HttpOnly || k.SameSite != tc.sameSite || k.Secure != tc.secure || k.Partitioned != tc.secure {
				t.Errorf("cookie is %v", k)
			}
		})
	}
}

func TestForgedCookieBecomesANewLearner(t *testing.T) {
	s := webtest.NewServer(t, nil)
	for _, value := range []string{"", "x", "../../etc/passwd", strings.Repeat("A", 26), strings.Repeat("a", 26), strings.Repeat("a", 27)} {
		r := newClient(t, s).do("GET", "/api/v1/courses", "", "Cookie", "kubistro_learner="+value)
		if len(r.Cookies()) != 1 || r.Cookies()[0].Value == value {
			t.Errorf("cookie %q was taken as it is", value)
		}
	}
}

func TestOtherSitesCannotAct(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	id := c.open()
	own := strings.TrimPrefix(s.URL, "http://")
	for name, tc := range map[string]struct {
		headers []string
		code    int
	}{
		"no origin":              {nil, 204},
		"same origin":            {[]string{"Origin", "http://" + own, "Sec-Fetch-Site", "same-origin"}, 204},
		"other origin":           {[]string{"Origin", "https://evil.example"}, 403},
		"null origin":            {[]string{"Origin", "null"}, 403},
		"cross-site fetch":       {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"sibling site":           {[]string{"Sec-Fetch-Site", "same-site", "Origin", "http://" + own}, 403},
		"origin with our prefix": {[]string{"Origin", "http://" + own + ".evil.example"}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			if r := c.do("POST", "/api/v1/sessions/"+id+"/touch", "", tc.headers...); r.StatusCode != tc.code {
				t.Errorf("got %d %s, want %d", r.StatusCode, r.body, tc.code)
			}
		})
	}
	if r := c.do("GET", "/api/v1/sessions/"+id+"/terminal", "", "Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Origin", "https://evil.example"); r.StatusCode != 403 {
		t.Errorf("WebSocket of another site: %d", r.StatusCode)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	s := webtest.NewServer(t, nil)
	for _, path := range []string{"/", "/courses/restaurant", "/courses/restaurant/1", "/nothing", "/api/v1/courses", "/api/v1/nothing", "/healthz"} {
		r := newClient(t, s).do("GET", path, "")
		csp := r.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: policy %q lacks %q", path, csp, part)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
			t.Errorf("%s: loose policy %q", path, csp)
		}
		for k, v := range map[string]string{"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY"} {
			if r.Header.Get(k) != v {
				t.Errorf("%s: %s is %q", path, k, r.Header.Get(k))
			}
		}
	}
}

func TestNonceIsFreshAndInThePage(t *testing.T) {
	s := webtest.NewServer(t, nil)
	seen := map[string]bool{}
	for range 3 {
		r := newClient(t, s).do("GET", "/", "")
		_, after, _ := strings.Cut(r.Header.Get("Content-Security-Policy"), "'nonce-")
		nonce, _, _ := strings.Cut(after, "'")
		if len(nonce) < 20 || seen[nonce] {
			t.Fatalf("nonce %q", nonce)
		}
		seen[nonce] = true
		if got := attribute(t, r.body, "meta", "csp-nonce"); got != nonce {
			t.Errorf("the page has nonce %q, the policy %q", got, nonce)
		}
	}
}

// attribute finds the content of <meta name=...>.
func attribute(t *testing.T, page, tag, name string) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != tag {
			continue
		}
		found := map[string]string{}
		for _, a := range n.Attr {
			found[a.Key] = a.Val
		}
		if found["name"] == name {
			return found["content"]
		}
	}
	return ""
}

func TestPagesHaveNoInlineScriptOrStyle(t *testing.T) {
	s := webtest.NewServer(t, nil)
	for _, path := range []string{"/", "/courses/restaurant", "/courses/restaurant/1", "/nothing"} {
		doc, err := html.Parse(strings.NewReader(newClient(t, s).do("GET", path, "").body))
		if err != nil {
			t.Fatal(err)
		}
		for n := range doc.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			if n.Data == "style" || n.Data == "script" && n.FirstChild != nil {
				t.Errorf("%s: inline <%s>", path, n.Data)
			}
			for _, a := range n.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
					t.Errorf("%s: <%s %s=%q>", path, n.Data, a.Key, a.Val)
				}
				if (a.Key == "src" || a.Key == "href") && strings.Contains(a.Val, "//") {
					t.Errorf("%s: <%s> points elsewhere: %q", path, n.Data, a.Val)
				}
			}
		}
	}
}

func TestLanguage(t *testing.T) {
	s := webtest.NewServer(t, nil)
	for name, tc := range map[string]struct {
		path   string
		accept string
		lang   string
	}{
		"nothing said":             {"/", "", "zh-TW"},
		"browser in English":       {"/", "en-GB,en;q=0.9", "en"},
		"browser in Chinese":       {"/", "zh-Hant-TW", "zh-TW"},
		"weights":                  {"/", "en;q=0.3, zh;q=0.8", "zh-TW"},
		"a language we don't have": {"/", "de, fr;q=0.9, en;q=0.1", "en"},
		"query wins":               {"/?lang=en", "zh-TW", "en"},
		"nonsense in the query":    {"/?lang=%3Cscript%3E", "en", "en"},
		"nonsense weights":         {"/", "en;q=lots, zh;q=0.1", "zh-TW"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newClient(t, s).do("GET", tc.path, "", "Accept-Language", tc.accept)
			if !strings.Contains(r.body, `<html lang="`+tc.lang+`"`) {
				t.Errorf("page isn't in %s: %.120s", tc.lang, r.body)
			}
		})
	}
	t.Run("the choice is kept", func(t *testing.T) {
		c := newClient(t, s)
		c.do("GET", "/?lang=en", "")
		if r := c.do("GET", "/nothing", "", "Accept-Language", "zh-TW"); !strings.Contains(r.body, "no such table") {
			t.Errorf("404 page isn't English: %s", r.body)
		}
	})
}

func TestErrorsAreInTheReadersLanguage(t *testing.T) {
	s := webtest.NewServer(t, nil)
	type answer struct {
		Error struct{ Code, Message string }
	}
	en := want[answer](newClient(t, s), 404, "GET", "/api/v1/sessions/none", "", "Accept-Language", "en")
	zh := want[answer](newClient(t, s), 404, "GET", "/api/v1/sessions/none?lang=zh-TW", "", "Accept-Language", "en")
	if en.Error.Code != "not_found" || en.Error.Message != "There is no such session." || zh.Error.Message != "沒有這個工作階段。" {
		t.Errorf("got %+v and %+v", en, zh)
	}
}
