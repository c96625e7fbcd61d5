package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/log"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var discard = slog.New(slog.DiscardHandler)

// patience is how long a test waits for what must happen soon.
const patience = 30 * time.Second

// fakeEngine is a container runtime whose containers are names and files.
type fakeEngine struct {
	mu         sync.Mutex
	containers map[string]map[string]string // files by container
	up         map[string]bool
	fail       func(args []string) error // may be nil; asked first
	answers    map[string]string         // by the first argument; may be nil
}

func newFakeEngine() *fakeEngine {
	return &fakeEngine{containers: map[string]map[string]string{}, up: map[string]bool{}}
}

func (e *fakeEngine) run(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	refused := func(said string) (string, error) {
		return "", &commandError{args, said, errors.New("exit status 1")}
	}
	if ctx.Err() != nil {
		return "", &commandError{args, "", context.Cause(ctx)}
	}
	if e.fail != nil {
		if err := e.fail(args); err != nil {
			return refused(err.Error())
		}
	}
	if a, ok := e.answers[args[0]]; ok {
		return a, nil
	}
	switch args[0] {
	case "info":
		return `{"NCPU":8,"MemTotal":17179869184}`, nil
	case "image":
		return "sha256:1", nil
	case "ps":
		cluster := ""
		for _, a := range args {
			if c, ok := strings.CutPrefix(a, "label="+labelCluster+"="); ok {
				cluster = c
			}
		}
		var out []string
		for _, name := range slices.Sorted(maps.Keys(e.containers)) {
			if cluster == "" || nodeSuffix.ReplaceAllString(name, "") == cluster {
				out = append(out, name)
			}
		}
		return strings.Join(out, "\n"), nil
	case "rm":
		for _, name := range args[3:] {
			delete(e.containers, name)
		}
		return "", nil
	case "inspect":
		name := args[len(args)-1]
		if e.containers[name] == nil {
			return refused("Error: No such container: " + name)
		}
		return fmt.Sprint(e.up[name]), nil
	case "exec":
		if args[1] == "-i" && slices.Contains(args, "sh") {
			b, err := io.ReadAll(stdin)
			if err != nil {
				return "", err
			}
			files := e.containers[args[2]]
			if files == nil {
				return refused("Error: No such container: " + args[2])
			}
			files[args[len(args)-2]] = string(b)
			return "", nil
		}
	}
	return refused("the fake doesn't know this")
}

func (e *fakeEngine) start(context.Context, ...string) (io.Reader, io.WriteCloser, func() error, error) {
	return nil, nil, nil, errors.New("the fake starts nothing")
}

func (e *fakeEngine) add(name string, up bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.containers[name], e.up[name] = map[string]string{}, up
}

func (e *fakeEngine) names() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.containers))
}

// fakeMaker goes through kind's stages and fails, as kind does, at the first step
// after its containers have vanished.
type fakeMaker struct {
	engine *fakeEngine
	stop   string // the stage in which it waits for its containers' end
	fail   error  // how it ends otherwise
	fails  int    // how often; 0 is always
	retain bool   // a killed one: it removes nothing

	mu    sync.Mutex
	files map[string]map[string]string // as they were when kubeadm would have read them
	ended int
}

// lines are kind's status lines, in the order of its actions.
var lines = []string{"Ensuring node image (x) 🖼 ", "Preparing nodes 📦 📦 ", "Writing configuration 📜", "Starting control-plane 🕹️",
	"Installing CNI 🔌", "Installing StorageClass 💾", "Joining worker nodes 🚜"}

func (m *fakeMaker) Create(name string, cfg *v1alpha4.Cluster, _ string, l log.Logger) error {
	defer func() {
		m.mu.Lock()
		m.ended++
		m.mu.Unlock()
	}()
	for i, line := range lines {
		l.V(0).Infof(" • %s  ...\n", line)
		if i == 1 {
			m.engine.add(name+"-control-plane", true)
			for n := range cfg.Nodes[1:] {
				suffix := "-worker"
				if n > 0 {
					suffix += fmt.Sprint(n + 1)
				}
				m.engine.add(name+suffix, true)
			}
		}
		if i == 3 {
			m.engine.mu.Lock()
			m.files = maps.Clone(m.engine.containers)
			m.engine.mu.Unlock()
		}
		if i > 0 && statuses[i].stage == m.stop {
			m.awaitEnd(name)
			return errors.New("container is not running")
		}
		l.V(0).Infof(" ✓ %s\n", line)
	}
	m.mu.Lock()
	fail := m.fail
	if m.fails > 0 && m.ended >= m.fails {
		fail = nil
	}
	m.mu.Unlock()
	if fail != nil && !m.retain {
		_ = removeContainers(context.Background(), m.engine, name) // the fake doesn't fail here
	}
	return fail
}

func (m *fakeMaker) awaitEnd(name string) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		if names, err := containers(context.Background(), m.engine, name); err == nil && len(names) == 0 {
			return
		}
	}
}

// newTestDriver makes a driver over a fake runtime and a fake kind.
func newTestDriver(t *testing.T, m *fakeMaker) (*Driver, *fakeEngine) {
	t.Helper()
	dir := t.TempDir()
	agent := filepath.Join(dir, "kind-agent")
	if err := os.WriteFile(agent, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.engine = newFakeEngine()
	d, err := newDriver(Options{Dir: dir, Agent: agent}, m.engine, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, m.engine
}
