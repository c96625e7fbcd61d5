package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Shell is an interpreter with its variables, functions and working directory.
// Not for concurrent use.
type Shell struct {
	o       Options
	name    string // in messages
	runner  *interp.Runner
	slots   *slots
	history func() []string
	depth   int // shells around this one
}

// New makes a shell.
func New(o Options) (*Shell, error) { return newShell(o, newSlots(), 0) }

func newShell(o Options, s *slots, depth int) (*Shell, error) {
	if o.FS == nil {
		return nil, errors.New("shell: no file system")
	}
	if _, ok := o.FS.(deviceFS); !ok {
		o.FS = deviceFS{o.FS}
	}
	if o.Dir == "" {
		o.Dir = "/"
	}
	if o.Hostname == "" {
		o.Hostname = "localhost"
	}
	if o.Limits.Jobs <= 0 {
		o.Limits.Jobs = 64
	}
	if o.Limits.Depth <= 0 {
		o.Limits.Depth = 200
	}
	if o.Limits.VarBytes <= 0 {
		o.Limits.VarBytes = 1 << 20
	}
	sh := &Shell{o: o, name: "sh", slots: s, depth: depth}
	env := newRootEnv(o.Env)
	var err error
	sh.runner, err = interp.New(
		interp.Env(env),
		func(r *interp.Runner) error { r.Dir = path.Clean(o.Dir); return nil }, // interp.Dir asks the host
		interp.StdIO(nil, io.Discard, io.Discard),
		interp.Interactive(true), // aliases
		interp.CallHandler(sh.call),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return sh.exec }),
		interp.OpenHandler(sh.open),
		interp.StatHandler(sh.stat),
		interp.ReadDirHandler2(sh.readDir),
		interp.AccessHandler(sh.access),
	)
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	sh.runner.Reset()
	env.seal()
	return sh, nil
}

// Dir is the present working directory.
func (sh *Shell) Dir() string { return sh.runner.Dir }

// Getenv is the value of a shell variable.
func (sh *Shell) Getenv(name string) string { return sh.runner.Vars[name].String() }

// rootEnv is the environment that a shell starts with. Until it is sealed it
// also points the interpreter's temporary folder at a place where nothing can be made.
type rootEnv struct {
	vars   map[string]expand.Variable
	names  []string
	sealed bool
}

// passedOn reports whether a variable of the environment reaches the shell's
// commands: also one such as "1-data", which the shell itself can't name.
func passedOn(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

const noTemp = "/dev/null/none"

func newRootEnv(list []string) *rootEnv {
	e := &rootEnv{vars: map[string]expand.Variable{}}
	set := func(name, value string, exported bool) {
		if _, ok := e.vars[name]; !ok {
			e.names = append(e.names, name)
		}
		e.vars[name] = expand.Variable{Set: true, Kind: expand.String, Str: value, Exported: exported}
	}
	set("HOME", "/", true)
	set("PATH", "/usr/local/bin:/usr/bin:/bin", true)
	set("UID", "1000", false)
	set("EUID", "1000", false)
	set("GID", "1000", false)
	set(pidVariable, "42", false)
	set("PS2", "> ", false)
	for _, kv := range list {
		if name, value, ok := strings.Cut(kv, "="); ok && passedOn(name) {
			set(name, value, true)
		}
	}
	return e
}

func (e *rootEnv) seal() { e.sealed = true }

func (e *rootEnv) Get(name string) expand.Variable {
	if name == "TMPDIR" && !e.sealed {
		return expand.Variable{Set: true, Kind: expand.String, Str: noTemp}
	}
	return e.vars[name]
}

func (e *rootEnv) Each(f func(string, expand.Variable) bool) {
	for _, n := range e.names {
		if !f(n, e.vars[n]) {
			return
		}
	}
}

// Run runs a script (as sh -c does) and returns its exit code. Syntax errors are
// printed to s.Err in the manner of sh, exit code 2. Background jobs that are
// still running at the end are cancelled.
func (sh *Shell) Run(ctx context.Context, script string, s Streams) int {
	f, err := parse(script, sh.name)
	if err != nil {
		fmt.Fprintln(writer(s.Err), syntaxMessage(sh.name, err))
		return 2
	}
	r := sh.newRun(ctx, s, nil)
	code := sh.runFile(r, f, true)
	r.cancel()
	bound, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	sh.slots.wait(bound, func(j *job) bool { return j.run == r })
	return code
}

func writer(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

func syntaxMessage(name string, err error) string {
	var p syntax.ParseError
	if errors.As(err, &p) {
		return fmt.Sprintf("%s: line %d: syntax error: %s", name, p.Pos.Line(), p.Text)
	}
	return name + ": " + err.Error()
}

// newRun prepares the streams of one run. in may be nil: made from s.In.
func (sh *Shell) newRun(ctx context.Context, s Streams, in contextReader) *run {
	r := &run{sh: sh, in: in, depth: sh.depth, started: time.Now()}
	ctx, r.cancel = context.WithCancel(ctx)
	r.ctx = context.WithValue(ctx, runKey{}, r)
	if r.in == nil && s.In != nil {
		if b, ok := s.In.(boundReader); ok {
			r.in = b.r
		} else {
			r.in = &sharedReader{r: s.In}
		}
	}
	mu := &sync.Mutex{}
	s.Out = &syncWriter{ctx: r.ctx, mu: mu, w: writer(s.Out)}
	s.Err = &syncWriter{ctx: ctx, mu: mu, w: writer(s.Err)}
	r.streams = s
	return r
}

// runFile interprets a file; whole means that its end is the shell's end (exit trap).
func (sh *Shell) runFile(r *run, f *syntax.File, whole bool) int {
	pr, pw, err := os.Pipe()
	if err != nil {
		fmt.Fprintf(r.streams.Err, "%s: cannot make a pipe\n", sh.name)
		return 126
	}
	r.base, r.baseWrite = pr, pw
	defer pw.Close()
	defer pr.Close()
	if err := interp.StdIO(pr, r.streams.Out, r.streams.Err)(sh.runner); err != nil {
		return 126
	}
	if whole {
		err = sh.runner.Run(r.ctx, f)
	} else {
		for _, s := range f.Stmts {
			if err = sh.runner.Run(r.ctx, s); sh.runner.Exited() {
				break
			}
		}
	}
	return r.code(err)
}

// code turns the interpreter's result into an exit code.
func (r *run) code(err error) int {
	var status interp.ExitStatus
	switch {
	case r.failed():
		return 2
	case r.ctx.Err() != nil:
		return 130
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintf(r.streams.Err, "%s: %v\n", r.sh.name, err)
	return 1
}

func (r *run) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure != ""
}
