package shell

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	maxPaste    = 256 << 10 // bytes of one paste
	maxTypedIn  = 1 << 20   // bytes waiting to be read
	pasteStart  = "\x1b[200~"
	pasteEnd    = "\x1b[201~"
	keyRefused  = 0xF8FF // private use: a paste that was too long
	keyPasteNL  = 0xF8FE // private use: a line end inside a paste
	keyPasteTab = 0xF8FD // private use: a tab inside a paste
)

type ttyMode int

const (
	modeEdit ttyMode = iota
	modeCooked
	modeRaw
)

// tty is the line discipline: it takes raw key presses and gives them to the
// line editor, to a command as edited lines, or to a command unchanged.
type tty struct {
	out io.Writer

	mu       sync.Mutex
	mode     ttyMode
	keys     []byte        // for the editor
	cooked   []byte        // finished lines for the command
	line     []byte        // the unfinished line in cooked mode
	eof      int           // ends of file typed in cooked mode
	closed   bool          // In ended
	changed  chan struct{} // closed when any of the above changes
	paste    []byte        // an unfinished paste, nil outside
	pasted   int
	refused  bool
	held     []byte // the beginning of what may be a paste mark
	cancel   func() // Ctrl-C while a command runs
	stopped  func() // Ctrl-Z while a command runs
	size     Size
	watchers map[chan Size]struct{}

	outMu   sync.Mutex
	discard bool // after Ctrl-C: drop what the command still writes
	column0 bool // the cursor is at the beginning of a line
}

func newTTY(out io.Writer, size Size) *tty {
	return &tty{out: out, size: size, changed: make(chan struct{}), watchers: map[chan Size]struct{}{}, column0: true}
}

// pump takes key presses until in ends.
func (t *tty) pump(in io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := in.Read(buf)
		t.typed(buf[:n])
		if err != nil {
			t.mu.Lock()
			t.closed = true
			cancel := t.cancel
			t.notify()
			t.mu.Unlock()
			if cancel != nil { // as in begin: what was typed last may still end by itself
				time.AfterFunc(time.Second, cancel)
			}
			return
		}
	}
}

func (t *tty) notify() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// typed takes key presses.
func (t *tty) typed(p []byte) {
	t.mu.Lock()
	echo, acts := t.accept(p)
	t.notify()
	t.mu.Unlock()
	if len(echo) > 0 {
		t.write(echo, true)
	}
	for _, f := range acts {
		f()
	}
}

func (t *tty) accept(p []byte) (echo []byte, acts []func()) {
	if len(t.held) > 0 {
		p = append(t.held, p...)
		t.held = nil
	}
	for len(p) > 0 {
		if t.paste != nil {
			p = t.pasting(p)
			continue
		}
		if t.mode != modeRaw {
			if bytes.HasPrefix(p, []byte(pasteStart)) {
				t.paste, t.pasted, t.refused = []byte{}, 0, false
				p = p[len(pasteStart):]
				continue
			}
			if p[0] == 0x1b && len(p) < len(pasteStart) && len(p) > 2 && bytes.HasPrefix([]byte(pasteStart), p) {
				t.held = bytes.Clone(p)
				return echo, acts
			}
		}
		switch t.mode {
		case modeEdit:
			if len(t.keys) < maxTypedIn {
				t.keys = append(t.keys, p[0])
			}
			if p[0] == 3 { // an interrupt also drops what was typed ahead
				t.keys = append(t.keys[:0], 3)
			}
			p = p[1:]
		case modeRaw:
			if len(t.cooked)+len(p) < maxTypedIn {
				t.cooked = append(t.cooked, p...)
			}
			p = nil
		case modeCooked:
			var e []byte
			e, p = t.cook(p, &acts)
			echo = append(echo, e...)
		}
	}
	return echo, acts
}

// cook handles one key in cooked mode and returns what to echo.
func (t *tty) cook(p []byte, acts *[]func()) (echo, rest []byte) {
	c := p[0]
	rest = p[1:]
	switch {
	case c == 3:
		t.line, t.cooked, t.eof = nil, nil, 0
		if t.cancel != nil {
			*acts = append(*acts, t.cancel)
		}
		return []byte("^C\r\n"), rest
	case c == 26:
		if t.stopped != nil {
			*acts = append(*acts, t.stopped)
		}
		return nil, rest
	case c == 4:
		if len(t.line) == 0 {
			t.eof++
		} else {
			t.cooked = append(t.cooked, t.line...)
			t.line = nil
		}
		return nil, rest
	case c == '\r' || c == '\n':
		if len(t.cooked) < maxTypedIn {
			t.cooked = append(append(t.cooked, t.line...), '\n')
		}
		t.line = nil
		return []byte("\r\n"), rest
	case c == 0x7f || c == 8:
		if len(t.line) == 0 {
			return nil, rest
		}
		r, n := utf8.DecodeLastRune(t.line)
		t.line = t.line[:len(t.line)-n]
		for range runeWidth(r) {
			echo = append(echo, "\b \b"...)
		}
		return echo, rest
	case c == 21 || c == 23: // Ctrl-U, Ctrl-W
		for len(t.line) > 0 {
			r, n := utf8.DecodeLastRune(t.line)
			t.line = t.line[:len(t.line)-n]
			for range runeWidth(r) {
				echo = append(echo, "\b \b"...)
			}
		}
		return echo, rest
	case c == 0x1b:
		return nil, p[escapeLen(string(p[:min(len(p), 16)])):]
	case c < ' ' && c != '\t':
		return nil, rest
	}
	if len(t.line) < 64<<10 {
		t.line = append(t.line, c)
		echo = []byte{c}
	}
	return echo, rest
}

