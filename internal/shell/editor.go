package shell

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
	"unicode"
)

var errInterrupted = errors.New("interrupted")

// lineEditor edits one command line at a time.
type lineEditor struct {
	t        *tty
	o        *InteractiveOptions
	history  []string
	complete Completer

	prompt string
	buf    []rune
	pos    int
	row    int // screen row of the cursor below the prompt's first
	rows   int
	hist   int // index in history; len(history): the line being typed
	draft  string
	killed []rune
	tabs   int // successive Tab presses
}

// readLine reads one line; io.EOF for Ctrl-D on an empty line or the end of
// input, errInterrupted for Ctrl-C.
func (e *lineEditor) readLine(ctx context.Context, prompt string) (string, error) {
	if !e.t.column0 {
		e.put("\r\n")
	}
	e.prompt, e.buf, e.pos, e.hist, e.draft, e.row, e.rows = prompt, nil, 0, len(e.history), "", 0, 1
	e.put("\x1b[?2004h" + prompt)
	defer e.put("\x1b[?2004l")
	for {
		r, seq, resized, err := e.t.key(ctx)
		if err != nil {
			return "", err
		}
		if resized {
			e.refresh()
			continue
		}
		if r != '\t' {
			e.tabs = 0
		}
		if seq != "" {
			e.escape(seq)
			continue
		}
		switch r {
		case '\r', '\n', keyPasteNL:
			e.end()
			e.put("\r\n")
			return string(e.buf), nil
		case 3:
			e.end()
			e.put("^C\r\n")
			return "", errInterrupted
		case 4:
			if len(e.buf) == 0 {
				e.put("\r\n")
				return "", io.EOF
			}
			e.deleteAt(e.pos)
		case 18:
			line, done, err := e.search(ctx)
			if err != nil {
				return "", err
			}
			if done {
				e.end()
				e.put("\r\n")
				return line, nil
			}
		case keyRefused:
			e.notice(pasteMessage(e.o.Lang))
		case '\t':
			e.tab(ctx)
		default:
			e.edit(r)
		}
	}
}

// edit applies a control key or inserts a character.
func (e *lineEditor) edit(r rune) {
	switch r {
	case 1:
		e.pos = 0
	case 5:
		e.pos = len(e.buf)
	case 2:
		e.pos = max(e.pos-1, 0)
	case 6:
		e.pos = min(e.pos+1, len(e.buf))
	case 8, 0x7f:
		if e.pos > 0 {
			e.pos--
			e.buf = append(e.buf[:e.pos], e.buf[e.pos+1:]...)
		}
	case 11:
		e.killed = append([]rune{}, e.buf[e.pos:]...)
		e.buf = e.buf[:e.pos]
	case 21:
		e.killed = append([]rune{}, e.buf[:e.pos]...)
		e.buf = append([]rune{}, e.buf[e.pos:]...)
		e.pos = 0
	case 23:
		i := e.wordLeft(unicode.IsSpace)
		e.killed = append([]rune{}, e.buf[i:e.pos]...)
		e.buf = append(e.buf[:i], e.buf[e.pos:]...)
		e.pos = i
	case 25:
		e.insert(e.killed)
	case 12:
		e.put("\x1b[H\x1b[2J")
		e.row = 0
	case 14:
		e.recall(1)
	case 16:
		e.recall(-1)
	case 26:
		return
	case keyPasteTab:
		e.insert([]rune("    "))
	default:
		if r < ' ' || len(e.buf) > 64<<10 {
			return
		}
		e.insert([]rune{r})
		if e.pos == len(e.buf) && r >= ' ' && r != unicode.ReplacementChar {
			cols, _ := e.t.dims()
			_, col := place(stringWidth(e.prompt), e.buf, cols)
			if col > runeWidth(r) && col < cols && e.rows == e.row+1 { // no wrap: just append
				e.put(string(r))
				return
			}
		}
	}
	e.refresh()
}

func (e *lineEditor) insert(rs []rune) {
	e.buf = append(e.buf[:e.pos], append(append([]rune{}, rs...), e.buf[e.pos:]...)...)
	e.pos += len(rs)
}

func (e *lineEditor) deleteAt(i int) {
	if i < len(e.buf) {
		e.buf = append(e.buf[:i], e.buf[i+1:]...)
	}
	e.refresh()
}

func (e *lineEditor) wordLeft(space func(rune) bool) int {
	i := e.pos
	for i > 0 && space(e.buf[i-1]) {
		i--
	}
	for i > 0 && !space(e.buf[i-1]) {
		i--
	}
	return i
}

func notWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

