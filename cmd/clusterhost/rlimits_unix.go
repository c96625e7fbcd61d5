//go:build unix

package main

import "syscall"

// maxFileBytes bounds every file that the process writes, the log among them.
const maxFileBytes = 1 << 30

// setRlimits allows as many open files as the system does, forbids core dumps
// (they would hold the cluster's keys) and bounds files.
func setRlimits() error {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	files.Cur = min(files.Max, 65536)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return err
	}
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: maxFileBytes, Max: maxFileBytes})
}
