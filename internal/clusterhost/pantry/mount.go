package pantry

import (
	"context"
	"fmt"
)

// mountProgram shows what every container has mounted, with -t of one type only. Nothing
// can be mounted: no container has the capability for that.
func mountProgram(_ context.Context, p *Process) int {
	kind := ""
	switch args := p.Args[1:]; {
	case len(args) == 2 && args[0] == "-t":
		kind = args[1]
	case len(args) == 1 && args[0] == "-l", len(args) == 0:
	default:
		fmt.Fprintln(p.Stderr, "mount: permission denied (are you root?)")
		return 1
	}
	for _, m := range [][4]string{
		{"overlay", "/", "overlay", "rw,relatime"},
		{"proc", "/proc", "proc", "rw,nosuid,nodev,noexec,relatime"},
		{"tmpfs", "/dev", "tmpfs", "rw,nosuid,size=65536k,mode=755"},
		{"sysfs", "/sys", "sysfs", "ro,nosuid,nodev,noexec,relatime"},
		{"cgroup", "/sys/fs/cgroup", "cgroup2", "ro,nosuid,nodev,noexec,relatime"},
	} {
		if kind == "" || kind == m[2] {
			fmt.Fprintf(p.Stdout, "%s on %s type %s (%s)\n", m[0], m[1], m[2], m[3])
		}
	}
	return 0
}
