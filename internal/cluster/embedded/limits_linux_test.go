package embedded

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStartNice(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(fakeHost(t, "while :; do sleep 1; done"), "run", "--dir", dir)
	if err := startNice(cmd); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it runs until here
		_ = cmd.Wait()         // its state doesn't matter
	}()
	// Getpriority's raw result is 20 minus the niceness.
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := unix.Getpriority(unix.PRIO_PROCESS, cmd.Process.Pid); err != nil || own-got != niceness && own != 15 {
		t.Errorf("priority = %d, %v, own %d", got, err, own)
	}
	if err := startNice(exec.Command(dir + "/nothing")); err == nil {
		t.Error("a program that isn't there was started")
	}
}

func TestConfine(t *testing.T) {
	dir, group := t.TempDir(), t.TempDir()
	cmd := startHost(t, dir, "while :; do sleep 1; done")
	pid := cmd.Process.Pid
	if errs := confine(pid, limits{memory: 512 << 20, etcd: 128 << 20, cgroup: group, id: "c"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	got, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Max core file size        0                    0 ",
		"Max file size             536870912            536870912 ",
		"Max data size             2684354560           2684354560 ",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("limits lack %q:\n%s", want, got)
		}
	}
	for path, want := range map[string]string{
		fmt.Sprintf("/proc/%d/oom_score_adj", pid):         "500\n",
		filepath.Join(group, "kubistro-c", "memory.max"):   fmt.Sprint(768 << 20),
		filepath.Join(group, "kubistro-c", "pids.max"):     "512",
		filepath.Join(group, "kubistro-c", "cgroup.procs"): fmt.Sprint(pid),
	} {
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%s = %q, %v, want %q", path, b, err, want)
		}
	}
}
