package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// exec runs our commands; it is the only way in which anything is run.
func (sh *Shell) exec(ctx context.Context, args []string) error {
	r, hc := runOf(ctx), interp.HandlerCtx(ctx)
	if args[0] == sizeCommand {
		return sh.checkSize(r, hc, args[1:])
	}
	cmdCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	if j := jobOf(hc.Stdout); j != nil {
		defer context.AfterFunc(j.ctx, cancel)()
	}
	cmdCtx = withCharge(cmdCtx, func(ctx context.Context, n int) error { return sh.pace(ctx, n, n) })
	out := &cancelWriter{w: hc.Stdout, cancel: cancel}
	env := Env{
		Streams: Streams{Out: pacedWriter{out, func(n int) error { return sh.pace(cmdCtx, n, 1) }}, Err: &cancelWriter{w: hc.Stderr, cancel: func() {}}},
		FS:      sh.o.FS, Net: sh.o.Net, Dir: hc.Dir, Hostname: sh.o.Hostname, User: sh.o.User,
		Getenv:  func(n string) string { return hc.Env.Get(n).String() },
		Environ: func() []string { return exported(hc.Env) },
		Run:     sh.runArgs,
	}
	in, isFile := hc.Stdin.(*os.File)
	switch {
	case isFile && in == r.base && r.in != nil:
		env.In = boundReader{cmdCtx, r.in}
		env.Term = r.streams.Term
	case isFile && in != nil && in != r.base:
		env.In = in
		defer interruptFile(cmdCtx, in, false)()
	default:
		env.In = strings.NewReader("")
	}
	if p := pipeOf(hc.Stdout); p != nil {
		defer interruptFile(cmdCtx, p, true)()
	}
	if isTerminal(hc.Stdout) && r.streams.TTY {
		env.TTY, env.Size = true, r.streams.Size
	}
	code := sh.runArgs(cmdCtx, env, args)
	if err := out.fileError(); err != nil && ctx.Err() == nil {
		fmt.Fprintf(hc.Stderr, "%s: write error: %s\n", strings.TrimPrefix(args[0], own), errText(err))
		code = 1
	}
	if code != 0 {
		return interp.ExitStatus(uint8(code))
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	switch w := w.(type) {
	case *syncWriter:
		return true
	case *jobWriter:
		return isTerminal(w.w)
	}
	return false
}

func exported(e expand.Environ) []string {
	vars := map[string]string{}
	var order []string
	e.Each(func(name string, v expand.Variable) bool {
		if _, seen := vars[name]; !seen {
			order = append(order, name)
		}
		delete(vars, name)
		if v.Exported && v.IsSet() && v.Kind == expand.String {
			vars[name] = v.Str
		}
		return true
	})
	var out []string
	done := map[string]bool{}
	for _, n := range order {
		if v, ok := vars[n]; ok && !done[n] {
			out = append(out, n+"="+v)
			done[n] = true
		}
	}
	return out
}

// checkSize fails the run when the named variables together are too long.
func (sh *Shell) checkSize(r *run, hc interp.HandlerContext, names []string) error {
	var total int64
	size := func(name string) int64 {
		if n, err := strconv.ParseInt(name, 10, 64); err == nil {
			return n
		}
		v := hc.Env.Get(name)
		n := int64(len(v.Str))
		for _, s := range v.List {
			n += int64(len(s)) + 16
		}
		for k, s := range v.Map {
			n += int64(len(k)+len(s)) + 32
		}
		return n
	}
	for _, n := range names {
		if a, b, ok := strings.Cut(n, ":"); ok {
			total += size(a) * size(b)
			continue
		}
		total += size(n)
	}
	if total > sh.o.Limits.VarBytes {
		r.fail(fmt.Sprintf("variable too long (at most %d bytes)", sh.o.Limits.VarBytes))
		return r.ctx.Err()
	}
	return nil
}
