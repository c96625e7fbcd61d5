// Package web serves Kubistro's pages, its JSON API, its WebSockets and the
// assets of the page. It owns routes, middleware and framing. It never talks to
// a cluster or a database itself: what it needs of them are the small interfaces
// in lab.go and store.go.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kubistro/internal/course"
	"kubistro/web/assets"
	"kubistro/web/ui"
)

// Config is what the server is made of.
type Config struct {
	Lab     Lab
	Store   Store
	Library *course.Library
	// Capabilities are those of the driver: a level that needs another one is refused.
	Capabilities []string
	// FrameAncestors are the origins that may show the page in an iframe (CSP
	// source expressions); empty: none. With any, the learner's cookie becomes
	// SameSite=None and Partitioned, which browsers accept over https (and on localhost).
	FrameAncestors []string
	// PublicURL is the address that learners use (https://kubistro.example.org);
	// empty: taken from each request.
	PublicURL string
	// AllowedHosts are the host names (without port) by which the server may be
	// called; nil: any. A server on loopback needs them: another site's name can be
	// made to resolve to it (DNS rebinding), and then that site's pages have our origin.
	AllowedHosts []string
	// Ready reports whether the server can serve learners; nil: as soon as it runs.
	Ready func(context.Context) error
	// Registry receives the server's metrics and is served at /metrics; nil: a new one.
	Registry *prometheus.Registry
	Log      *slog.Logger
	Version  string
	// Preview is for a server of an author: pages reload with the courses and show their faults; nil otherwise.
	Preview *Preview
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Limits against one learner taking everything; the zero value means DefaultLimits.
	Limits Limits
}

// Server answers all requests. It is an http.Handler.
type Server struct {
	Config

	router  http.Handler
	texts   *ui.Texts
	assets  *assets.Bundle
	limiter *limiter
	seen    *seenLearners
	metrics *metrics
	closing context.Context
	close   context.CancelFunc
}

// New makes the server. It fails when the configuration is incomplete; a
// missing bundle isn't a failure: pages then say how to build it.
func New(c Config) (*Server, error) {
	if c.Lab == nil || c.Store == nil || c.Library == nil {
		return nil, errors.New("web: Lab, Store and Library are needed")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Limits == (Limits{}) {
		c.Limits = DefaultLimits()
	}
	texts, err := ui.LoadTexts()
	if err != nil {
		return nil, err
	}
	bundle, err := assets.Load()
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(c.Registry)
	if err != nil {
		return nil, err
	}
	s := &Server{Config: c, texts: texts, assets: bundle, metrics: m}
	s.limiter = newLimiter(c.Limits, c.Now)
	s.seen = newSeenLearners(c.Now)
	s.closing, s.close = context.WithCancel(context.Background())
	s.router = s.routes()
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.router.ServeHTTP(w, r) }

// CloseStreams ends all WebSockets and event streams, so that http.Server.Shutdown
// needn't wait for open pages; they reconnect by themselves.
func (s *Server) CloseStreams() { s.close() }
