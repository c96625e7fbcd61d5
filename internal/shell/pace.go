package shell

import (
	"context"
	"io"
	"sync/atomic"

	"mvdan.cc/sh/v3/syntax"
)

const (
	paceEvery  = 64 // commands between two looks at the limiter
	paceOutput = 64 // bytes of output that count as one command: "yes" must not fill logs faster than loops of echo

	// Work inside a command that counts as one command.
	paceInput    = 256 // bytes read
	paceSteps    = 16  // statements of awk
	paceCompares = 8   // lines compared by sort
	paceOps      = 32  // instructions of jq
)

type chargeKey struct{}

// charge counts work inside a command, in commands, and waits when there is too
// much of it. It fails when ctx is done.
func charge(ctx context.Context, n int) error {
	if f, ok := ctx.Value(chargeKey{}).(func(context.Context, int) error); ok {
		if err := f(ctx, n); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func withCharge(ctx context.Context, f func(context.Context, int) error) context.Context {
	return context.WithValue(ctx, chargeKey{}, f)
}

// PaceContext bounds the work inside a command that no shell runs; see Limits.Rate and Limits.Work.
func PaceContext(ctx context.Context, l Limits) context.Context {
	owed := new(debt)
	return withCharge(ctx, func(ctx context.Context, n int) error { return l.pace(ctx, owed, n, n) })
}

// chargedReader counts what a command reads.
type chargedReader struct {
	io.ReadCloser
	ctx  context.Context
	owed int
}

func (r *chargedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.owed += n; r.owed >= paceEvery*paceInput {
		if late := charge(r.ctx, r.owed/paceInput); late != nil {
			return n, late
		}
		r.owed = 0
	}
	return n, err
}

// chargedContext counts the instructions of an interpreter that looks at its
// context before each. Not for concurrent use.
type chargedContext struct {
	context.Context
	ops int
}

func (c *chargedContext) Done() <-chan struct{} {
	if c.ops++; c.ops == paceEvery*paceOps {
		c.ops = 0
		_ = charge(c.Context, paceEvery) // the interpreter sees that it is done
	}
	return c.Context.Done()
}

// pace counts n commands or blocks of output, with the work of so many commands,
// and waits when there are too many. It fails when ctx is done.
func (sh *Shell) pace(ctx context.Context, n, work int) error {
	l := sh.o.Limits
	if l.Rate == nil && l.Work == nil {
		return nil
	}
	return l.pace(ctx, &sh.slots.owed, n, work)
}

// debt is what has been had and not been waited for.
type debt struct{ blocks, work atomic.Int64 }

func (l Limits) pace(ctx context.Context, d *debt, n, work int) error {
	d.work.Add(int64(work))
	if d.blocks.Add(int64(n)) < paceEvery {
		return nil
	}
	n, work = int(d.blocks.Swap(0)), int(d.work.Swap(0))
	if l.Rate != nil && l.Rate.WaitN(ctx, min(n, l.Rate.Burst())) != nil {
		<-ctx.Done() // it also fails at once when ctx would be done before its turn
	}
	if l.Work != nil && ctx.Err() == nil {
		return l.Work(ctx, work)
	}
	return ctx.Err()
}

// pacedWriter counts a command's output.
type pacedWriter struct {
	io.Writer
	pace func(n int) error
}

func (w pacedWriter) Write(p []byte) (int, error) {
	if err := w.pace(1 + len(p)/paceOutput); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

// PaceWriter bounds what a command writes that no shell runs; see Limits.Rate and Limits.Work.
func PaceWriter(ctx context.Context, w io.Writer, l Limits) io.Writer {
	owed := new(debt)
	return pacedWriter{w, func(n int) error { return l.pace(ctx, owed, n, 1) }}
}

// paceLoop gives a loop without any command one that does nothing: commands are
// where a run is counted and can be ended.
func paceLoop(loop syntax.Node, body *[]*syntax.Stmt) {
	calls := false
	syntax.Walk(loop, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			calls = true
		}
		return !calls
	})
	if !calls {
		*body = append([]*syntax.Stmt{{Cmd: &syntax.CallExpr{Args: []*syntax.Word{lit(":")}}}}, *body...)
	}
}
