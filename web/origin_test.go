package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"kubistro/web"
	"kubistro/web/webtest"
)

// TestForeignHostNames: a site whose name was made to resolve to loopback gets nothing.
func TestForeignHostNames(t *testing.T) {
	s := webtest.NewServer(t, func(c *web.Config) { c.AllowedHosts = []string{"localhost", "127.0.0.1", "::1"} })
	for _, tt := range []struct {
		host string
		want int
	}{
		{"localhost:8080", 200}, {"LOCALHOST", 200}, {"127.0.0.1:1", 200}, {"[::1]:8080", 200}, {"localhost.", 200},
		{"evil.example:8080", 403}, {"127.0.0.1.evil.example", 403}, {"localhost@evil.example", 403}, {"", 403}, {"[::1", 403}, {"0.0.0.0:8080", 403},
	} {
		for _, path := range []string{"/", "/healthz", "/metrics", "/k8s/x/api"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = tt.host
			w := httptest.NewRecorder()
			s.Web.ServeHTTP(w, r)
			if (w.Code == 403) != (tt.want == 403) {
				t.Errorf("%s of host %q: %d, want %d", path, tt.host, w.Code, tt.want)
			}
		}
	}
}

func TestAnyHostNameWithoutAList(t *testing.T) {
	s := webtest.NewServer(t, nil)
	r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
	r.Host = "kubistro.example.org"
	w := httptest.NewRecorder()
	if s.Web.ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
}
