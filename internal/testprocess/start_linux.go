package testprocess

import (
	"os/exec"
	"syscall"
)

func dieWithParent(cmd *exec.Cmd, end syscall.Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = end
}