func (e *lineEditor) escape(seq string) {
	switch seq {
	case "\x1b[A", "\x1bOA":
		e.recall(-1)
	case "\x1b[B", "\x1bOB":
		e.recall(1)
	case "\x1b[C", "\x1bOC":
		e.pos = min(e.pos+1, len(e.buf))
	case "\x1b[D", "\x1bOD":
		e.pos = max(e.pos-1, 0)
	case "\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~":
		e.pos = 0
	case "\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~":
		e.pos = len(e.buf)
	case "\x1b[3~":
		e.deleteAt(e.pos)
		return
	case "\x1b[1;5D", "\x1b[1;3D", "\x1bb":
		e.pos = e.wordLeft(notWord)
	case "\x1b[1;5C", "\x1b[1;3C", "\x1bf":
		for e.pos < len(e.buf) && notWord(e.buf[e.pos]) {
			e.pos++
		}
		for e.pos < len(e.buf) && !notWord(e.buf[e.pos]) {
			e.pos++
		}
	case "\x1b\x7f":
		i := e.wordLeft(notWord)
		e.buf = append(e.buf[:i], e.buf[e.pos:]...)
		e.pos = i
	case "\x1b.":
		if len(e.history) > 0 {
			words := strings.Fields(e.history[len(e.history)-1])
			e.insert([]rune(words[len(words)-1]))
		}
	default:
		return
	}
	e.refresh()
}

// recall moves through the history.
func (e *lineEditor) recall(d int) {
	to := e.hist + d
	if to < 0 || to > len(e.history) {
		return
	}
	if e.hist == len(e.history) {
		e.draft = string(e.buf)
	}
	e.hist = to
	line := e.draft
	if to < len(e.history) {
		line = e.history[to]
	}
	e.buf = []rune(strings.ReplaceAll(line, "\n", " "))
	if to < len(e.history) && strings.Contains(line, "\n") {
		e.buf = []rune(line)
	}
	e.pos = len(e.buf)
}

// tab completes the word before the cursor; the second Tab lists what is possible.
func (e *lineEditor) tab(ctx context.Context) {
	e.tabs++
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	line := string(e.buf[:e.pos])
	start, all := e.complete(ctx, line, len(line))
	if len(all) == 0 || start < 0 || start > len(line) {
		return
	}
	prefix := all[0]
	for _, p := range all[1:] {
		for !strings.HasPrefix(p, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	prefix = strings.ToValidUTF8(prefix, "")
	if len(all) == 1 && !strings.HasSuffix(prefix, "/") && !strings.HasSuffix(prefix, "=") {
		prefix += " "
	}
	word := line[start:]
	if len(prefix) > len(word) || len(all) == 1 {
		rest := e.buf[e.pos:]
		head := []rune(line[:start] + prefix)
		e.buf = append(append([]rune{}, head...), rest...)
		e.pos = len(head)
		e.tabs = 0
		e.refresh()
		return
	}
	if e.tabs < 2 {
		return
	}
	cols, _ := e.t.dims()
	shown := all
	for i, p := range shown {
		if j := strings.LastIndex(strings.TrimSuffix(p, "/"), "/"); j >= 0 && strings.HasPrefix(word, p[:j+1]) {
			shown[i] = p[j+1:]
		}
	}
	more := ""
	if len(shown) > 200 {
		more = "...\r\n"
		shown = shown[:200]
	}
	e.notice(strings.Join(layout(shown, cols), "\r\n") + strings.TrimSuffix("\r\n"+more, "\r\n"))
}

// notice prints below the line and draws the line again.
func (e *lineEditor) notice(text string) {
	e.end()
	e.put("\r\n" + strings.TrimRight(text, "\r\n") + "\r\n")
	e.row, e.rows = 0, 1
	e.refresh()
}

// end puts the cursor behind the last character.
func (e *lineEditor) end() {
	if e.pos != len(e.buf) {
		e.pos = len(e.buf)
		e.refresh()
	}
}

func (e *lineEditor) put(s string) { e.t.write([]byte(s), true) }

// place is where the cursor is after text that starts at column col.
func place(col int, text []rune, cols int) (row, at int) {
	cols = max(cols, 2)
	row, at = col/cols, col%cols
	for _, r := range text {
		if r == '\n' {
			row, at = row+1, 0
			continue
		}
		w := runeWidth(r)
		if at+w > cols {
			row, at = row+1, 0
		}
		at += w
		if at == cols {
			row, at = row+1, 0
		}
	}
	return row, at
}

// refresh draws prompt and line anew and places the cursor.
func (e *lineEditor) refresh() {
	cols, _ := e.t.dims()
	var b strings.Builder
	if e.row > 0 {
		b.WriteString(ansi(e.row, 'A'))
	}
	b.WriteString("\r\x1b[J" + e.prompt + strings.ReplaceAll(string(e.buf), "\n", "\r\n"))
	width := stringWidth(e.prompt)
	endRow, endCol := place(width, e.buf, cols)
	if endCol == 0 && endRow > 0 && len(e.buf) > 0 && e.buf[len(e.buf)-1] != '\n' {
		b.WriteString(" \r") // make the terminal wrap now
	}
	row, col := place(width, e.buf[:e.pos], cols)
	if up := endRow - row; up > 0 {
		b.WriteString(ansi(up, 'A'))
	}
	b.WriteByte('\r')
	if col > 0 {
		b.WriteString(ansi(col, 'C'))
	}
	e.row, e.rows = row, endRow+1
	e.put(b.String())
}

func ansi(n int, verb byte) string {
	return "\x1b[" + itoa(n) + string(verb)
}
