package shell_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"kubistro/internal/shell"
)

// typed runs an interactive shell on the given key presses, which end with the
// end of input, and returns what the terminal got and the entered lines.
func typed(t testing.TB, fsys shell.FS, keys string, history ...string) (out string, lines []string) {
	t.Helper()
	sh, err := shell.New(shell.Options{FS: fsys, Commands: shell.Commands(), Hostname: "kubistro", Env: []string{"HOME=/"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var buf lockedBuffer
	sh.Interactive(ctx, shell.InteractiveOptions{In: strings.NewReader(keys), Out: &buf, Size: shell.Size{Cols: 40, Rows: 10}, History: history,
		Prompt: func() string { return "$ " }, OnLine: func(l string) { lines = append(lines, l) }})
	if ctx.Err() != nil {
		t.Fatalf("%q didn't end", keys)
	}
	return buf.String(), lines
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var _ io.Writer = (*lockedBuffer)(nil)

func TestEditing(t *testing.T) {
	fsys := newRootFS(t)
	for _, n := range []string{"grill.yaml", "menu one.txt"} {
		f, err := fsys.Root.Create(n)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for _, tt := range []struct{ name, keys, want string }{
		{"plain", ": abc\r", ": abc"},
		{"backspace", ": abx\x7fc\r", ": abc"},
		{"left and insert", ": ac\x1b[Db\r", ": abc"},
		{"home and end", "bc\x1b[H: a\x1b[F d\r", ": abc d"},
		{"ctrl-a ctrl-k", "junk\x01\x0b: ok\r", ": ok"},
		{"ctrl-u", "junk\x15: ok\r", ": ok"},
		{"ctrl-w", ": one two\x17three\r", ": one three"},
		{"yank", ": one two\x17\x19\x19\r", ": one twotwo"},
		{"delete", ": axbc\x1b[D\x1b[D\x1b[D\x1b[3~\r", ": abc"},
		{"history", "\x1b[A\x1b[A\r", ": first"},
		{"history down", "\x1b[A\x1b[A\x1b[B\r", ": second"},
		{"reverse search", "\x12irs\r", ": first"},
		{"wide characters", ": 中文\x7f字\r", ": 中字"},
		{"completion of a file", ": gr\t\r", ": grill.yaml "},
		{"completion with a space", ": me\t\r", `: menu\ one.txt `},
		{"completion of a command", "base6\t -d\r", "base64  -d"},
		{"word moves", ": a b\x1bb\x1bbx\r", ": xa b"},
		{"continuation", ": 'a\rb'\r", ": 'a\nb'"},
		{"continuation by backslash", ": a \\\rb\r", ": a \\\nb"},
		{"loop", "for i in 1; do\r:\rdone\r", "for i in 1; do\n:\ndone"},
		{"here-document", "cat <<E\rx\rE\r", "cat <<E\nx\nE"},
		{"unknown escape", ": a\x1b[99~b\r", ": ab"},
		{"pasted", "\x1b[200~: a\tb\x1b[201~\r", ": a    b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, lines := typed(t, fsys, tt.keys, ": first", ": second")
			if len(lines) != 1 || lines[0] != tt.want {
				t.Errorf("got %q, want %q", lines, tt.want)
			}
		})
	}
	t.Run("Ctrl-C drops the line", func(t *testing.T) {
		if out, lines := typed(t, fsys, "junk\x03"); len(lines) != 0 || !strings.Contains(out, "^C") && out != "" {
			t.Errorf("%q %q", out, lines)
		}
	})
	t.Run("long lines wrap", func(t *testing.T) {
		long := ": " + strings.Repeat("0123456789", 12)
		if _, lines := typed(t, fsys, long+"\x1b[Hx\x7f\r"); len(lines) != 1 || lines[0] != long {
			t.Errorf("%q", lines)
		}
	})
}

func TestTypedAhead(t *testing.T) {
	fsys := newRootFS(t)
	for _, tt := range []struct{ name, keys, out, lines string }{
		{"a command reads it", "cat -E\rone\rtwo\r\x04", "one$\r\ntwo$\r\n", "cat -E"},
		{"it is edited", "cat -E\ronx\x7fe\r\x04", "one$\r\n", "cat -E"},
		{"a command that doesn't read leaves it", "echo a\recho b\r", "b\r\n", "echo a|echo b"},
		{"cursor keys stay", "echo a\r\x1b[A\r", "a\r\n", "echo a|echo a"},
		{"pasted lines are commands", "\x1b[200~cat\necho x\n\x1b[201~\x04", "x\r\n", "cat|echo x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, lines := typed(t, fsys, tt.keys)
			if !strings.Contains(out, tt.out) || strings.Join(lines, "|") != tt.lines {
				t.Errorf("%q, lines %q", out, lines)
			}
		})
	}
}

func FuzzEditor(f *testing.F) {
	for _, s := range []string{"echo a\r", "\x1b[A\x1b[B\r", "\x12x\x7f\r", "a\t\t\r", "\x1b[200~x\ny\x1b[201~\r", "中\x7f\x1b[D\x1b[3~", "\xe4\xb8", "\x1b[", "'\r\r'\r"} {
		f.Add(s)
	}
	fsys := newRootFS(f)
	f.Fuzz(func(t *testing.T, keys string) {
		if strings.ContainsAny(keys, ";|&") || len(keys) > 500 {
			return
		}
		typed(t, fsys, keys)
	})
}
