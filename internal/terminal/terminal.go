// Package terminal is the learner's terminal: an interpreter and kubectl in a
// confined child process per tab. The child has an emptied environment, sees the
// learner's home only (Landlock and rlimits where the system has them) and
// reaches nothing but the learner's cluster, by connections that the server
// process opens and hands over.
//
// What protects what:
//
//   - The shell (package shell) never starts a program and opens files through
//     an os.Root of the home only; symbolic links can't leave it.
//   - kubectl's own commands are built around one fixed connection. Flags that
//     name a server, a credential, a kubeconfig, a cache or a profile don't exist
//     in its command tree; paths are mapped below the home after kubectl has
//     parsed them; commands that listen, start programs or load plugins are left out.
//     The HTTP client, resolver and standard streams that libraries fall back to
//     are replaced by ones that refuse.
//   - Landlock lets the process read and write the home and connect to its own
//     loopback bridge, and nothing else: no other file, no program, no port. It
//     covers what the two layers above may have missed.
//   - Resource limits, a memory watchdog and a low priority keep one learner from
//     slowing others. Root's capabilities are dropped and no_new_privs is set. The
//     user id stays that of the server, which owns the home.
//   - The server dials. A child can only ask for the API server or an address
//     inside the cluster's network, and gets a file descriptor.
//
// Confinement reports whether Landlock is there. Without it the first two layers
// are all there is, and the server should be used by its owner only.
package terminal

import (
	"context"
	"net"
	"sync"

	"kubistro/internal/lab"
	"kubistro/internal/terminal/operate"
)

// Config is what a terminal needs.
type Config struct {
	// Program is the path of the executable that runs ChildMain (labserver
	// itself); Args are put before the child's own (for instance "terminal-child").
	Program string
	Args    []string
	// Home is the learner's folder on the server's disk; it appears as /home/learner.
	Home string
	// Token is the bearer token for the API server; ServerName and CAPEM verify it.
	Token      string
	ServerName string
	CAPEM      []byte
	// DialAPI opens a raw connection to the API server's TLS port; Dial one inside
	// the cluster's network (for curl, nslookup goes through LookupHost).
	DialAPI func(ctx context.Context) (net.Conn, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	// LookupHost resolves a cluster DNS name; nil: names of Services are found through the API.
	LookupHost func(ctx context.Context, name string) ([]string, error)
	Lang       string // messages of the terminal itself: a lab.Lang
	Cols, Rows int
	// Edit opens a file of the home in the browser's editor and returns when the
	// learner is done with it (kubectl edit); nil: editing is refused with a reason.
	Edit func(ctx context.Context, path string) error
	// Cluster is what the command lab works on; nil: there is no such command.
	Cluster operate.Cluster
	// Activity is called for each key press.
	Activity func()
}

// Block is one numbered piece of output. Numbers start at 1 and have no gaps.
type Block struct {
	N   uint64 `json:"n"`
	Out string `json:"out"`
}

// Terminal is one tab. It lives as long as its session, whoever is connected.
// All methods are safe for concurrent use.
type Terminal struct {
	c      Config
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when everything has ended
	screen *scrollback

	mu         sync.Mutex
	child      *child // nil: ended; the next key press starts a new one
	cols, rows int
	closed     bool
	wg         sync.WaitGroup
}

// Start starts the child. When the child ends (exit, crash, limit) a notice is
// printed and a new one is started at the next key press; files, history and numbering stay.
func Start(ctx context.Context, c Config) (*Terminal, error) {
	if c.Cols < 1 || c.Rows < 1 {
		c.Cols, c.Rows = 80, 24
	}
	t := &Terminal{c: c, done: make(chan struct{}), screen: newScrollback(), cols: c.Cols, rows: c.Rows}
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.startChild(); err != nil {
		t.cancel()
		return nil, lab.Fail(lab.CodeInternal, "終端機無法啟動，請再試一次。", "The terminal could not be started. Try again.").Because(err)
	}
	return t, nil
}

// startChild starts a child and the goroutine that follows it; t.mu is held.
func (t *Terminal) startChild() error {
	c, err := startChild(t.ctx, t.c, hello{Mode: modeInteractive, Cols: t.cols, Rows: t.rows})
	if err != nil {
		return err
	}
	t.child = c
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		code := c.follow(t.ctx, t.screen.write)
		t.ended(c, code)
	}()
	return nil
}

