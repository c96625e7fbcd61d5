package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

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
