//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// endWithin is how long a killed process may take to be gone.
const endWithin = 10 * time.Second

// ownSession lets the host survive our end and our terminal's signals.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// killHosts kills every host of a folder and waits until they are gone.
func killHosts(dir string) error {
	running := hostsOf(dir)
	for _, p := range running {
		if err := killHost(p); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	if err := waitGone(ctx, running); err != nil {
		return fmt.Errorf("killed cluster host of %s doesn't end: %w", dir, err)
	}
	return nil
}

// killHost kills one process and its group. The handle makes sure that it is
// this process and not a later one with its number.
func killHost(p process) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return nil // it has ended
	}
	defer func() { _ = handle.Release() }() // frees memory only
	if !isAlive(p.pid, p.started) {
		return nil
	}
	if pgid, err := syscall.Getpgid(p.pid); err == nil && pgid == p.pid {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // its own end is looked at below
	}
	if err := handle.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill cluster host %d: %w", p.pid, err)
	}
	return nil
}

// waitGone waits until these hosts have ended. They are to be looked for before they
// are asked to: one that is about to end has no command line any more.
func waitGone(ctx context.Context, running []process) error {
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for _, p := range running {
		for isAlive(p.pid, p.started) {
			select {
			case <-t.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// process is a host that runs; started tells it from a later one with its number.
type process struct {
	pid     int
	started string
}

// allocated is what a file occupies on the disk.
func allocated(fi fs.FileInfo) int64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int64(st.Blocks) * 512
	}
	return fi.Size()
}
