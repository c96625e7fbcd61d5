package kubelet

import (
	"context"
	"io"
	"path"
	"strings"
	"sync"

	"kubistro/internal/shell"
)

// terminal is a running container's standard streams for those who attach.
type terminal struct {
	tty    bool
	stdin  *io.PipeReader // what the program reads; nil when the spec has no stdin
	input  *io.PipeWriter
	resize chan shell.Size

	mu   sync.Mutex
	subs map[*attachment]bool
	over bool
}

// attachment is one client that follows the output.
type attachment struct {
	out, err io.Writer
	done     chan struct{} // closed when the client can take no more or the program ended
	once     sync.Once
}

func (a *attachment) end() { a.once.Do(func() { close(a.done) }) }

func newTerminal(stdin, tty bool) *terminal {
	t := &terminal{tty: tty, subs: map[*attachment]bool{}, resize: make(chan shell.Size, 1)}
	if stdin {
		t.stdin, t.input = io.Pipe()
	}
	return t
}

// reader is the program's standard input.
func (t *terminal) reader() io.Reader {
	if t.stdin == nil {
		return strings.NewReader("")
	}
	return t.stdin
}

// attach adds a client that sees what is written from now on; false: the program has ended.
func (t *terminal) attach(a *attachment) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.subs[a] = true
	return true
}

func (t *terminal) detach(a *attachment) {
	t.mu.Lock()
	delete(t.subs, a)
	t.mu.Unlock()
	a.end()
}

// size passes a window size on; only the newest counts.
func (t *terminal) size(s shell.Size) {
	for {
		select {
		case t.resize <- s:
			return
		default:
		}
		select {
		case <-t.resize:
		default:
		}
	}
}

func (t *terminal) close() {
	t.mu.Lock()
	t.over = true
	subs := t.subs
	t.subs = map[*attachment]bool{}
	t.mu.Unlock()
	for a := range subs {
		a.end()
	}
	if t.input != nil {
		t.input.Close()
		t.stdin.Close()
	}
}

// liveWriter sends a stream to the log and to all who are attached.
type liveWriter struct {
	log    io.Writer
	term   *terminal
	stderr bool
}

func (w liveWriter) Write(p []byte) (int, error) {
	n, err := w.log.Write(p)
	w.term.mu.Lock()
	subs := make([]*attachment, 0, len(w.term.subs))
	for a := range w.term.subs {
		subs = append(subs, a)
	}
	w.term.mu.Unlock()
	for _, a := range subs {
		out := a.out
		if w.stderr && !w.term.tty {
			out = a.err
		}
		if out == nil {
			continue
		}
		if _, werr := out.Write(p); werr != nil {
			w.term.detach(a)
		}
	}
	return n, err
}

// editsLines says whether a program drives the terminal itself, as an
// interactive shell does; for all others the node keeps the line discipline.
func editsLines(argv []string) bool {
	switch path.Base(argv[0]) {
	case "sh", "ash", "bash", "dash":
	default:
		return false
	}
	for _, a := range argv[1:] {
		if a == "-c" || !strings.HasPrefix(a, "-") {
			return false
		}
	}
	return true
}

// crlfWriter is the output side of a terminal: a line feed also returns the carriage.
type crlfWriter struct {
	mu   sync.Mutex
	w    io.Writer
	last byte
}

func (c *crlfWriter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]byte, 0, len(p)+16)
	for _, b := range p {
		if b == '\n' && c.last != '\r' {
			out = append(out, '\r')
		}
		out = append(out, b)
		c.last = b
	}
	if _, err := c.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Control characters of a terminal in its usual (cooked) mode.
const (
	keyInterrupt = 0x03
	keyEOF       = 0x04
	keyErase     = 0x7f
	keyBackspace = 0x08
	keyKill      = 0x15
	lineMax      = 4096
)

// cook reads key presses, echoes them and passes on whole lines, as a terminal in
// cooked mode does; Ctrl-C calls interrupt. It ends with in or ctx.
func cook(ctx context.Context, in io.Reader, echo io.Writer, interrupt func()) io.Reader {
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { r.CloseWithError(io.EOF); w.Close() })
	go func() {
		defer stop()
		defer w.Close()
		var line []byte
		buf := make([]byte, 512)
		for {
			n, err := in.Read(buf)
			for _, b := range buf[:n] {
				switch {
				case b == keyInterrupt:
					io.WriteString(echo, "^C\n")
					line = line[:0]
					interrupt()
				case b == keyEOF && len(line) == 0:
					return
				case b == keyEOF:
					w.Write(line)
					line = line[:0]
				case b == keyErase || b == keyBackspace:
					if len(line) > 0 {
						line = line[:len(line)-1]
						io.WriteString(echo, "\b \b")
					}
				case b == keyKill:
					io.WriteString(echo, strings.Repeat("\b \b", len(line)))
					line = line[:0]
				case b == '\r' || b == '\n':
					io.WriteString(echo, "\n")
					w.Write(append(line, '\n'))
					line = line[:0]
				case len(line) < lineMax:
					line = append(line, b)
					echo.Write([]byte{b})
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return r
}
