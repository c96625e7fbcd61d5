package main

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

// server is a labserver with a throw-away data folder.
type server struct {
	base, data string
	cmd        *exec.Cmd
	log        bytes.Buffer
	exited     chan error
}

func start(ctx context.Context, program string, args ...string) (*server, error) {
	data, err := os.MkdirTemp("", "kubistro-bench-")
	if err != nil {
		return nil, err
	}
	s := &server{data: data, exited: make(chan error, 1)}
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
		s.base = strings.TrimSpace(string(addr))
		if !strings.HasPrefix(s.base, "http") {
			s.base = "http://" + s.base
		}
		resp, err := http.Get(s.base + "/readyz")
		if err != nil {
			return false, nil
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
	}
	_ = os.RemoveAll(s.data)
}

// waitPool waits until a cluster is ready in the pool, by the server's own metrics.
func (s *server) waitPool(ctx context.Context) error {
	return until(ctx, time.Minute, func() (bool, error) {
		resp, err := http.Get(s.base + "/metrics")
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		for line := range strings.Lines(string(text)) {
			if n, ok := strings.CutPrefix(line, "kubistro_pool_ready "); ok {
				return strings.TrimSpace(n) != "0", nil
			}
		}
		return false, err
	})
}

// until calls done every 5 ms until it says true, fails, or limit has passed.
func until(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
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

// learner is a browser: a cookie jar and the server's address.
type learner struct {
	s *server
	c *http.Client
}

func (s *server) learner() *learner {
	jar, _ := cookiejar.New(nil)
	return &learner{s, &http.Client{Jar: jar, Timeout: time.Minute}}
}

func (l *learner) call(ctx context.Context, method, path string, body, into any) error {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, l.s.base+"/api/v1/"+path, in)
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

func (l *learner) open(ctx context.Context) (string, error) {
	var s struct{ ID string }
	err := l.call(ctx, "POST", "sessions", map[string]string{"course": "restaurant"}, &s)
	return s.ID, err
}

func (l *learner) end(ctx context.Context, id string) error {
	return l.call(ctx, "DELETE", "sessions/"+id, nil, nil)
}

func (l *learner) wake(ctx context.Context, id string) error {
	return l.call(ctx, "POST", "sessions/"+id+"/wake", nil, nil)
}

func (l *learner) waitReady(ctx context.Context, id string) error {
	return l.waitState(ctx, id, "ready")
}

func (l *learner) waitState(ctx context.Context, id, state string) error {
	return until(ctx, 2*time.Minute, func() (bool, error) {
		var s struct{ State string }
		if err := l.call(ctx, "GET", "sessions/"+id, nil, &s); err != nil {
			return false, err
		}
		if s.State == "failed" || s.State == "ended" {
			return false, errors.New("the session is " + s.State)
		}
		return s.State == state, nil
	})
}
