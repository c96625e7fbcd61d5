//go:build !linux

package testprocess

import (
	"os/exec"
	"syscall"
)

func dieWithParent(*exec.Cmd, syscall.Signal) {}
