package shell

import (
	"context"
	"io"

	"golang.org/x/time/rate"
	"mvdan.cc/sh/v3/syntax"
)

const (
	paceEvery  = 64 // commands between two looks at the limiter
	paceOutput = 64 // bytes of output that count as one command: "yes" must not fill logs faster than loops of echo
)

// pace counts n commands and waits when there are too many. It fails when ctx is done.
func (sh *Shell) pace(ctx context.Context, n int) error {
	l := sh.o.Limits.Rate
	if l == nil || sh.slots.owed.Add(int64(n)) < paceEvery {
		return nil
	}
	n = min(int(sh.slots.owed.Swap(0)), l.Burst())
	if l.WaitN(ctx, n) != nil {
		<-ctx.Done() // it also fails at once when ctx would be done before its turn
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

// PaceWriter bounds what a command writes that no shell runs; see Limits.Rate.
func PaceWriter(ctx context.Context, w io.Writer, l *rate.Limiter) io.Writer {
	return pacedWriter{w, func(n int) error { return l.WaitN(ctx, min(n, l.Burst())) }}
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
