package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// maxPiece bounds dd's buffer; a larger block is copied in pieces.
const maxPiece = 256 << 10

// dd copies blocks, from standard input to standard output where no files are named.
func dd(ctx context.Context, env Env, args []string) int {
	from, to, truncate, quiet := "", "", true, false
	block, count, skip, seek := int64(512), int64(-1), int64(0), int64(0)
	for _, a := range args[1:] {
		name, v, ok := strings.Cut(a, "=")
		if !ok {
			return env.fail(args, "unrecognized operand '%s'", a)
		}
		var err error
		switch name {
		case "if":
			from = v
		case "of":
			to = v
		case "bs", "ibs", "obs":
			block, err = blockNumber(v)
		case "count":
			count, err = blockNumber(v)
		case "skip":
			skip, err = blockNumber(v)
		case "seek":
			seek, err = blockNumber(v)
		case "conv":
			for c := range strings.SplitSeq(v, ",") {
				switch c {
				case "notrunc":
					truncate = false
				case "fsync", "noerror", "sync":
				default:
					return env.fail(args, "invalid argument '%s' for 'conv'", c)
				}
			}
		case "iflag", "oflag":
		case "status":
			quiet = v == "none"
		default:
			return env.fail(args, "unrecognized operand '%s'", a)
		}
		if err != nil {
			return env.fail(args, "invalid number '%s'", v)
		}
	}
	if block < 1 {
		return env.fail(args, "number 0 is not in 1..18446744073709551615 range")
	}
	in, err := env.open(orStdin(from))
	if err != nil {
		return env.fail(args, "can't open '%s': %s", from, errText(err))
	}
	defer in.Close()
	out, closeOut, err := env.target(to, truncate, seek*block)
	if err != nil {
		return env.fail(args, "can't open '%s': %s", to, errText(err))
	}
	d := &blockCopy{in: &chargedReader{ReadCloser: in, ctx: ctx}, out: out, block: block, buffer: make([]byte, min(block, maxPiece))}
	began := time.Now()
	err = d.run(ctx, skip, count)
	if e := closeOut(); err == nil {
		err = e
	}
	if !quiet {
		d.report(env.Err, time.Since(began))
	}
	switch {
	case ctx.Err() != nil:
		return 130
	case err != nil:
		return env.fail(args, "error writing '%s': %s", to, errText(err))
	}
	return 0
}

func orStdin(name string) string {
	if name == "" {
		return "-"
	}
	return name
}

// target opens what dd writes to, at an offset.
func (e Env) target(name string, truncate bool, offset int64) (io.Writer, func() error, error) {
	if name == "" {
		return e.Out, func() error { return nil }, nil
	}
	flag := os.O_WRONLY | os.O_CREATE
	if truncate && offset == 0 {
		flag |= os.O_TRUNC
	}
	f, err := e.FS.OpenFile(abs(e.Dir, name), flag, 0o644)
	if err != nil {
		return nil, nil, err
	}
	if offset > 0 {
		s, ok := f.(io.Seeker)
		if !ok {
			f.Close()
			return nil, nil, errors.New("Illegal seek")
		}
		if _, err := s.Seek(offset, io.SeekStart); err != nil {
			f.Close()
			return nil, nil, err
		}
	}
	return f, f.Close, nil
}

// blockCopy counts whole and partial blocks.
type blockCopy struct {
	in     io.Reader
	out    io.Writer
	block  int64
	buffer []byte

	inWhole, inPart, outWhole, outPart, bytes int64
}

// run leaves skip blocks out and copies count, or all when that is negative.
func (d *blockCopy) run(ctx context.Context, skip, count int64) error {
	for ; skip > 0 && ctx.Err() == nil; skip-- {
		if n, _, err := d.one(io.Discard); n < d.block {
			return err
		}
	}
	for ; count != 0 && ctx.Err() == nil; count-- {
		read, written, err := d.one(d.out)
		d.bytes += written
		tally(read, d.block, &d.inWhole, &d.inPart)
		tally(written, d.block, &d.outWhole, &d.outPart)
		if err != nil || read < d.block {
			return err
		}
	}
	return nil
}

// one copies a block; less was read only at the input's end or after a fault.
func (d *blockCopy) one(out io.Writer) (read, written int64, err error) {
	for read < d.block {
		n, rerr := io.ReadFull(d.in, d.buffer[:min(d.block-read, int64(len(d.buffer)))])
		read += int64(n)
		m, werr := out.Write(d.buffer[:n])
		written += int64(m)
		if werr != nil {
			return read, written, werr
		}
		if rerr != nil {
			return read, written, endless(rerr)
		}
	}
	return read, written, nil
}

func tally(n, block int64, whole, part *int64) {
	switch {
	case n == block:
		*whole++
	case n > 0:
		*part++
	}
}

// endless takes the end of the input for no fault.
func endless(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

func (d *blockCopy) report(w io.Writer, took time.Duration) {
	seconds := max(took.Seconds(), 1e-6)
	fmt.Fprintf(w, "%d+%d records in\n%d+%d records out\n%d bytes (%s) copied, %.6f seconds, %s/s\n",
		d.inWhole, d.inPart, d.outWhole, d.outPart, d.bytes, shortBytes(float64(d.bytes)), seconds, shortBytes(float64(d.bytes)/seconds))
}

// shortBytes is a size with one decimal and a unit of 1024.
func shortBytes(n float64) string {
	unit := 0
	for n >= 1024 && unit < 4 {
		n /= 1024
		unit++
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + []string{"B", "KB", "MB", "GB", "TB"}[unit]
}

// blockNumber reads 10, 4k, 1M and 2G.
func blockNumber(s string) (int64, error) {
	factor := int64(1)
	for suffix, f := range map[string]int64{"c": 1, "w": 2, "b": 512, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "kB": 1000, "MB": 1e6, "GB": 1e9} {
		if n, ok := strings.CutSuffix(s, suffix); ok && n != "" && n[len(n)-1] >= '0' && n[len(n)-1] <= '9' {
			s, factor = n, f
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<40/factor {
		return 0, strconv.ErrRange
	}
	return n * factor, nil
}