// ended prints why the child is gone.
func (t *Terminal) ended(c *child, code int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.child == c {
		t.child = nil
	}
	if t.closed {
		return
	}
	t.screen.write([]byte("\x1b[?2004l\r\n\x1b[33m" + endNotice(code).In(lab.Lang(t.c.Lang)) + "\x1b[0m\r\n"))
}

func endNotice(code int) lab.Text {
	switch code {
	case exitMemory:
		return lab.Text{ZhTW: "指令用掉太多記憶體，終端機已重新整理。按任意鍵開新的終端機，檔案都還在。", En: "A command used too much memory and the terminal was ended. Press any key for a new one; your files are kept."}
	case exitCrash, -1, 2:
		return lab.Text{ZhTW: "終端機意外結束了。按任意鍵開新的終端機，檔案和指令紀錄都還在。", En: "The terminal ended unexpectedly. Press any key for a new one; files and history are kept."}
	}
	return lab.Text{ZhTW: "終端機已結束。按任意鍵開新的終端機。", En: "The terminal has ended. Press any key for a new one."}
}

// Input types raw key presses (UTF-8).
func (t *Terminal) Input(in string) error {
	if t.c.Activity != nil {
		t.c.Activity()
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return lab.Fail(lab.CodeConflict, "這個終端機已經關閉。", "This terminal is closed.")
	}
	if t.child == nil {
		defer t.mu.Unlock()
		if err := t.startChild(); err != nil {
			return lab.Fail(lab.CodeInternal, "終端機無法重新啟動，請再試一次。", "The terminal could not be restarted. Try again.").Because(err)
		}
		return nil // the key press only asked for the new terminal
	}
	c := t.child
	t.mu.Unlock()
	if err := c.input(in); err != nil {
		return lab.Fail(lab.CodeBusy, "終端機目前沒有回應，請稍後再試。", "The terminal isn't taking input now. Try again in a moment.").Because(err)
	}
	return nil
}

// Resize sets the size in character cells.
func (t *Terminal) Resize(cols, rows int) {
	cols, rows = min(max(cols, 2), 1000), min(max(rows, 2), 1000)
	t.mu.Lock()
	t.cols, t.rows = cols, rows
	c := t.child
	t.mu.Unlock()
	if c != nil {
		c.resize(cols, rows)
	}
}

// Output returns the blocks after number n, oldest first, and a channel that is
// closed when there are more. When n is too old to have everything, the first
// block returned has reset=true meaning: clear the screen, this is the kept scrollback.
func (t *Terminal) Output(n uint64) (blocks []Block, reset bool, more <-chan struct{}) {
	return t.screen.after(n)
}

// Ack says that a client has everything up to n (flow control: a command's output
// is held back when the newest acknowledged block is too far behind, if a client is connected).
func (t *Terminal) Ack(n uint64) { t.screen.ack(n) }

// Done is closed when the terminal has been closed.
func (t *Terminal) Done() <-chan struct{} { return t.done }

// Close ends the child and waits for it.
func (t *Terminal) Close() error {
	t.mu.Lock()
	first := !t.closed
	t.closed = true
	c := t.child
	t.mu.Unlock()
	if !first {
		<-t.done
		return nil
	}
	if c != nil {
		c.kill()
	}
	t.cancel()
	t.screen.close()
	t.wg.Wait()
	close(t.done)
	return nil
}

// Exec runs one script in a fresh confined child without a terminal, as if a
// learner had typed it, and returns its combined output and exit code (for
// solutions and verification). When ctx ends first, err is its error.
func Exec(ctx context.Context, c Config, script string) (output string, code int, err error) {
	ch, err := startChild(ctx, c, hello{Mode: modeExec, Script: script, Cols: 120, Rows: 40})
	if err != nil {
		return "", 0, lab.Fail(lab.CodeInternal, "指令無法執行，請再試一次。", "The commands could not be run. Try again.").Because(err)
	}
	var out limited
	code = ch.follow(ctx, out.write)
	if ctx.Err() != nil {
		return out.String(), code, ctx.Err()
	}
	if code == -1 {
		return out.String(), code, lab.Fail(lab.CodeInternal, "執行指令的程式意外結束。", "The program that ran the commands ended unexpectedly.").Because(ch.err)
	}
	return out.String(), code, nil
}
