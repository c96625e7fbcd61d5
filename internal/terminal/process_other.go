//go:build unix && !linux

package terminal

import (
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func (ch *child) start() error { return ch.cmd.Start() }
