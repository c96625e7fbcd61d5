package terminal_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/terminal"
	"kubistro/internal/testprocess"
)

// cluster is the one cluster of this package's tests.
type cluster struct {
	dir    string
	cmd    *exec.Cmd
	wait   func() error // nil: it hasn't been started
	api    *controlapi.Client
	access controlapi.Access
	err    error
}

var theCluster cluster

var startCluster = sync.OnceFunc(func() { theCluster.err = theCluster.start() })

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "terminal-child" {
		os.Exit(terminal.ChildMain(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "probe-confinement" {
		os.Exit(terminal.ProbeConfinement(os.Args[2:]))
	}
	code := m.Run()
	theCluster.stop()
	if err := goleak.Find(goleak.IgnoreTopFunction("internal/poll.runtime_pollWait")); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

func (c *cluster) start() error {
	program := os.Getenv("KUBISTRO_CLUSTERHOST")
	if program == "" {
		program = filepath.Join("..", "..", "bin", "clusterhost")
	}
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("these tests need the program clusterhost: run make build, or set KUBISTRO_CLUSTERHOST to its path (%w)", err)
	}
	var err error
	if c.dir, err = os.MkdirTemp("", "kubistro-terminal-"); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(c.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	c.cmd = exec.Command(program, "run", "--dir", c.dir)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if c.wait, err = testprocess.Start(c.cmd, syscall.SIGKILL); err != nil {
		return err
	}
	c.api = controlapi.New(c.dir)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := c.api.Status(ctx)
		if err == nil && s.Ready {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			text, _ := os.ReadFile(filepath.Join(c.dir, "log"))
			return fmt.Errorf("clusterhost isn't ready: %v\n%s", err, text)
		}
	}
	c.access, err = c.api.Access(ctx)
	return err
}

func (c *cluster) stop() {
	if c.api != nil {
		c.api.Close()
	}
	if c.wait != nil {
		c.cmd.Process.Kill()
		c.wait()
	}
	if c.dir != "" {
		os.RemoveAll(c.dir)
	}
}

// config is a terminal's configuration without a cluster.
func config(t testing.TB) terminal.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return terminal.Config{
		Program: self, Args: []string{"terminal-child"}, Home: t.TempDir(), Lang: "en", Cols: 100, Rows: 30, Token: "none", ServerName: "kubernetes",
		DialAPI: func(context.Context) (net.Conn, error) { return nil, fmt.Errorf("no cluster in this test") },
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, fmt.Errorf("no cluster in this test")
		},
	}
}

// withCluster adds the real cluster and a namespace of the test's own.
func withCluster(t testing.TB) terminal.Config {
	t.Helper()
	startCluster()
	if theCluster.err != nil {
		t.Fatal(theCluster.err)
	}
	a := theCluster.access
	c := config(t)
	c.Token, c.ServerName, c.CAPEM = a.Token, a.ServerName, a.CAPEM
	c.DialAPI = func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", a.Socket)
	}
	c.Dial = theCluster.api.Dial
	var b [4]byte
	rand.Read(b[:])
	ns := "t" + hex.EncodeToString(b[:])
	if out, code := execIn(t, c, "kubectl create namespace "+ns+" && kubectl config set-context --current --namespace="+ns); code != 0 {
		t.Fatalf("namespace: %s", out)
	}
	return c
}

// execIn runs a script in a child.
func execIn(t testing.TB, c terminal.Config, script string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	out, code, err := terminal.Exec(ctx, c, script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out, code
}

// screen follows a terminal's output.
type screen struct {
	t    testing.TB
	term *terminal.Terminal
	n    uint64
	text strings.Builder
	from int // where the next wait looks
}

// wait returns when the output holds want behind what an earlier wait found.
func (s *screen) wait(want string) {
	s.t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		blocks, _, more := s.term.Output(s.n)
		for _, b := range blocks {
			s.text.WriteString(b.Out)
			s.n = b.N
		}
		s.term.Ack(s.n)
		if i := strings.Index(s.text.String()[s.from:], want); i >= 0 {
			s.from += i + len(want)
			return
		}
		select {
		case <-more:
		case <-deadline.C:
			s.t.Fatalf("no %q in the output:\n%q", want, s.text.String()[s.from:])
		}
	}
}

func (s *screen) send(in string) {
	s.t.Helper()
	if err := s.term.Input(in); err != nil {
		s.t.Fatal(err)
	}
}

// open starts a terminal and waits for its prompt.
func open(t testing.TB, c terminal.Config) *screen {
	t.Helper()
	term, err := terminal.Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.Close() })
	s := &screen{t: t, term: term}
	s.wait("$ ")
	return s
}
