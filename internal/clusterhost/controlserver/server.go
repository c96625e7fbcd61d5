// Package controlserver serves the control API of a cluster host (package
// controlapi) over a unix socket. It knows the cluster by two small interfaces
// only and never touches Kubernetes itself.
package controlserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// Cluster is what the control API asks of the cluster. All methods may be called
// at any time from the first moment of the start, concurrently.
type Cluster interface {
	Status() controlapi.Status
	// Access is how to reach the API server; false until it answers.
	Access() (controlapi.Access, bool)
	Usage() (controlapi.Usage, error)
	Power(controlapi.PowerRequest) error
	// Shutdown begins the graceful stop and returns at once.
	Shutdown()
}

// Streams are the cluster's long-lived connections.
type Streams interface {
	// Audit returns the kept entries with numbers above after, at most max of
	// them, and a channel that is closed when there are more.
	Audit(after uint64, max int) ([]lab.AuditEntry, <-chan struct{})
	// Dial opens a connection from the street into the cluster's network.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// Server serves the control API.
type Server struct {
	cluster Cluster
	streams Streams
	clock   clock.Clock
	log     *slog.Logger
	http    *http.Server
	mux     *http.ServeMux
	stop    context.CancelFunc
	done    context.Context

	mu     sync.Mutex
	active int
	last   time.Time // when the last request ended
	conns  sync.WaitGroup
}

// New makes a server; it serves nothing yet.
func New(c Cluster, s Streams, clk clock.Clock, log *slog.Logger) *Server {
	srv := &Server{cluster: c, streams: s, clock: clk, log: log, last: clk.Now()}
	srv.done, srv.stop = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	srv.mux = mux
	mux.HandleFunc("GET "+controlapi.PathStatus, srv.status)
	mux.HandleFunc("GET "+controlapi.PathAccess, srv.access)
	mux.HandleFunc("GET "+controlapi.PathUsage, srv.usage)
	mux.HandleFunc("GET "+controlapi.PathAudit, srv.audit)
	mux.HandleFunc("GET "+controlapi.PathDial, srv.dial)
	mux.HandleFunc("POST "+controlapi.PathPower, srv.power)
	mux.HandleFunc("POST "+controlapi.PathShutdown, srv.shutdown)
	srv.http = &http.Server{
		Handler:           srv.count(mux),
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return srv.done },
	}
	return srv
}

// Serve answers on l until Close; it closes l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends every request and connection, dialled ones too, and waits for them.
func (s *Server) Close() error {
	s.stop()
	err := s.http.Close()
	s.conns.Wait()
	return err
}

// Orphaned returns when no request ran for the time after, or with ctx's error.
func (s *Server) Orphaned(ctx context.Context, after time.Duration) error {
	for {
		wait := after
		s.mu.Lock()
		if s.active == 0 {
			wait = after - s.clock.Since(s.last)
		}
		s.mu.Unlock()
		if wait <= 0 {
			return nil
		}
		t := s.clock.NewTimer(wait)
		select {
		case <-t.C():
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// count keeps track of the requests that run, for Orphaned and Close.
func (s *Server) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.conns.Add(1)
		s.mu.Lock()
		s.active++
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.active--
			s.last = s.clock.Now()
			s.mu.Unlock()
			s.conns.Done()
		}()
		next.ServeHTTP(w, r)
	})
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.cluster.Status())
}

func (s *Server) access(w http.ResponseWriter, _ *http.Request) {
	a, ok := s.cluster.Access()
	if !ok {
		http.Error(w, "the API server doesn't answer yet", http.StatusServiceUnavailable)
		return
	}
	answer(w, http.StatusOK, a)
}

func (s *Server) usage(w http.ResponseWriter, _ *http.Request) {
	u, err := s.cluster.Usage()
	if err != nil {
		s.log.Warn("usage can't be read", "err", err)
		http.Error(w, "usage can't be read", http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusOK, u)
}

func (s *Server) power(w http.ResponseWriter, r *http.Request) {
	var p controlapi.PowerRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&p); err != nil {
		http.Error(w, "not a power request: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.cluster.Power(p); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) shutdown(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusAccepted)
	s.cluster.Shutdown()
}

// audit writes entries as lines of JSON while the reader stays.
func (s *Server) audit(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if err != nil && r.URL.Query().Has("after") {
		http.Error(w, "after isn't a number", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := http.NewResponseController(w)
	enc := json.NewEncoder(w)
	for {
		if err := out.Flush(); err != nil {
			return
		}
		entries, more := s.streams.Audit(after, 256)
		for i := range entries {
			if enc.Encode(&entries[i]) != nil {
				return
			}
			after = entries[i].N
		}
		if len(entries) > 0 {
			continue
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v)
}
