package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

func tac(ctx context.Context, env Env, args []string) int {
	out := env.output()
	defer out.Flush()
	return env.inputs(ctx, args, args[1:], func(_ string, r io.Reader) error {
		var h held
		if err := newLines(ctx, r).each(h.add); err != nil {
			return err
		}
		for i := len(h.lines) - 1; i >= 0; i-- {
			out.Write(h.lines[i])
			out.WriteByte('\n')
		}
		return nil
	})
}

func rev(ctx context.Context, env Env, args []string) int {
	out := env.output()
	defer out.Flush()
	return env.inputs(ctx, args, args[1:], func(_ string, r io.Reader) error {
		return newLines(ctx, r).each(func(line []byte) error {
			rs := []rune(string(line))
			for i := len(rs) - 1; i >= 0; i-- {
				out.WriteRune(rs[i])
			}
			return out.WriteByte('\n')
		})
	})
}

func nl(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "b:", nil)
	if err != nil {
		return env.wrongUse(args, err)
	}
	all := value(opts, "b", "t") == "a"
	n := 0
	out := env.output()
	defer out.Flush()
	return env.inputs(ctx, args, names, func(_ string, r io.Reader) error {
		return newLines(ctx, r).each(func(line []byte) error {
			if len(line) == 0 && !all {
				_, err := out.WriteString("\n")
				return err
			}
			n++
			_, err := fmt.Fprintf(out, "%6d\t%s\n", n, line)
			return err
		})
	})
}

func paste(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "d:s", nil)
	if err != nil {
		return env.wrongUse(args, err)
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	if len(names) > 64 {
		return env.fail(args, "too many files")
	}
	delims := []rune(unescape(value(opts, "d", "\t")))
	if len(delims) == 0 {
		delims = []rune{0}
	}
	out := env.output()
	defer out.Flush()
	var readers []*lineReader
	for _, n := range names {
		r, err := env.open(n)
		if err != nil {
			return env.fail(args, "%s: %s", n, errText(err))
		}
		defer r.Close()
		readers = append(readers, newLines(ctx, r))
	}
	sep := func(i int) {
		if d := delims[i%len(delims)]; d != 0 {
			out.WriteRune(d)
		}
	}
	if flags(opts)["s"] {
		for _, l := range readers {
			i := 0
			if err := l.each(func(line []byte) error {
				if i > 0 {
					sep(i - 1)
				}
				i++
				_, err := out.Write(line)
				return err
			}); err != nil {
				return env.fail(args, "%s", errText(err))
			}
			out.WriteByte('\n')
		}
		return 0
	}
	for ctx.Err() == nil {
		var row [][]byte
		any := false
		for _, l := range readers {
			line, _, err := l.next()
			any = any || err == nil
			row = append(row, bytes.Clone(line))
		}
		if !any {
			return 0
		}
		for i, c := range row {
			if i > 0 {
				sep(i - 1)
			}
			out.Write(c)
		}
		out.WriteByte('\n')
	}
	return 130
}

func tee(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "ai", map[string]string{"append": "a"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	mode := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if flags(opts)["a"] {
		mode = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	code := 0
	writers := []io.Writer{env.Out}
	for _, n := range names {
		f, err := env.FS.OpenFile(abs(env.Dir, n), mode, 0o644)
		if err != nil {
			code = env.fail(args, "%s: %s", n, errText(err))
			continue
		}
		defer f.Close()
		writers = append(writers, f)
	}
	if err := copyTo(ctx, io.MultiWriter(writers...), env.In); err != nil && ctx.Err() == nil {
		return env.fail(args, "%s", errText(err))
	}
	return code
}

func fold(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "w:s", nil)
	if err != nil {
		return env.wrongUse(args, err)
	}
	w, err := strconv.Atoi(value(opts, "w", "80"))
	if err != nil || w < 1 {
		return env.fail(args, "invalid number of columns")
	}
	out := env.output()
	defer out.Flush()
	return env.inputs(ctx, args, names, func(_ string, r io.Reader) error {
		return newLines(ctx, r).each(func(line []byte) error {
			rs := []rune(string(line))
			for len(rs) > w {
				out.WriteString(string(rs[:w]) + "\n")
				rs = rs[w:]
			}
			_, err := out.WriteString(string(rs) + "\n")
			return err
		})
	})
}

func column(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "ts:", map[string]string{"table": "t"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	seps := value(opts, "s", " \t")
	var rows [][]string
	var widths []int
	var h held
	code := env.inputs(ctx, args, names, func(_ string, r io.Reader) error {
		return newLines(ctx, r).each(func(line []byte) error {
			if err := h.add(line); err != nil {
				return err
			}
			cells := strings.FieldsFunc(string(line), func(r rune) bool { return strings.ContainsRune(seps, r) })
			for i, c := range cells {
				if i == len(widths) {
					widths = append(widths, 0)
				}
				widths[i] = max(widths[i], stringWidth(c))
			}
			rows = append(rows, cells)
			return nil
		})
	})
	out := env.output()
	defer out.Flush()
	for _, cells := range rows {
		for i, c := range cells {
			out.WriteString(c)
			if i < len(cells)-1 {
				out.WriteString(strings.Repeat(" ", widths[i]-stringWidth(c)+2))
			}
		}
		out.WriteByte('\n')
	}
	return code
}
