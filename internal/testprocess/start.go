// Package testprocess starts the programs that tests and benchmarks need, so
// that none of them outlives a run that was killed or has crashed.
package testprocess

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts cmd and waits for it in the background. On Linux cmd gets the
// signal end when this process ends without having ended it: SIGTERM for a
// program that has things to put away, SIGKILL for others. wait returns what
// cmd.Wait did and may be called any number of times; nobody else may call cmd.Wait.
func Start(cmd *exec.Cmd, end syscall.Signal) (wait func() error, err error) {
	dieWithParent(cmd, end)
	started, ended := make(chan error), make(chan struct{})
	var result error
	go func() {
		// The parent whose death counts is the thread that started the child (prctl(2), PR_SET_PDEATHSIG).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			result = cmd.Wait()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return func() error {
		<-ended
		return result
	}, nil
}
