package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// limits are what a host may use.
type limits struct {
	memory, etcd int64
	cgroup       string // parent; empty: none
	id           string
}

// confine limits a process that has just been started, as far as this system
// lets us. The errors say what it didn't.
func confine(pid int, l limits) []error {
	var errs []error
	add := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	// GOMEMLIMIT keeps the host near its limit; the address space stops what runs
	// away far beyond it. Go maps more than it uses, hence the distance.
	for _, r := range []struct {
		name     string
		resource int
		max      uint64
	}{
		{"core size", unix.RLIMIT_CORE, 0},
		{"file size", unix.RLIMIT_FSIZE, uint64(max(4*l.etcd, 512<<20))},
		{"data size", unix.RLIMIT_DATA, uint64(3*l.memory + 1<<30)},
	} {
		add(r.name, unix.Prlimit(pid, r.resource, &unix.Rlimit{Cur: r.max, Max: r.max}, nil))
	}
	// When the machine runs out of memory a learner's cluster goes before the server.
	add("oom score", write(fmt.Sprintf("/proc/%d/oom_score_adj", pid), "500"))
	if l.cgroup != "" {
		add("cgroup", joinCgroup(pid, l))
	}
	return errs
}

// niceness keeps the clusters behind the server when the machine is short of CPU.
const niceness = 5

// startNice starts the process with a higher niceness. All its threads have it
// only if it has it from the first one on, so the thread that forks gets it
// before; that can't be taken back without privileges, so the thread ends here.
func startNice(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()                                           // and never unlocked
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceness) // without it, it starts as well
		started <- cmd.Start()
	}()
	return <-started
}

// joinCgroup puts the process into a cgroup of its own.
func joinCgroup(pid int, l limits) error {
	dir := filepath.Join(l.cgroup, "kubistro-"+l.id)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return errors.Join(
		write(filepath.Join(dir, "memory.max"), fmt.Sprint(l.memory+l.memory/2)),
		write(filepath.Join(dir, "memory.high"), fmt.Sprint(l.memory+l.memory/4)),
		write(filepath.Join(dir, "pids.max"), "512"),
		write(filepath.Join(dir, "cpu.weight"), "50"),
		write(filepath.Join(dir, "cgroup.procs"), fmt.Sprint(pid)),
	)
}

// removeCgroup removes a cluster's cgroup, if there is one.
func removeCgroup(parent, id string) {
	if parent != "" {
		_ = os.Remove(filepath.Join(parent, "kubistro-"+id)) // an empty one that stays costs nothing
	}
}

// ownCgroup is this process's cgroup v2 if clusters can get children of it with
// the controllers that they need; else empty.
func ownCgroup() string {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		dir := filepath.Join("/sys/fs/cgroup", path)
		enabled, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err == nil && hasAll(strings.Fields(string(enabled)), "cpu", "memory", "pids") && unix.Access(dir, unix.W_OK) == nil {
			return dir
		}
	}
	return ""
}

func hasAll(list []string, want ...string) bool {
	have := map[string]bool{}
	for _, s := range list {
		have[s] = true
	}
	for _, w := range want {
		if !have[w] {
			return false
		}
	}
	return true
}

func write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
