package shell

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
)

func base64Command(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "dDw:i", map[string]string{"decode": "d", "wrap:": "w"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	width, err := strconv.Atoi(value(opts, "w", "76"))
	if err != nil || width < 0 {
		return env.fail(args, "invalid wrap size")
	}
	return env.inputs(ctx, args, names[:min(1, len(names))], func(_ string, r io.Reader) error {
		if f["d"] || f["D"] {
			b, err := readAll(ctx, r)
			if err != nil {
				return err
			}
			b = bytes.Join(bytes.Fields(b), nil)
			out := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
			n, err := base64.StdEncoding.Decode(out, b)
			env.Out.Write(out[:n])
			if err != nil {
				return errors.New("invalid input")
			}
			return nil
		}
		w := &wrapWriter{w: env.output(), width: width}
		enc := base64.NewEncoder(base64.StdEncoding, w)
		if err := copyTo(ctx, enc, r); err != nil {
			return err
		}
		enc.Close()
		if w.col > 0 && width > 0 {
			w.w.WriteByte('\n')
		}
		return w.w.Flush()
	})
}

type wrapWriter struct {
	w          *bufio.Writer
	width, col int
}

func (w *wrapWriter) Write(p []byte) (int, error) {
	for _, c := range p {
		if err := w.w.WriteByte(c); err != nil {
			return 0, err
		}
		if w.col++; w.col == w.width {
			w.w.WriteByte('\n')
			w.col = 0
		}
	}
	return len(p), nil
}

func digest(h func() hash.Hash) Command {
	return func(ctx context.Context, env Env, args []string) int {
		return env.inputs(ctx, args, args[1:], func(name string, r io.Reader) error {
			d := h()
			if err := copyTo(ctx, d, r); err != nil {
				return err
			}
			_, err := fmt.Fprintf(env.Out, "%x  %s\n", d.Sum(nil), name)
			return err
		})
	}
}

func hexdump(ctx context.Context, env Env, args []string) int {
	_, names, err := getopt(args[1:], "CcxAn:t:v", nil)
	if err != nil {
		return env.wrongUse(args, err)
	}
	return env.inputs(ctx, args, names, func(_ string, r io.Reader) error {
		out := env.output()
		d := hex.Dumper(out)
		err := copyTo(ctx, d, r)
		d.Close()
		out.Flush()
		return err
	})
}

func stringsCommand(ctx context.Context, env Env, args []string) int {
	out := env.output()
	defer out.Flush()
	return env.inputs(ctx, args, args[1:], func(_ string, r io.Reader) error {
		var cur []byte
		flush := func() {
			if len(cur) >= 4 {
				out.Write(append(cur, '\n'))
			}
			cur = cur[:0]
		}
		err := copyTo(ctx, writerFunc(func(p []byte) {
			for _, b := range p {
				if b >= ' ' && b < 0x7f || b == '\t' {
					if cur = append(cur, b); len(cur) > maxLine {
						flush()
					}
				} else {
					flush()
				}
			}
		}), r)
		flush()
		return err
	})
}
