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

	"kubistro/internal/testprocess"
)

// Server is a labserver with a throw-away data folder.
type Server struct {
	Base string // http://127.0.0.1:PORT
	Data string // its data folder

	program string
	args    []string
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the process has ended
}

// Start starts the program with further arguments of `labserver serve` and
// returns when it answers. Stop ends it; it also ends with this process.
func Start(ctx context.Context, program string, args ...string) (*Server, error) {
	data, err := os.MkdirTemp("", "kubistro-bench-")
	if err != nil {
		return nil, err
	}
	s := &Server{Data: data, program: program, args: args}
	if err := s.start(ctx, "127.0.0.1:0"); err != nil {
		_ = os.RemoveAll(data)
		return nil, err
	}
	return s, nil
}

// Restart starts a server again that has ended, on the same data and address.
func (s *Server) Restart(ctx context.Context) error {
	return s.start(ctx, strings.TrimPrefix(s.Base, "http://"))
}

func (s *Server) start(ctx context.Context, addr string) error {
	file := filepath.Join(s.Data, "address")
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// A file and not a pipe: who writes into a pipe that nobody reads any more dies of it.
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(s.program, append([]string{"serve", "--addr", addr, "--data", s.Data}, s.args...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	wait, err := testprocess.Start(s.cmd, syscall.SIGTERM) // on which it ends its clusters, too
	if err != nil {
		return err
	}
	exited := make(chan struct{})
	s.exited = exited
	go func() { _ = wait(); close(exited) }()
	err = until(ctx, 30*time.Second, func() (bool, error) {
		select {
		case <-s.exited:
			return false, fmt.Errorf("labserver ended: %v", s.cmd.ProcessState)
		default:
		}
		addr, err := os.ReadFile(file)
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
		text := s.Log()
		s.end()
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

func (s *Server) logFile() string { return filepath.Join(s.Data, "labserver.log") }

// Log is what the server has logged.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Kill ends the server as a crash does: its clusters live on for a while.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // fails when it has ended
	<-s.exited
}

// Stop ends the server gracefully, by force after 30 s, and removes its data.
func (s *Server) Stop() {
	s.end()
	_ = os.RemoveAll(s.Data)
}

func (s *Server) end() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(30 * time.Second):
		s.Kill()
	}
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

// Learner is one browser: a cookie jar and the server that it talks to. It reads English.
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
	req.Header.Set("Accept-Language", "en")
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
