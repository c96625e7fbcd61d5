package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
