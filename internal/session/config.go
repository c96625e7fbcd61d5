package session

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kubistro/internal/cluster"
	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/store"
)

// Limits of one learner.
const (
	maxSessions  = 2 // at once, one per course
	maxTerminals = 6 // tabs of a session
	maxStreams   = 16
)

// Config is what a Service needs.
type Config struct {
	Manager *cluster.Manager
	Store   *store.Store
	Library *course.Library
	// Dir is the data folder; sessions live in Dir/sessions/ID.
	Dir string
	// Program and Args start a terminal's child (see terminal.Config).
	Program string
	Args    []string
	// ServingCA is the server's own certificate (PEM), for kubeconfigs.
	ServingCA []byte
	// TokenLifetime is how long a kubeconfig works; 0 means 12 hours.
	TokenLifetime time.Duration
	// KeepAsleep is how long a session stays in memory that nobody asks for while its
	// cluster sleeps; 0 means a minute.
	KeepAsleep time.Duration
	// RecordSystem keeps the cluster's own namespaces in the record.
	RecordSystem bool
	Clock        clock.WithTicker      // nil: the real one
	Log          *slog.Logger          // nil: discarded
	Metrics      prometheus.Registerer // nil: none
}

// Service is all live labs of a server. It implements API.
type Service struct {
	Config

	metrics *metrics
	proxy   *proxyLimits

	mu      sync.Mutex
	labs    map[string]*live
	opening map[lab.LearnerID]*turn
	closed  bool
	leaving sync.WaitGroup // sessions that leave memory
}

// New makes a Service; nothing runs before Start.
func New(c Config) (*Service, error) {
	if c.Manager == nil || c.Store == nil || c.Library == nil || c.Dir == "" {
		return nil, errors.New("session: Manager, Store, Library and Dir are needed")
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.KeepAsleep == 0 {
		c.KeepAsleep = keepAsleep
	}
	if c.TokenLifetime == 0 {
		c.TokenLifetime = 12 * time.Hour
	}
	s := &Service{Config: c, labs: map[string]*live{}, opening: map[lab.LearnerID]*turn{}, proxy: newProxyLimits()}
	m, err := newMetrics(c.Metrics, s)
	if err != nil {
		return nil, err
	}
	s.metrics = m
	if err := os.MkdirAll(filepath.Join(c.Dir, "sessions"), 0o700); err != nil {
		return nil, fmt.Errorf("session: data folder: %w", err)
	}
	return s, nil
}

// Start recovers what a former server process left: the clusters of running
// sessions are kept (adopted, or asleep), all else is cleared away. Sessions
// themselves are opened when their learner comes back.
func (s *Service) Start(ctx context.Context) error {
	running, err := s.Store.RunningSessions(ctx)
	if err != nil {
		return fmt.Errorf("session: running sessions: %w", err)
	}
	var known []string
	homes := map[string]bool{}
	for _, v := range running {
		homes[v.ID] = true
		if v.Cluster != "" {
			known = append(known, v.Cluster)
		}
	}
	if err := s.Manager.Start(ctx, known); err != nil {
		return fmt.Errorf("session: recover clusters: %w", err)
	}
	return s.clearFolders(homes)
}

// clearFolders removes the folders of sessions that ended.
func (s *Service) clearFolders(keep map[string]bool) error {
	entries, err := os.ReadDir(filepath.Join(s.Dir, "sessions"))
	if err != nil {
		return fmt.Errorf("session: data folder: %w", err)
	}
	for _, e := range entries {
		if keep[e.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.Dir, "sessions", e.Name())); err != nil {
			s.Log.Warn("folder of an ended session not removed", "session", e.Name(), "error", err)
		}
	}
	return nil
}

// Close ends terminals, watches and streams of all sessions, keeps everything
// that a later server needs, and waits. The Manager is the caller's to close, afterwards.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	var all []*live
	for _, l := range s.labs {
		if l.leaving == nil {
			all = append(all, l)
		}
	}
	s.labs = map[string]*live{}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		for _, l := range all {
			wg.Go(l.close)
		}
		wg.Wait()
		s.leaving.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("session: close: %w", ctx.Err())
	}
}

// newID is 80 random bits in lower-case base32.
func newID() string {
	var b [10]byte
	rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

var (
	errNotFound = lab.Fail(lab.CodeNotFound, "找不到這個練習環境；它可能已經結束。", "There is no such session; it may have ended.")
	errClosing  = lab.Fail(lab.CodeUnavailable, "伺服器正在關閉，請稍候再試。", "The server is shutting down. Try again in a moment.")
)
