// Package labclient drives a labserver as a browser does, over its HTTP API and
// WebSockets: for benchmarks and for tests of the whole system. It starts servers
// with throw-away data folders on loopback and ends what it started.
package labclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Server is a running labserver with a throw-away data folder.
type Server struct {
	Base   string // http://127.0.0.1:PORT
	Data   string // its data folder
	cmd    *exec.Cmd
	log    bytes.Buffer
	exited chan error
}

// Start starts the program with further arguments of `labserver serve` and
// returns when it answers. Stop ends it.
func Start(ctx context.Context, program string, args ...string) (*Server, error) {
	data, err := os.MkdirTemp("", "kubistro-bench-")
	if err != nil {
		return nil, err
	}
	s := &Server{Data: data, exited: make(chan error, 1)}
	s.cmd = exec.Command(program, append([]string{"serve", "--addr", "127.0.0.1:0", "--data", data}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.exited <- s.cmd.Wait() }()
	err = until(ctx, 30*time.Second, func() (bool, error) {
		select {
		case err := <-s.exited:
			s.exited <- err
			return false, fmt.Errorf("labserver ended: %v\n%s", err, s.log.String())
		default:
		}
		addr, err := os.ReadFile(filepath.Join(data, "address"))
		if err != nil {
			return false, nil
		}
		s.Base = strings.TrimSpace(string(addr))
		if !strings.HasPrefix(s.Base, "http") {
			s.Base = "http://" + s.Base
		}
		resp, err := http.Get(s.Base + "/readyz")
		if err != nil {
			return false, nil
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Stop ends the server gracefully, by force after 30 s, and removes its data.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
	}
	_ = os.RemoveAll(s.Data)
}

// WaitPool waits until a cluster is ready in the pool, by the server's own metrics.
func (s *Server) WaitPool(ctx context.Context) error {
	return until(ctx, time.Minute, func() (bool, error) {
		resp, err := http.Get(s.Base + "/metrics")
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		for line := range strings.Lines(string(text)) {
			if n, ok := strings.CutPrefix(line, "kubistro_cluster_pool{ready=\"true\"} "); ok {
				return strings.TrimSpace(n) != "0", nil
			}
		}
		return false, err
	})
}

// until calls done every 5 ms until it says true, fails, or limit has passed.
func until(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	return poll(ctx, limit, 5*time.Millisecond, done)
}

func poll(ctx context.Context, limit, every time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for tick := time.NewTicker(every); ; {
		ok, err := done()
		if ok || err != nil {
			tick.Stop()
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return fmt.Errorf("waited for %s: %w", limit, ctx.Err())
		}
	}
}

// Learner is one browser: a cookie jar and the server that it talks to.
type Learner struct {
	s *Server
	c *http.Client
}

// Learner makes a new learner; the server sets the cookie at the first call.
func (s *Server) Learner() *Learner {
	jar, _ := cookiejar.New(nil)
	return &Learner{s, &http.Client{Jar: jar, Timeout: time.Minute}}
}

// Call sends body as JSON to a path below /api/v1/ and decodes the answer into
// into (nil: thrown away). A status of 300 and more is an error with the body.
func (l *Learner) Call(ctx context.Context, method, path string, body, into any) error {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, l.s.Base+"/api/v1/"+path, in)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// Open starts (or finds) the learner's session of the restaurant course and returns its id.
func (l *Learner) Open(ctx context.Context) (string, error) {
	var s struct{ ID string }
	err := l.Call(ctx, "POST", "sessions", map[string]string{"course": "restaurant"}, &s)
	return s.ID, err
}

// End ends a session and its cluster.
func (l *Learner) End(ctx context.Context, id string) error {
	return l.Call(ctx, "DELETE", "sessions/"+id, nil, nil)
}

// Wake wakes a sleeping session.
func (l *Learner) Wake(ctx context.Context, id string) error {
	return l.Call(ctx, "POST", "sessions/"+id+"/wake", nil, nil)
}

// WaitReady waits until the session's cluster is ready.
func (l *Learner) WaitReady(ctx context.Context, id string) error {
	return l.WaitState(ctx, id, "ready")
}

// WaitState waits until the session is in the state; a failed or ended one is an error.
func (l *Learner) WaitState(ctx context.Context, id, state string) error {
	const every = 40 * time.Millisecond // below the rate at which the server turns a learner away
	return poll(ctx, 2*time.Minute, every, func() (bool, error) {
		var s struct{ State string }
		if err := l.Call(ctx, "GET", "sessions/"+id, nil, &s); err != nil {
			return false, err
		}
		if s.State == "failed" || s.State == "ended" {
			return false, errors.New("the session is " + s.State)
		}
		return s.State == state, nil
	})
}
