package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func textTools() map[string]tool {
	return map[string]tool{
		"cat":    {cat, "[-nbEs] [FILE]...\nWrite files to standard output. -n numbers the lines."},
		"head":   {head, "[-n LINES | -c BYTES] [FILE]...\nWrite the first 10 lines."},
		"tail":   {tail, "[-n [+]LINES | -c BYTES] [-f] [FILE]...\nWrite the last 10 lines; -f waits for more."},
		"wc":     {wc, "[-lwcm] [FILE]...\nCount lines, words and bytes."},
		"cut":    {cut, "-f LIST [-d DELIM] [-s] | -c LIST [FILE]...\nWrite selected fields or characters of each line."},
		"sort":   {sortCommand, "[-nrufhVs] [-t SEP] [-k FIELD[,FIELD]] [-o FILE] [FILE]...\nSort lines."},
		"uniq":   {uniq, "[-c] [-d] [-u] [-i] [FILE]\nReport or leave out repeated lines."},
		"tr":     {tr, "[-d] [-s] [-c] SET1 [SET2]\nTranslate, squeeze or delete characters."},
		"tac":    {tac, "[FILE]...\nWrite the lines in reverse order."},
		"rev":    {rev, "[FILE]...\nReverse the characters of each line."},
		"nl":     {nl, "[-b a] [FILE]...\nNumber the lines."},
		"paste":  {paste, "[-d DELIMS] [-s] FILE...\nJoin lines of files side by side."},
		"tee":    {tee, "[-a] FILE...\nCopy standard input to files and to standard output."},
		"fold":   {fold, "[-w WIDTH] [FILE]...\nBreak long lines."},
		"column": {column, "[-t] [-s DELIMS] [FILE]...\nArrange fields in a table."},
	}
}

