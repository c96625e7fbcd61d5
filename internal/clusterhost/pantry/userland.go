package pantry

import (
	"context"
	"fmt"
	"maps"
	"path"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"kubistro/internal/clusterhost/vnet"
	"kubistro/internal/shell"
)

// Exit codes that shells and kernels use.
const (
	exitCannotFork = 2
	exitNotFound   = 127
	exitSigint     = 128 + int(syscall.SIGINT)
	exitSigkill    = 128 + int(syscall.SIGKILL)
)

// userland is the small Unix of busybox and its like: a shell under each of the
// names, and every standard command.
func (r *Registry) userland(shells ...string) map[string]Program {
	out := make(map[string]Program)
	for name, c := range shell.Commands() {
		out[name] = r.command(c)
	}
	// Servers too, where the shell's commands are clients only; and all record types.
	out["httpd"], out["nc"] = httpdProgram, ncProgram
	out["nslookup"], out["dig"] = nslookupProgram, digProgram
	out["ip"], out["mount"] = ipProgram, mountProgram
	for _, name := range shells {
		out[name] = r.shellProgram
	}
	return out
}

// with adds programs to a copy.
func with(programs map[string]Program, more map[string]Program) map[string]Program {
	out := maps.Clone(programs)
	maps.Copy(out, more)
	return out
}

// command makes a program of one of the shell's commands. As the first process
// of a container it has no handlers: SIGTERM does nothing, as with a real sleep
// or tail, and the node kills it after the grace period. Ctrl-C ends it.
func (r *Registry) command(c shell.Command) Program {
	return func(ctx context.Context, p *Process) int {
		return interruptible(ctx, p, func(ctx context.Context) int {
			limits := shell.Limits{Rate: r.rate, Work: p.shellWork}
			ctx = shell.PaceContext(ctx, limits)
			env := p.shellEnv(ctx)
			env.Out = shell.PaceWriter(ctx, env.Out, limits)
			return c(ctx, env, p.Args)
		})
	}
}

// interruptible runs f until it returns; SIGINT ends its context.
func interruptible(ctx context.Context, p *Process, f func(context.Context) int) int {
	if p.Signals == nil { // a child of a shell, which ends it by its context
		return f(ctx)
	}
	inner, cancel := context.WithCancel(ctx)
	interrupted := make(chan bool, 1)
	go func() {
		for {
			select {
			case <-inner.Done():
				interrupted <- false
				return
			case s := <-p.Signals:
				if s == syscall.SIGINT {
					cancel()
					interrupted <- true
					return
				}
			}
		}
	}()
	code := f(inner)
	cancel()
	switch {
	case <-interrupted:
		return exitSigint
	case ctx.Err() != nil:
		return exitSigkill
	}
	return code
}

// shellEnv is the process as the shell's commands see it.
func (p *Process) shellEnv(ctx context.Context) shell.Env {
	return shell.Env{
		Streams: p.streams(), FS: p.FS, Net: p.shellNet(), Dir: p.workDir(), Hostname: p.Hostname, User: &p.User,
		Getenv:  p.Getenv,
		Environ: func() []string { return append([]string(nil), p.Env...) },
		Run: func(ctx context.Context, env shell.Env, argv []string) int {
			return p.from(env).run(ctx, argv)
		},
	}
}

func (p *Process) streams() shell.Streams {
	return shell.Streams{In: p.Stdin, Out: p.Stdout, Err: p.Stderr, TTY: p.TTY, Size: p.size}
}

// size is the terminal's size when the program started.
func (p *Process) size() (cols, rows int) { return 80, 24 }

func (p *Process) shellNet() shell.Net {
	if p.Net == nil {
		return shell.Net{}
	}
	n := shell.Net{
		Dial: p.Net.DialContext,
		LookupHost: func(ctx context.Context, name string) ([]string, error) {
			ips, err := p.Net.LookupHost(ctx, name)
			out := make([]string, len(ips))
			for k, ip := range ips {
				out[k] = ip.String()
			}
			return out, err
		},
	}
	if ns := p.Net.DNS().Nameserver; ns.IsValid() {
		n.Nameserver = ns.String()
	}
	return n
}

func (p *Process) workDir() string {
	if p.Dir == "" {
		return "/"
	}
	return p.Dir
}

// Getenv is the value of an environment variable; the last one counts.
func (p *Process) Getenv(name string) string {
	for k := len(p.Env) - 1; k >= 0; k-- {
		if v, ok := strings.CutPrefix(p.Env[k], name+"="); ok {
			return v
		}
	}
	return ""
}

// from is a child process in the environment that a shell gives it.
func (p *Process) from(env shell.Env) *Process {
	child := *p
	child.Env, child.Dir, child.FS = env.Environ(), env.Dir, env.FS
	child.Stdin, child.Stdout, child.Stderr, child.TTY = env.In, env.Out, env.Err, env.TTY
	if child.Stdin == nil {
		child.Stdin = strings.NewReader("")
	}
	child.Signals = nil // the shell ends it by its context
	return &child
}

