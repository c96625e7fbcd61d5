package embedded

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// hostsOf finds the hosts of a folder by their command lines, whoever started
// them and whatever the pid file says.
func hostsOf(dir string) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !isHostOf(pid, dir) {
			continue
		}
		p := process{pid: pid, started: startTime(pid)}
		// Looked at again: the number may have passed on in between.
		if isHostOf(pid, dir) && isAlive(pid, p.started) {
			out = append(out, p)
		}
	}
	return out
}

// isHostOf reports whether a process was started as "PROGRAM run --dir DIR ...".
func isHostOf(pid int, dir string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	return bytes.Contains(b, []byte("\x00run\x00--dir\x00"+dir+"\x00"))
}

// isAlive reports whether the process with this number and start time runs. One
// that has ended and only waits for its parent to notice doesn't.
func isAlive(pid int, started string) bool {
	state, at := stat(pid)
	return at != "" && at == started && state != "Z" && state != "X"
}

// startTime is when a process was started, in clock ticks since boot; "" when
// there is none.
func startTime(pid int) string {
	_, at := stat(pid)
	return at
}

func stat(pid int) (state, started string) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	// The name in parentheses may hold anything; the fields after it are counted from 3.
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 {
		return "", ""
	}
	return f[0], f[19]
}
