package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine bounds a line in memory; longer ones are a fault of the input.
const maxLine = 1 << 20

var errLineTooLong = errors.New("line too long")

func (e Env) fail(args []string, format string, a ...any) int {
	fmt.Fprintf(e.Err, args[0]+": "+format+"\n", a...)
	return 1
}

// wrongUse reports a flag that can't be parsed.
func (e Env) wrongUse(args []string, err error) int {
	fmt.Fprintf(e.Err, "%s: %v\nTry '%s --help' for more information.\n", args[0], err, args[0])
	return 2
}

// open opens a file for reading; "-" is standard input.
func (e Env) open(name string) (io.ReadCloser, error) {
	switch {
	case name == "-" || name == "/dev/stdin":
		return io.NopCloser(flushFirst{e.In, e.buffers}), nil
	case name == "":
		return nil, os.ErrNotExist
	}
	f, err := e.FS.OpenFile(abs(e.Dir, name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, errIsDir
	}
	return f, nil
}

// inputs calls f with each named file, or with standard input when none is
// named, and returns 1 when one could not be opened or read.
func (e Env) inputs(ctx context.Context, args, names []string, f func(name string, r io.Reader) error) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, n := range names {
		if ctx.Err() != nil {
			return 130
		}
		r, err := e.open(n)
		if err == nil {
			err = f(n, &chargedReader{ReadCloser: r, ctx: ctx})
			r.Close()
		}
		if err != nil && ctx.Err() == nil {
			code = e.fail(args, "%s: %s", n, errText(err))
		}
	}
	return code
}

// lineReader reads lines without keeping more than one in memory.
type lineReader struct {
	ctx context.Context
	br  *bufio.Reader
	buf []byte
}

func newLines(ctx context.Context, r io.Reader) *lineReader {
	return &lineReader{ctx: ctx, br: bufio.NewReaderSize(r, 32<<10)}
}

// next returns a line without its newline, valid until the next call. ended says that it had one.
func (l *lineReader) next() (line []byte, ended bool, err error) {
	if err := l.ctx.Err(); err != nil {
		return nil, false, err
	}
	l.buf = l.buf[:0]
	for {
		part, err := l.br.ReadSlice('\n')
		if err == nil && len(l.buf) == 0 {
			return part[:len(part)-1], true, nil
		}
		l.buf = append(l.buf, part...)
		switch {
		case err == nil:
			return l.buf[:len(l.buf)-1], true, nil
		case errors.Is(err, bufio.ErrBufferFull):
			if len(l.buf) > maxLine {
				return nil, false, errLineTooLong
			}
		case errors.Is(err, io.EOF) && len(l.buf) > 0:
			return l.buf, false, nil
		default:
			return nil, false, err
		}
	}
}

// each calls f with every line until it returns an error; io.EOF from f stops without one.
func (l *lineReader) each(f func(line []byte) error) error {
	for {
		line, _, err := l.next()
		if err == nil {
			err = f(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// output buffers what a command writes. Reading standard input by open flushes
// it; flush before waiting for anything else.
func (e Env) output() *bufio.Writer {
	w := bufio.NewWriterSize(e.Out, 16<<10)
	if e.buffers != nil {
		e.buffers.list = append(e.buffers.list, w)
	}
	return w
}

// outputs are the buffered outputs of one command, which one goroutine uses.
type outputs struct{ list []*bufio.Writer }

// flushFirst shows what a command has written before it waits for more input,
// so that a pipeline behind `kubectl logs -f` or a keyboard is followed live.
type flushFirst struct {
	r       io.Reader
	buffers *outputs
}

func (f flushFirst) Read(p []byte) (int, error) {
	if f.buffers != nil {
		for _, w := range f.buffers.list {
			if err := w.Flush(); err != nil {
				return 0, err
			}
		}
	}
	return f.r.Read(p)
}

// maxHeld bounds what commands that need all of their input keep of it.
const maxHeld = 16 << 20

var errTooMuch = errors.New("input too large (at most 16 MiB)")

// held collects lines, within maxHeld.
type held struct {
	lines [][]byte
	size  int
}

func (h *held) add(line []byte) error {
	if h.size += len(line) + 48; h.size > maxHeld {
		return errTooMuch
	}
	h.lines = append(h.lines, bytes.Clone(line))
	return nil
}

// readAll reads everything, within maxHeld.
func readAll(ctx context.Context, r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxHeld+1))
	if err == nil && len(b) > maxHeld {
		err = errTooMuch
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return b, err
}
