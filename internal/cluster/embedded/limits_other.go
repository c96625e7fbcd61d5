//go:build unix && !linux

package embedded

import "os/exec"

// limits are what a host may use.
type limits struct {
	memory, etcd int64
	cgroup       string
	id           string
}

// confine does nothing here: the host's own memory limit and quota have to do.
func confine(int, limits) []error { return nil }

func startNice(cmd *exec.Cmd) error { return cmd.Start() }

func removeCgroup(string, string) {}

func ownCgroup() string { return "" }
