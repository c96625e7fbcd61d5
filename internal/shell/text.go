package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
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
