package terminal

import (
	"os/exec"
	"runtime"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// start starts the child from a thread that is kept until the child has been waited for: the
// parent whose death Pdeathsig means is that thread (prctl(2), PR_SET_PDEATHSIG),
// and a shared one may end while the server lives.
func (ch *child) start() error {
	started := make(chan error)
	ch.wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := ch.cmd.Start()
		started <- err
		if err == nil {
			<-ch.ended
		}
	})
	return <-started
}
