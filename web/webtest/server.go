package webtest

import (
	"log/slog"
	"net/http/httptest"
	"testing"

	"kubistro/web"
)

// Server is a running web server on doubles.
type Server struct {
	*httptest.Server
	Web   *web.Server
	Lab   *Lab
	Store *Store
}

// NewServer starts a server on loopback that ends with the test; change may alter its configuration.
func NewServer(t testing.TB, change func(*web.Config)) *Server {
	t.Helper()
	l := NewLab()
	s := &Server{Lab: l, Store: NewStore(l)}
	c := web.Config{Lab: l, Store: s.Store, Library: Library(), Version: "test", Capabilities: capabilities(), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&c)
	}
	w, err := web.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Web = w
	s.Server = httptest.NewServer(w)
	t.Cleanup(func() {
		w.CloseStreams()
		s.Server.Close()
	})
	return s
}
