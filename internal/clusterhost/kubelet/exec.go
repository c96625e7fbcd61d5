package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"kubistro/internal/shell"
)

// execMax bounds the commands that run beside a container's main process at a time.
const execMax = 64

// execStreams are the streams of a command in a container; in may be nil.
type execStreams struct {
	in       io.Reader
	out, err io.Writer
	tty      bool
	resize   <-chan remotecommand.TerminalSize
}

var errTooManyExecs = errors.New("too many commands run in this container at once")

// exec runs a command in a container until it ends, ctx ends or the container
// does. The error is for a command that can't be started.
func (w *worker) exec(ctx context.Context, inst *instance, argv []string, s execStreams) (int, error) {
	w.mu.Lock()
	files, proc, running := inst.fs, inst.proc, inst.state.Phase == containerRunning
	over := inst.execs >= execMax
	if running && !over {
		inst.execs++
	}
	w.mu.Unlock()
	switch {
	case !running || files == nil:
		return 0, fmt.Errorf("failed to exec in container: container is in %s state", "CONTAINER_EXITED")
	case over:
		return 0, errTooManyExecs
	}
	defer func() {
		w.mu.Lock()
		inst.execs--
		w.mu.Unlock()
	}()
	p, err := resolve(proc.Programs, files, argv)
	if err != nil {
		return 0, fmt.Errorf("failed to exec in container: failed to start exec %q: OCI runtime exec failed: exec failed: unable to start container process: %w", newContainerID(), err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(inst.ctx, cancel)
	defer stop()
	signals := make(chan syscall.Signal, 4)
	proc.Signals, proc.TTY = signals, s.tty
	proc.Stdout, proc.Stderr = orDiscard(s.out), orDiscard(s.err)
	proc.Stdin = strings.NewReader("")
	if s.in != nil {
		proc.Stdin = s.in
	}
	if s.tty {
		out := &crlfWriter{w: proc.Stdout}
		proc.Stdout, proc.Stderr = out, out
		if s.in != nil && !editsLines(p.argv) {
			proc.Stdin = cook(ctx, s.in, out, func() {
				select {
				case signals <- syscall.SIGINT:
				default:
				}
			})
		}
	}
	sizes := make(chan shell.Size, 1)
	proc.Resize = sizes
	if s.resize != nil {
		go forwardSizes(ctx, s.resize, sizes)
	}
	done := make(chan int, 1)
	go func() { done <- p.exec(ctx, proc) }()
	select {
	case code := <-done:
		if inst.ctx.Err() != nil {
			code = codeKilled
		}
		return code, nil
	case <-ctx.Done():
		select {
		case <-done:
		case <-w.b.k.clock.After(unresponsive):
		}
		return codeKilled, nil
	}
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// forwardSizes passes window sizes on; only the newest waits. 0 by 0 comes from
// clients whose input is no terminal.
func forwardSizes(ctx context.Context, from <-chan remotecommand.TerminalSize, to chan shell.Size) {
	for {
		select {
		case <-ctx.Done():
			return
		case s, ok := <-from:
			if !ok {
				return
			}
			if s.Width == 0 || s.Height == 0 {
				continue
			}
			select {
			case <-to:
			default:
			}
			to <- shell.Size{Cols: int(s.Width), Rows: int(s.Height)}
		}
	}
}

// streams serves one request of the kubelet's exec, attach and port-forward:
// the executor, attacher and forwarder of package streaming.
type streams struct {
	w *worker
}

func (s streams) container(name string) (*instance, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	sl := s.w.byName[name]
	if sl == nil || !sl.running() {
		return nil, fmt.Errorf("container not found (%q)", name)
	}
	return sl.cur, nil
}

func (s streams) ExecInContainer(ctx context.Context, _, _, container string, cmd []string, in io.Reader, out, errw io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	inst, err := s.container(container)
	if err != nil {
		return err
	}
	st := execStreams{in: in, tty: tty, resize: resize}
	if out != nil {
		st.out = out
	}
	if errw != nil {
		st.err = errw
	}
	code, err := s.w.exec(ctx, inst, cmd, st)
	if err != nil {
		return err
	}
	if code != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: code}
	}
	return nil
}

func (s streams) AttachContainer(ctx context.Context, _, _, container string, in io.Reader, out, errw io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	inst, err := s.container(container)
	if err != nil {
		return err
	}
	a := &attachment{done: make(chan struct{})}
	if out != nil {
		a.out = out
	}
	if errw != nil {
		a.err = errw
	}
	if !inst.term.attach(a) {
		return nil
	}
	defer inst.term.detach(a)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if resize != nil {
		go func() {
			sizes := make(chan shell.Size, 1)
			go forwardSizes(ctx, resize, sizes)
			for {
				select {
				case sz := <-sizes:
					inst.term.size(sz)
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	if in != nil && inst.term.input != nil {
		go func() {
			_, err := io.Copy(inst.term.input, in)
			s.w.mu.Lock()
			once := s.w.byName[container].spec.StdinOnce
			s.w.mu.Unlock()
			if once && err == nil {
				inst.term.input.Close()
			}
			if tty {
				a.end()
			}
		}()
	}
	select {
	case <-a.done:
	case <-ctx.Done():
	}
	return nil
}

func (s streams) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	s.w.mu.Lock()
	iface := s.w.iface
	s.w.mu.Unlock()
	if iface == nil {
		return errors.New("the Pod has no network any more")
	}
	conn, err := iface.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("failed to execute portforward in network namespace: failed to connect to localhost:%d inside namespace: %w", port, err)
	}
	defer conn.Close()
	go func() {
		io.Copy(conn, stream)
		if c, ok := conn.(interface{ CloseWrite() error }); ok {
			c.CloseWrite()
		} else {
			conn.Close()
		}
	}()
	_, err = io.Copy(stream, conn)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
