package terminal

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kubistro/internal/shell"
)

// ptyPair is a pseudo-terminal that was opened before the confinement. kubectl
// insists on a real terminal for exec -it and the like.
type ptyPair struct{ master, slave *os.File }

// openPTY returns nil where there are no pseudo-terminals: -t then falls back to none.
func openPTY() *ptyPair {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	fd := -1
	raw, err := master.SyscallConn()
	if err == nil {
		raw.Control(func(m uintptr) {
			if unix.IoctlSetPointerInt(int(m), unix.TIOCSPTLCK, 0) != nil {
				return
			}
			r, _, errno := syscall.Syscall(syscall.SYS_IOCTL, m, unix.TIOCGPTPEER, uintptr(os.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC))
			if errno == 0 {
				fd = int(r)
			}
		})
	}
	if fd < 0 {
		master.Close()
		return nil
	}
	return &ptyPair{master: master, slave: os.NewFile(uintptr(fd), "/dev/pts/0")}
}

// attach connects the learner's terminal with the pseudo-terminal, makes it the
// process's standard streams, and returns a handle of it for one command.
func (p *ptyPair) attach(ctx context.Context, env shell.Env) (handle *os.File, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.master.SetDeadline(time.Time{})
	restore := env.Term.Raw()
	sizes, noSizes := env.Term.Resizes()
	setSize := func(s shell.Size) {
		raw, err := p.master.SyscallConn()
		if err != nil {
			return
		}
		raw.Control(func(fd uintptr) {
			unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(s.Rows), Col: uint16(s.Cols)})
		})
		syscall.Kill(os.Getpid(), syscall.SIGWINCH)
	}
	setSize(<-sizes)
	go func() {
		for {
			select {
			case s := <-sizes:
				setSize(s)
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() { // ends when the command does: its input is bound to its context
		buf := make([]byte, 4<<10)
		for ctx.Err() == nil {
			n, err := env.In.Read(buf)
			if _, werr := p.master.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	}()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(env.Out, p.master)
	}()
	in, out := os.Stdin, os.Stdout
	os.Stdin, os.Stdout = p.slave, p.slave
	return p.slave, func() {
		os.Stdin, os.Stdout = in, out
		cancel()
		p.master.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // what is in it arrives at once
		<-drained
		p.master.SetDeadline(time.Time{})
		p.releaseReader()
		noSizes()
		restore()
	}
}

// releaseReader wakes the goroutine of kubectl that still waits for a key of
// the session that has ended, so that it doesn't take one of the next session's.
func (p *ptyPair) releaseReader() {
	p.master.Write([]byte("\n"))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 10 {
		<-tick.C // the line discipline delivers asynchronously
		waiting := 0
		p.onSlave(func(fd int) { waiting, _ = unix.IoctlGetInt(fd, unix.TIOCINQ) })
		if waiting == 0 {
			break
		}
	}
	p.onSlave(func(fd int) { unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIOFLUSH) })
}

func (p *ptyPair) onSlave(f func(fd int)) {
	if raw, err := p.slave.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
