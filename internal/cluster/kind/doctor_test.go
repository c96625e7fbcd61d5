package kind

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestExamine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "")
	agent := filepath.Join(t.TempDir(), "kind-agent")
	if err := os.WriteFile(agent, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	healthy := map[string]string{
		"/proc/sys/fs/inotify/max_user_watches": "1048576\n", "/proc/sys/fs/inotify/max_user_instances": "8192\n",
		"/proc/sys/kernel/pid_max": "4194304\n", "/proc/sys/kernel/osrelease": "6.1\n",
	}
	for name, tc := range map[string]struct {
		info    string
		fail    string // of the runtime
		files   map[string]string
		free    int64
		problem string // the one finding with a problem
		mend    string
		fatal   bool
		fits    string
	}{
		"all is well":      {files: healthy, free: 100 << 30, fits: "15 at once"},
		"disk bounds":      {files: healthy, free: 21 << 30, fits: "10 at once"},
		"no daemon":        {fail: "Cannot connect to the Docker daemon at unix:///var/run/docker.sock", problem: "kind: runtime", mend: "systemctl start docker", fatal: true},
		"no permission":    {fail: "permission denied while trying to connect to docker.sock", problem: "kind: runtime", mend: "usermod -aG docker", fatal: true},
		"cgroup v1":        {info: `{"NCPU":8,"MemTotal":17179869184,"CgroupVersion":"1"}`, files: healthy, free: 100 << 30, problem: "kind: cgroups", mend: "unified_cgroup_hierarchy"},
		"few watches":      {files: map[string]string{"/proc/sys/fs/inotify/max_user_watches": "8192"}, free: 100 << 30, problem: "kind: inotify watches", mend: "sysctl -w fs.inotify.max_user_watches=524288"},
		"a full disk":      {files: healthy, free: 9 << 30, problem: "kind: disk", mend: "docker system prune"},
		"a small machine":  {info: `{"NCPU":1,"MemTotal":2147483648,"CgroupVersion":"2"}`, files: healthy, free: 100 << 30, problem: "kind: learners", fatal: true},
		"another system's": {files: nil, free: 100 << 30, fits: "15 at once"},
	} {
		e := newFakeEngine()
		info := tc.info
		if info == "" {
			info = `{"NCPU":8,"MemTotal":17179869184,"CgroupVersion":"2","ServerVersion":"28.2"}`
		}
		e.answers = map[string]string{"info": info}
		if tc.fail != "" {
			e.fail = func([]string) error { return errors.New(tc.fail) }
		}
		list := examine(t.Context(), Options{Agent: agent}, "docker", e, system{
			read: func(path string) ([]byte, error) {
				if s, ok := tc.files[path]; ok {
					return []byte(s), nil
				}
				return nil, os.ErrNotExist
			},
			free: func(string) (int64, error) { return tc.free, nil },
		})
		var problems []string
		for _, f := range list {
			if f.Problem != "" && f.Name != "kind: /lib/modules" {
				problems = append(problems, f.Name)
				if !strings.Contains(f.Mend, tc.mend) || f.Fatal != tc.fatal {
					t.Errorf("%s: %+v, want %q", name, f, tc.mend)
				}
			}
			if f.Name == "kind: learners" && tc.fits != "" && !strings.Contains(f.Value, tc.fits) {
				t.Errorf("%s: %+v, want %s", name, f, tc.fits)
			}
		}
		if want := []string{tc.problem}; tc.problem == "" && len(problems) > 0 || tc.problem != "" && !slices.Equal(problems, want) {
			t.Errorf("%s: problems %v, want %q: %+v", name, problems, tc.problem, list)
		}
	}
}
