//go:build unix && !linux

package embedded

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"kubistro/internal/clusterhost/controlapi"
)

// hostsOf finds the host of a folder by its pid file, and looks whether the
// process with that number really is it.
func hostsOf(dir string) []process {
	b, err := os.ReadFile(filepath.Join(dir, controlapi.FilePID))
	if err != nil {
		return nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 {
		return nil
	}
	started := startTime(pid)
	if started == "" || !strings.Contains(ps(pid, "command"), "run --dir "+dir) {
		return nil
	}
	return []process{{pid: pid, started: started}}
}

// isAlive reports whether the process with this number and start time runs.
func isAlive(pid int, started string) bool {
	return started != "" && startTime(pid) == started && !strings.HasPrefix(ps(pid, "state"), "Z")
}

func startTime(pid int) string { return ps(pid, "lstart") }

// ps asks for one column of a process; "" when there is none.
func ps(pid int, column string) string {
	out, err := exec.Command("ps", "-ww", "-o", column+"=", "-p", fmt.Sprint(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
