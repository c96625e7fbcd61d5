package shell

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// pager shows text page by page on a terminal and copies it elsewhere.
func pager(ctx context.Context, env Env, args []string) int {
	_, names, err := getopt(args[1:], "FRSXNin", nil)
	if err != nil {
		return env.wrongUse(args, err)
	}
	if !env.TTY || env.Term == nil || env.Size == nil || len(names) == 0 {
		return env.inputs(ctx, args, names, func(_ string, r io.Reader) error { return copyTo(ctx, env.Out, r) })
	}
	var h held
	if code := env.inputs(ctx, args, names, func(_ string, r io.Reader) error { return newLines(ctx, r).each(h.add) }); code != 0 {
		return code
	}
	defer env.Term.Raw()()
	io.WriteString(env.Out, "\x1b[?1049h")
	defer io.WriteString(env.Out, "\x1b[?1049l")
	top := 0
	key := make([]byte, 16)
	for {
		cols, rows := env.Size()
		page := max(rows-1, 1)
		top = max(min(top, len(h.lines)-page), 0)
		var b strings.Builder
		b.WriteString("\x1b[H")
		for i := range page {
			line := "~"
			if top+i < len(h.lines) {
				line = clip(strings.ReplaceAll(string(h.lines[top+i]), "\t", "    "), cols)
			}
			b.WriteString(line + "\x1b[K\r\n")
		}
		status := fmt.Sprintf("%s lines %d-%d/%d (space, b, q)", names[0], top+1, min(top+page, len(h.lines)), len(h.lines))
		b.WriteString("\x1b[7m" + clip(status, cols-1) + "\x1b[0m\x1b[K")
		io.WriteString(env.Out, b.String())
		n, err := env.In.Read(key)
		if err != nil {
			return 0
		}
		switch k := string(key[:n]); {
		case k == "q" || k == "\x03" || k == "Q":
			return 0
		case k == " " || k == "f" || k == "\x1b[6~":
			top += page
		case k == "b" || k == "\x1b[5~":
			top -= page
		case k == "j" || k == "\r" || k == "\x1b[B":
			top++
		case k == "k" || k == "\x1b[A":
			top--
		case k == "g" || k == "\x1b[H":
			top = 0
		case k == "G" || k == "\x1b[F":
			top = len(h.lines)
		}
	}
}