// ReadContext gives a command the lines (or, in raw mode, the keys) typed for it.
func (t *tty) ReadContext(ctx context.Context, p []byte) (int, error) {
	for {
		t.mu.Lock()
		t.takeTypedAhead()
		if len(t.cooked) > 0 {
			n := len(p)
			if i := bytes.IndexByte(t.cooked, '\n'); i >= 0 && t.mode == modeCooked {
				n = min(n, i+1)
			}
			n = copy(p[:n], t.cooked)
			t.cooked = t.cooked[n:]
			t.mu.Unlock()
			return n, nil
		}
		if t.eof > 0 {
			t.eof--
			t.mu.Unlock()
			return 0, io.EOF
		}
		closed, changed := t.closed, t.changed
		t.mu.Unlock()
		if closed {
			return 0, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// takeTypedAhead gives a command that reads the keys which came before it
// began, as a terminal's input queue does, without echo; the lines of a paste
// are commands and stay. t.mu is held.
func (t *tty) takeTypedAhead() {
	if len(t.keys) == 0 || bytes.ContainsFunc(t.keys, isPasteMark) {
		return
	}
	keys, cooked, line := t.keys, t.cooked, t.line
	t.keys, t.cooked, t.line = nil, nil, nil
	if t.mode == modeRaw {
		t.cooked = append(keys, cooked...)
		return
	}
	for len(keys) > 0 {
		_, keys = t.cook(keys, new([]func()))
	}
	if len(cooked) > 0 {
		t.cooked = slices.Concat(t.cooked, t.line, cooked)
		t.line = nil
	}
	t.line = append(t.line, line...)
}

// begin hands the terminal to a command. An interrupt that was typed between
// its line and now is meant for it.
func (t *tty) begin(cancel, stopped func()) {
	t.mu.Lock()
	t.mode, t.cancel, t.stopped = modeCooked, cancel, stopped
	if t.closed { // nobody can stop the command any more
		time.AfterFunc(time.Second, cancel)
	}
	t.outMu.Lock()
	t.discard = false
	t.outMu.Unlock()
	interrupted := len(t.keys) > 0 && t.keys[0] == 3
	if interrupted {
		t.keys = t.keys[1:]
	}
	t.mu.Unlock()
	if interrupted {
		t.write([]byte("^C\r\n"), true)
		cancel()
	}
}

// finish gives the terminal back to the editor; what the command left unread
// is typed into the next command line, as on a real terminal.
func (t *tty) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := append(t.cooked, t.line...)
	t.keys = append(bytes.ReplaceAll(left, []byte("\n"), []byte("\r")), t.keys...)
	t.cooked, t.line, t.eof = nil, nil, 0
	t.mode, t.cancel, t.stopped = modeEdit, nil, nil
	t.outMu.Lock()
	t.discard = false
	t.outMu.Unlock()
}

// drop makes the terminal swallow what the interrupted command still writes.
func (t *tty) drop() {
	t.outMu.Lock()
	t.discard = true
	t.outMu.Unlock()
}

// Raw implements Terminal.
func (t *tty) Raw() (restore func()) {
	t.mu.Lock()
	t.mode = modeRaw
	t.cooked = append(t.cooked, t.line...)
	t.line = nil
	t.mu.Unlock()
	return func() {
		t.mu.Lock()
		if t.mode == modeRaw {
			t.mode = modeCooked
		}
		t.mu.Unlock()
	}
}

// Resizes implements Terminal.
func (t *tty) Resizes() (<-chan Size, func()) {
	ch := make(chan Size, 1)
	t.mu.Lock()
	t.watchers[ch] = struct{}{}
	ch <- t.size
	t.mu.Unlock()
	return ch, func() {
		t.mu.Lock()
		delete(t.watchers, ch)
		t.mu.Unlock()
	}
}

// resize sets a new size.
func (t *tty) resize(s Size) {
	if s.Cols < 1 || s.Rows < 1 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size = s
	for ch := range t.watchers {
		select {
		case <-ch:
		default:
		}
		ch <- s
	}
	t.notify()
}

func (t *tty) dims() (cols, rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size.Cols, t.size.Rows
}

// Write is a command's output: line ends become those of a terminal.
func (t *tty) Write(p []byte) (int, error) {
	t.mu.Lock()
	raw := t.mode == modeRaw
	t.mu.Unlock()
	if !raw {
		if err := t.write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")), false); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	if err := t.write(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// write sends bytes to the terminal; own ones are never dropped.
func (t *tty) write(p []byte, own bool) error {
	t.outMu.Lock()
	drop := t.discard && !own
	if !drop && len(p) > 0 {
		t.column0 = p[len(p)-1] == '\n'
	}
	t.outMu.Unlock()
	if drop {
		return nil
	}
	_, err := t.out.Write(p)
	return err
}
