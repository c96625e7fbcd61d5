package controlserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	testingclock "k8s.io/utils/clock/testing"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a cluster of this test's own making.
type cluster struct {
	mu      sync.Mutex
	ready   bool
	entries []lab.AuditEntry
	more    chan struct{}
	ended   chan struct{}
	dial    func(ctx context.Context, address string) (net.Conn, error)
}

func (c *cluster) Status() controlapi.Status { return controlapi.Status{ID: "one", PID: 7} }
func (c *cluster) Access() (controlapi.Access, bool) {
	return controlapi.Access{Token: "secret"}, c.ready
}
func (c *cluster) Usage() (controlapi.Usage, error) { return controlapi.Usage{Goroutines: 3}, nil }
func (c *cluster) Shutdown()                        { close(c.ended) }
func (c *cluster) Power(r controlapi.PowerRequest) error {
	if r.Node != "kitchen-1" {
		return errors.New("there is no such kitchen")
	}
	return nil
}

func (c *cluster) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	return c.dial(ctx, address)
}

func (c *cluster) Audit(after uint64, max int) ([]lab.AuditEntry, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []lab.AuditEntry
	for _, e := range c.entries {
		if e.N > after && len(out) < max {
			out = append(out, e)
		}
	}
	return out, c.more
}

func (c *cluster) write(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = append(c.entries, lab.AuditEntry{N: n})
	close(c.more)
	c.more = make(chan struct{})
}

// serve starts a server in a folder whose path is longer than a socket's may be.
func serve(t *testing.T, c *cluster, clk *testingclock.FakeClock) (*Server, *controlapi.Client) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	sockets, err := controlapi.OpenSocketDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := sockets.Listen(controlapi.FileControl)
	if err != nil {
		t.Fatal(err)
	}
	c.more, c.ended = make(chan struct{}), make(chan struct{})
	s := New(c, c, clk, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	client := controlapi.New(dir)
	t.Cleanup(func() {
		client.Close()
		s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		sockets.Close()
	})
	return s, client
}

func TestCalls(t *testing.T) {
	c := &cluster{}
	_, client := serve(t, c, testingclock.NewFakeClock(time.Now()))
	ctx := t.Context()
	if s, err := client.Status(ctx); err != nil || s.ID != "one" || s.PID != 7 {
		t.Errorf("status: %+v %v", s, err)
	}
	if _, err := client.Access(ctx); !errors.Is(err, controlapi.ErrNotReady) {
		t.Errorf("access before the API server answers: %v", err)
	}
	c.ready = true
	if a, err := client.Access(ctx); err != nil || a.Token != "secret" {
		t.Errorf("access: %+v %v", a, err)
	}
	if u, err := client.Usage(ctx); err != nil || u.Goroutines != 3 {
		t.Errorf("usage: %+v %v", u, err)
	}
	if err := client.Power(ctx, controlapi.PowerRequest{Node: "kitchen-1"}); err != nil {
		t.Errorf("power: %v", err)
	}
	if err := client.Power(ctx, controlapi.PowerRequest{Node: "cellar"}); err == nil || !strings.Contains(err.Error(), "no such kitchen") {
		t.Errorf("power of an unknown node: %v", err)
	}
	if err := client.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	<-c.ended
}

func TestAuditStream(t *testing.T) {
	c := &cluster{}
	_, client := serve(t, c, testingclock.NewFakeClock(time.Now()))
	c.write(1)
	c.write(2)
	ctx, cancel := context.WithCancel(t.Context())
	entries, err := client.Audit(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	got = append(got, (<-entries).N)
	c.write(3)
	got = append(got, (<-entries).N)
	if d := cmp.Diff([]uint64{2, 3}, got); d != "" {
		t.Error(d)
	}
	cancel()
	for range entries { // closed by the end of ctx
	}
}

func TestDial(t *testing.T) {
	c := &cluster{dial: func(ctx context.Context, address string) (net.Conn, error) {
		switch address {
		case "echo:80":
			near, far := net.Pipe()
			go func() { io.Copy(far, far); far.Close() }()
			return near, nil
		case "closed:80":
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		case "nowhere:80":
			return nil, &net.DNSError{Name: "nowhere", IsNotFound: true}
		case "far:80":
			return nil, &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}
		}
		<-ctx.Done() // silent
		return nil, ctx.Err()
	}}
	s, client := serve(t, c, testingclock.NewFakeClock(time.Now()))
	conn, err := client.Dial(t.Context(), "tcp", "echo:80")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4)
	if _, err := conn.Write([]byte("soup")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != "soup" {
		t.Errorf("echo: %q %v", buf, err)
	}
	conn.Close()
	for address, kind := range map[string]string{"closed:80": controlapi.DialRefused, "nowhere:80": controlapi.DialName, "far:80": controlapi.DialUnreachable} {
		_, err := client.Dial(t.Context(), "tcp", address)
		if de := new(controlapi.DialError); !errors.As(err, &de) || de.Kind != kind {
			t.Errorf("%s: %v", address, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Dial(ctx, "tcp", "silent:80"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silent: %v", err)
	}
	open, err := client.Dial(t.Context(), "tcp", "echo:80")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	s.Close() // must not wait for the requester
	if _, err := open.Read(buf); err == nil {
		t.Error("a connection outlives the server")
	}
}

func TestOrphaned(t *testing.T) {
	clk := testingclock.NewFakeClock(time.Now())
	c := &cluster{}
	s, client := serve(t, c, clk)
	orphaned := make(chan error, 1)
	go func() { orphaned <- s.Orphaned(t.Context(), time.Minute) }()
	waiting := func() {
		for !clk.HasWaiters() {
			runtime.Gosched()
		}
	}
	waiting()
	clk.Step(59 * time.Second)
	if _, err := client.Status(t.Context()); err != nil { // somebody cares
		t.Fatal(err)
	}
	for { // the server has noticed the end of the request
		s.mu.Lock()
		idle := s.active == 0 && s.last.Equal(clk.Now())
		s.mu.Unlock()
		if idle {
			break
		}
		runtime.Gosched()
	}
	clk.Step(time.Second)
	waiting()
	select {
	case err := <-orphaned:
		t.Fatalf("orphaned one second after a request: %v", err)
	default:
	}
	clk.Step(59 * time.Second)
	if err := <-orphaned; err != nil {
		t.Error(err)
	}
}
