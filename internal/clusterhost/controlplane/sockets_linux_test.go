package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostSockets lists the TCP and UDP sockets that this process has open.
func hostSockets(t *testing.T) []string {
	t.Helper()
	inodes := map[string]string{}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		b, err := os.ReadFile("/proc/self/net/" + table)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(b), "\n")[1:] {
			if f := strings.Fields(line); len(f) > 9 {
				inodes["socket:["+f[9]+"]"] = table + " " + f[1]
			}
		}
	}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(fds) == 0 {
		t.Fatal("own files can't be listed", err)
	}
	var open []string
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && inodes[to] != "" {
			open = append(open, inodes[to])
		}
	}
	return open
}