// run starts another program of the container in p's place and returns its exit code.
func (p *Process) run(ctx context.Context, argv []string) int {
	if len(argv) == 0 {
		return 0
	}
	prog := p.Programs[path.Base(argv[0])]
	if prog == nil {
		fmt.Fprintf(p.Stderr, "%s: not found\n", argv[0])
		return exitNotFound
	}
	child := *p
	child.Args = argv
	return prog(ctx, &child)
}

// shellProgram is sh: interactive on a terminal, else scripts by -c, file or standard input.
func (r *Registry) shellProgram(ctx context.Context, p *Process) int {
	sh, err := shell.New(shell.Options{
		FS: p.FS, Net: p.shellNet(), Commands: p.shellCommands(), Dir: p.workDir(), Env: p.Env, Hostname: p.Hostname, User: &p.User,
		Limits: shell.Limits{Rate: r.rate, Work: p.shellWork}, Name: p.Args[0], Ash: p.Programs["bash"] == nil,
	})
	if err != nil {
		fmt.Fprintf(p.Stderr, "%s: can't start\n", p.Args[0])
		return exitNotFound
	}
	if p.TTY && onlyOptions(p.Args[1:]) {
		return sh.Interactive(ctx, shell.InteractiveOptions{
			In: p.Stdin, Out: p.Stdout, Resize: p.Resize, Size: shell.Size{Cols: 80, Rows: 24},
			Prompt: func() string { return p.prompt(sh.Dir()) },
		})
	}
	line, err := quote(append([]string{"sh"}, p.Args[1:]...))
	if err != nil {
		fmt.Fprintf(p.Stderr, "%s: %v\n", p.Args[0], err)
		return 2
	}
	return interruptible(ctx, p, func(ctx context.Context) int { return sh.Run(ctx, line, p.streams()) })
}

// shellCommands are the container's programs as commands of its shell.
func (p *Process) shellCommands() map[string]shell.Command {
	out := make(map[string]shell.Command, len(p.Programs))
	for name, prog := range p.Programs {
		out[name] = func(ctx context.Context, env shell.Env, args []string) int {
			child := p.from(env)
			child.Args = args
			return prog(ctx, child)
		}
	}
	return out
}

// prompt is what the shells of such images show: busybox and bash.
func (p *Process) prompt(dir string) string {
	if path.Base(p.Args[0]) == "bash" {
		return "root@" + p.Hostname + ":" + dir + "# "
	}
	return dir + " # "
}

// onlyOptions reports whether a shell was called without a script.
func onlyOptions(args []string) bool {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") || !strings.HasPrefix(a, "--") && strings.Contains(a, "c") {
			return false
		}
	}
	return true
}

// quote makes a command line of words.
func quote(words []string) (string, error) {
	out := make([]string, len(words))
	for k, w := range words {
		q, err := syntax.Quote(w, syntax.LangBash)
		if err != nil {
			return "", err
		}
		out[k] = q
	}
	return strings.Join(out, " "), nil
}

// commandCPU is what a shell's command costs that starts no program. An endless
// loop of them uses a core, of the container's and not of the host's.
const commandCPU = 100 * time.Microsecond

// shellWork is the CPU time of so many commands of a shell.
func (p *Process) shellWork(ctx context.Context, commands int) error {
	return p.Usage.Work(ctx, time.Duration(commands)*commandCPU)
}

// own makes a program a process: it is counted, has sockets of its own, which
// close when it ends however it ends, and holds memory while it runs.
func own(memory int64, prog Program) Program {
	return func(ctx context.Context, p *Process) int {
		if !p.Usage.Fork() {
			if ctx.Err() != nil {
				return exitSigkill
			}
			fmt.Fprintln(p.Stderr, "sh: can't fork: Resource temporarily unavailable")
			return exitCannotFork
		}
		defer p.Usage.Exit()
		child := *p
		if network, ok := p.Net.(*vnet.Interface); ok { // the kernel does that for real processes
			sockets := network.Process()
			child.Net = sockets
			defer sockets.Close()
		}
		p.Usage.AddMemory(memory)
		defer p.Usage.AddMemory(-memory)
		if p.Usage.Work(ctx, startCPU) != nil {
			return exitSigkill
		}
		return prog(ctx, &child)
	}
}

// startCPU is about what the start of a small program costs.
const startCPU = time.Millisecond

// ownAll wraps every program of an image.
func ownAll(memory int64, programs map[string]Program) map[string]Program {
	out := make(map[string]Program, len(programs))
	for name, prog := range programs {
		out[name] = own(memory, prog)
	}
	return out
}

// copyBuffer bounds what a relay holds.
const copyBuffer = 16 << 10
