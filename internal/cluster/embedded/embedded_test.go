package embedded_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/clustertest"
	"kubistro/internal/cluster/embedded"
)

// programEnv names the clusterhost that the tests run.
const programEnv = "KUBISTRO_CLUSTERHOST"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverEnv); dir != "" {
		os.Exit(serve(dir))
	}
	goleak.VerifyTestMain(m)
}

func program(t *testing.T) string {
	t.Helper()
	p := os.Getenv(programEnv)
	if p == "" {
		t.Fatalf("%s isn't set: run the tests with make test, or build bin/clusterhost and set it to its path", programEnv)
	}
	if _, err := os.Stat(p); err != nil {
		t.Fatalf("%s: %v; make build makes it", programEnv, err)
	}
	return p
}

// options are those of a driver in a folder of the test's own. What is left of
// its clusters ends with the test.
func options(t *testing.T) embedded.Options {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		for _, pid := range hosts(t, filepath.Join(dir, "clusters")+"/") {
			t.Errorf("cluster host %d is left over", pid)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	})
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	return embedded.Options{Dir: dir, Program: program(t), Log: log, Orphan: orphan}
}

// hosts finds the processes whose command line names a folder that begins so.
func hosts(t *testing.T, prefix string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("only looked at where there is /proc")
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.Contains(args, []byte("run\x00--dir\x00"+prefix)) {
			out = append(out, pid)
		}
	}
	return out
}

func newDriver(t *testing.T, o embedded.Options) *embedded.Driver {
	t.Helper()
	d, err := embedded.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestEmbeddedConforms(t *testing.T) {
	clustertest.Run(t, func(t *testing.T) clustertest.Setup {
		o := options(t)
		var former *embedded.Driver
		return clustertest.Setup{
			Open: func(t *testing.T) cluster.Driver {
				if former != nil {
					if err := former.Close(); err != nil {
						t.Error(err)
					}
				}
				d, err := embedded.New(o)
				if err != nil {
					t.Fatal(err)
				}
				former = d
				return d
			},
			Crash: func(t *testing.T, id string) {
				pids := hosts(t, filepath.Join(o.Dir, "clusters", id)+"\x00")
				if len(pids) != 1 {
					t.Fatalf("hosts of %s = %v, want one", id, pids)
				}
				if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			},
			Remains: func(t *testing.T, id string) []string {
				var out []string
				for _, pid := range hosts(t, filepath.Join(o.Dir, "clusters", id)+"\x00") {
					out = append(out, fmt.Sprintf("process %d", pid))
				}
				entries, err := os.ReadDir(filepath.Join(o.Dir, "clusters"))
				if err != nil {
					t.Error(err)
				}
				for _, e := range entries {
					if name := e.Name(); name == id || name == ".trash-"+id {
						out = append(out, "file "+name)
					}
				}
				return out
			},
			Within: within,
		}
	})
}
