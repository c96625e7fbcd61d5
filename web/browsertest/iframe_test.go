package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// frameServer serves a page that shows another one in an iframe.
func frameServer(t *testing.T, address string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path != "/" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		fmt.Fprintf(w, `<!DOCTYPE html><title>school</title><iframe src=%q width="1200" height="700"></iframe>`, address)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// waitFor waits until a condition outside of the browser holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
