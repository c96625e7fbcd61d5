package web_test

import (
	"os"
	"strings"
	"testing"

	"kubistro/web/webtest"
)

// TestDocumentationNamesEveryRoute keeps docs/api.md complete.
func TestDocumentationNamesEveryRoute(t *testing.T) {
	body, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(body)
	for _, r := range webtest.NewServer(t, nil).Web.Routes() {
		if !strings.HasPrefix(r.Pattern, "/api/v1/") {
			continue
		}
		path := strings.TrimPrefix(r.Pattern, "/api/v1")
		last := path[strings.LastIndex(path, "/"):]
		if strings.HasPrefix(last, "/{") || last == "/*" {
			path = path[:len(path)-len(last)]
			last = path[strings.LastIndex(path, "/"):]
		}
		if !strings.Contains(doc, last) || !strings.Contains(doc, r.Method) {
			t.Errorf("docs/api.md doesn't tell of %s %s", r.Method, r.Pattern)
		}
	}
}