func cat(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "nbEsuAT", map[string]string{"number": "n", "number-nonblank": "b", "show-ends": "E", "squeeze-blank": "s"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	if !f["n"] && !f["b"] && !f["E"] && !f["s"] && !f["A"] {
		return env.inputs(ctx, args, names, func(_ string, r io.Reader) error { return copyTo(ctx, env.Out, r) })
	}
	n, blank := 0, false
	out := env.output()
	defer out.Flush()
	return env.inputs(ctx, args, names, func(_ string, r io.Reader) error {
		return newLines(ctx, r).each(func(line []byte) error {
			empty := len(line) == 0
			if f["s"] && empty && blank {
				return nil
			}
			blank = empty
			if f["b"] && !empty || f["n"] && !f["b"] {
				n++
				fmt.Fprintf(out, "%6d\t", n)
			}
			out.Write(line)
			if f["E"] || f["A"] {
				out.WriteByte('$')
			}
			return out.WriteByte('\n')
		})
	})
}

// copyTo copies until the end, an error or the end of ctx; it never keeps more than one buffer.
func copyTo(ctx context.Context, w io.Writer, r io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// obsolete turns "-5" into "-n 5", as head and tail take it.
func obsolete(args []string) []string {
	out := args[:1:1]
	for i, a := range args[1:] {
		if takesValue := args[i] == "-n" || args[i] == "-c"; !takesValue && len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9' {
			out = append(out, "-n", a[1:])
			continue
		}
		out = append(out, a)
	}
	return out
}

func head(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(obsolete(args)[1:], "n:c:qv", map[string]string{"lines:": "n", "bytes:": "c", "quiet": "q"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	byBytes := flags(opts)["c"]
	n, err := count(value(opts, "c", value(opts, "n", "10")))
	if err != nil {
		return env.fail(args, "%v", err)
	}
	first := true
	return env.inputs(ctx, args, names, func(name string, r io.Reader) error {
		if len(names) > 1 && !flags(opts)["q"] {
			if !first {
				fmt.Fprintln(env.Out)
			}
			fmt.Fprintf(env.Out, "==> %s <==\n", name)
		}
		first = false
		if byBytes {
			return copyTo(ctx, env.Out, io.LimitReader(r, n))
		}
		out := env.output()
		defer out.Flush()
		if n < 0 {
			return headAllBut(ctx, out, r, int(-n))
		}
		left := n
		if left == 0 {
			return nil
		}
		lines := newLines(ctx, r)
		for ; left > 0; left-- {
			line, ended, err := lines.next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			out.Write(line)
			if ended {
				out.WriteByte('\n')
			}
			if lines.br.Buffered() == 0 {
				out.Flush()
			}
		}
		return nil
	})
}

func headAllBut(ctx context.Context, out *bufio.Writer, r io.Reader, n int) error {
	var q held
	return newLines(ctx, r).each(func(line []byte) error {
		if err := q.add(line); err != nil {
			return err
		}
		if len(q.lines) > n {
			out.Write(q.lines[0])
			out.WriteByte('\n')
			q.size -= len(q.lines[0]) + 48
			q.lines = q.lines[1:]
		}
		return nil
	})
}

func tail(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(obsolete(args)[1:], "n:c:fqF", map[string]string{"lines:": "n", "bytes:": "c", "follow": "f", "quiet": "q"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	spec := value(opts, "c", value(opts, "n", "10"))
	fromStart := strings.HasPrefix(spec, "+")
	n, err := count(strings.TrimLeft(spec, "+-"))
	if err != nil {
		return env.fail(args, "%v", err)
	}
	first := true
	return env.inputs(ctx, args, names, func(name string, r io.Reader) error {
		if len(names) > 1 && !f["q"] {
			if !first {
				fmt.Fprintln(env.Out)
			}
			fmt.Fprintf(env.Out, "==> %s <==\n", name)
		}
		first = false
		var err error
		switch {
		case f["c"]:
			err = tailBytes(ctx, env.Out, r, n, fromStart)
		default:
			err = tailLines(ctx, env.Out, r, n, fromStart)
		}
		if err == nil && (f["f"] || f["F"]) && name != "-" {
			return follow(ctx, env.Out, r)
		}
		return err
	})
}

func tailLines(ctx context.Context, w io.Writer, r io.Reader, n int64, fromStart bool) error {
	out := bufio.NewWriter(w)
	defer out.Flush()
	if fromStart {
		i := int64(0)
		return newLines(ctx, r).each(func(line []byte) error {
			if i++; i >= n {
				out.Write(line)
				return out.WriteByte('\n')
			}
			return nil
		})
	}
	var q held
	lines, last := newLines(ctx, r), true
	for {
		line, ended, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = q.add(line)
		}
		if err != nil {
			return err
		}
		last = ended
		if int64(len(q.lines)) > n {
			q.size -= len(q.lines[0]) + 48
			q.lines = q.lines[1:]
		}
	}
	for i, l := range q.lines {
		out.Write(l)
		if last || i < len(q.lines)-1 {
			out.WriteByte('\n')
		}
	}
	return nil
}

func tailBytes(ctx context.Context, w io.Writer, r io.Reader, n int64, fromStart bool) error {
	if fromStart {
		if _, err := io.CopyN(io.Discard, r, max(n-1, 0)); err != nil {
			return nil
		}
		return copyTo(ctx, w, r)
	}
	n = min(n, maxHeld)
	var keep []byte
	buf := make([]byte, 32<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := r.Read(buf)
		keep = append(keep, buf[:m]...)
		if int64(len(keep)) > 2*n+64<<10 {
			keep = append(keep[:0], keep[int64(len(keep))-n:]...)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	_, err := w.Write(keep[max(int64(len(keep))-n, 0):])
	return err
}

// follow copies what is appended to a file until ctx is done.
func follow(ctx context.Context, w io.Writer, r io.Reader) error {
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		if err := copyTo(ctx, w, r); err != nil {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func wc(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "lwcm", map[string]string{"lines": "l", "words": "w", "bytes": "c", "chars": "m"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	if len(opts) == 0 {
		f = map[string]bool{"l": true, "w": true, "c": true}
	}
	var total [4]int64
	show := func(c [4]int64, name string) {
		var parts []string
		for i, k := range []string{"l", "w", "m", "c"} {
			if f[k] {
				if len(names) <= 1 && len(f) == 1 {
					parts = append(parts, strconv.FormatInt(c[i], 10))
				} else {
					parts = append(parts, fmt.Sprintf("%7d", c[i]))
				}
			}
		}
		if name != "-" {
			parts = append(parts, name)
		}
		fmt.Fprintln(env.Out, strings.Join(parts, " "))
	}
	code := env.inputs(ctx, args, names, func(name string, r io.Reader) error {
		var c [4]int64
		inWord := false
		err := copyTo(ctx, writerFunc(func(p []byte) {
			c[0] += int64(bytes.Count(p, []byte("\n")))
			c[3] += int64(len(p))
			for _, b := range p {
				if space := b == ' ' || b >= '\t' && b <= '\r'; !space && !inWord {
					inWord = true
					c[1]++
				} else if space {
					inWord = false
				}
				if utf8.RuneStart(b) {
					c[2]++
				}
			}
		}), r)
		if err != nil {
			return err
		}
		show(c, name)
		for i := range c {
			total[i] += c[i]
		}
		return nil
	})
	if len(names) > 1 {
		show(total, "total")
	}
	return code
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

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
