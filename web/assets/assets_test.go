package assets

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func bundle(t *testing.T) *Bundle {
	t.Helper()
	b, err := load(fstest.MapFS{
		"manifest.json":      {Data: []byte(`{"main.js":"main-0123456789.js"}`)},
		"main-0123456789.js": {Data: []byte(strings.Repeat("let a = 1;\n", 200))},
		"secret.txt":         {Data: []byte("not in the manifest")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestServesHashedNamesForever(t *testing.T) {
	b := bundle(t)
	if got := b.URL("main.js"); got != "/assets/main-0123456789.js" {
		t.Fatalf("URL is %q", got)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", b.URL("main.js"), nil)
	r.Header.Set("Accept-Encoding", "br, gzip;q=0.5")
	b.ServeHTTP(w, r)
	if w.Code != 200 || w.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil || len(body) != 2200 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

func TestServesNothingElse(t *testing.T) {
	b := bundle(t)
	for _, p := range []string{"/assets/", "/assets/secret.txt", "/assets/main.js", "/assets/manifest.json", "/assets/../assets.go"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = p
		b.ServeHTTP(w, r)
		if w.Code != 404 {
			t.Errorf("%s: %d", p, w.Code)
		}
	}
}

func TestWithoutABuild(t *testing.T) {
	b, err := load(fstest.MapFS{".keep": {}})
	if err != nil || b.Built() || b.URL("main.js") != "" {
		t.Errorf("built %v, %v", b, err)
	}
	if _, err := load(fstest.MapFS{"manifest.json": {Data: []byte(`{"main.js":"gone.js"}`)}}); err == nil {
		t.Error("a damaged bundle is accepted")
	}
}
