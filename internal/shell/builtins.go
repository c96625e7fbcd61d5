package shell

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

const maxShells = 16 // sh inside sh

// runArgs finds and runs a command by name.
func (sh *Shell) runArgs(ctx context.Context, env Env, args []string) int {
	if len(args) == 0 {
		return 0
	}
	env.buffers = new(outputs)
	name := strings.TrimPrefix(args[0], own)
	args = append([]string{name}, args[1:]...)
	if strings.Contains(name, "/") {
		if dir := path.Dir(abs(env.Dir, name)); binDir(dir) {
			if c := sh.find(path.Base(name)); c != nil {
				return c(ctx, env, args)
			}
		}
		return sh.runScript(ctx, env, args)
	}
	if c := sh.find(name); c != nil {
		return c(ctx, env, args)
	}
	if interp.IsBuiltin(name) {
		quoted := make([]string, len(args))
		for i, a := range args {
			q, err := syntax.Quote(a, syntax.LangBash)
			if err != nil {
				q = "''"
			}
			quoted[i] = q
		}
		return sh.subShell(ctx, env, strings.Join(quoted, " "), sh.name, nil)
	}
	fmt.Fprintf(env.Err, "%s: %s: not found\n", sh.name, name)
	return 127
}

func binDir(dir string) bool {
	switch dir {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin":
		return true
	}
	return false
}

// find looks a command up: the shell's own first, then the given ones.
func (sh *Shell) find(name string) Command {
	switch name {
	case "sh", "bash", "ash", "dash":
		return sh.shCommand
	case "kill":
		return sh.killCommand
	case "jobs":
		return sh.jobsCommand
	case "type", "which":
		return sh.typeCommand
	case "history":
		return sh.historyCommand
	case "help":
		return sh.helpCommand
	case "umask":
		return func(_ context.Context, env Env, args []string) int { fmt.Fprintln(env.Out, "0022"); return 0 }
	case "ulimit", "times", "fg", "bg", "fc", "newgrp":
		return func(_ context.Context, env Env, args []string) int {
			fmt.Fprintf(env.Err, "sh: %s: isn't available in this shell\n", args[0])
			return 1
		}
	}
	return sh.o.Commands[name]
}

// runScript runs a file of the FS as a shell script.
func (sh *Shell) runScript(ctx context.Context, env Env, args []string) int {
	p := abs(env.Dir, args[0])
	info, err := env.FS.Stat(p)
	switch {
	case err != nil:
		fmt.Fprintf(env.Err, "sh: %s: %s\n", args[0], notFound(err))
		return 127
	case info.IsDir():
		fmt.Fprintf(env.Err, "sh: %s: Is a directory\n", args[0])
		return 126
	case info.Mode()&0o111 == 0:
		fmt.Fprintf(env.Err, "sh: %s: Permission denied (run it with: sh %s, or chmod +x it first)\n", args[0], args[0])
		return 126
	}
	if c := sh.find(path.Base(p)); c != nil && isExecutable(env.FS, p) {
		return c(ctx, env, args)
	}
	return sh.shCommand(ctx, env, append([]string{"sh"}, args...))
}

// Executable is the content of a file that stands for the command of its name.
const Executable = "\x7fELF"

func isExecutable(files FS, name string) bool {
	f, err := files.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(Executable))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == Executable
}

func notFound(err error) string {
	if t := errText(err); t != "No such file or directory" {
		return t
	}
	return "not found"
}

func (sh *Shell) shCommand(ctx context.Context, env Env, args []string) int {
	rest := args[1:]
	flags := ""
	command := false
	for len(rest) > 0 && len(rest[0]) > 1 && (rest[0][0] == '-' || rest[0][0] == '+') {
		f := rest[0]
		rest = rest[1:]
		if f == "--" {
			break
		}
		if f == "--help" {
			fmt.Fprintln(env.Out, "usage: sh [-c command | file] [argument...]")
			return 0
		}
		if f == "-o" && len(rest) > 0 {
			flags += " -o " + rest[0]
			rest = rest[1:]
			continue
		}
		if strings.HasPrefix(f, "--") {
			continue
		}
		for _, c := range f[1:] {
			switch c {
			case 'c':
				command = true
			case 'e', 'x', 'u', 'f', 'n', 'a':
				flags += " " + f[:1] + string(c)
			}
		}
	}
	script, name := "", "sh"
	if sh.o.Name != "" {
		name = sh.o.Name
	}
	switch {
	case command && len(rest) == 0:
		fmt.Fprintln(env.Err, "sh: -c requires an argument")
		return 2
	case command:
		script, rest = rest[0], rest[1:]
		if len(rest) > 0 {
			name, rest = rest[0], rest[1:]
		}
	case len(rest) > 0:
		text, err := readFile(env.FS, abs(env.Dir, rest[0]), maxSource)
		if err != nil {
			fmt.Fprintf(env.Err, "sh: %s: %s\n", rest[0], errText(err))
			return 127
		}
		script, name, rest = string(text), rest[0], rest[1:]
	default:
		if env.Term != nil {
			fmt.Fprintln(env.Err, "sh: you are in a shell already; give it a file or -c COMMAND")
			return 1
		}
		text, err := io.ReadAll(io.LimitReader(env.In, maxSource+1))
		if err != nil {
			return 1
		}
		script = string(text)
	}
	if flags != "" {
		script = "set" + flags + "\n" + script
	}
	return sh.subShell(ctx, env, script, name, rest)
}

// subShell runs a script in a new shell that shares this one's limits.
func (sh *Shell) subShell(ctx context.Context, env Env, script, name string, params []string) int {
	if sh.depth >= maxShells {
		fmt.Fprintln(env.Err, "sh: shells are nested too deeply")
		return 2
	}
	o := sh.o
	o.Dir, o.Env, o.FS = env.Dir, env.Environ(), env.FS
	sub, err := newShell(o, sh.slots, sh.depth+1)
	if err != nil {
		fmt.Fprintln(env.Err, "sh: cannot start")
		return 126
	}
	if name != "" {
		sub.name = name
	}
	if len(params) > 0 {
		if err := interp.Params(append([]string{"--"}, params...)...)(sub.runner); err != nil {
			return 2
		}
	}
	return sub.Run(ctx, script, env.Streams)
}

func (sh *Shell) waitBuiltin(ctx context.Context, ids []string) {
	if len(ids) == 0 {
		sh.slots.wait(ctx, func(j *job) bool { return j.n > 0 && j.run.sh == sh })
		return
	}
	for _, id := range ids {
		n := jobNumber(id)
		sh.slots.wait(ctx, func(j *job) bool { return j.n == n })
	}
}

func jobNumber(id string) int {
	n, err := strconv.Atoi(strings.TrimLeft(id, "g%"))
	if err != nil || n <= 0 {
		return -1
	}
	return n
}

func (sh *Shell) killCommand(ctx context.Context, env Env, args []string) int {
	code, named := 0, false
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			if a == "-l" {
				fmt.Fprintln(env.Out, "HUP INT QUIT KILL TERM")
				return 0
			}
			continue
		}
		named = true
		found := false
		sh.slots.started(ctx, jobNumber(a))
		for _, j := range sh.slots.background() {
			if j.n == jobNumber(a) {
				j.cancel()
				found = true
			}
		}
		if !found {
			fmt.Fprintf(env.Err, "sh: kill: (%s) - No such process\n", a)
			code = 1
		}
	}
	if !named {
		fmt.Fprintln(env.Err, "usage: kill [-SIGNAL] %JOB...")
		return 2
	}
	return code
}

func (sh *Shell) jobsCommand(_ context.Context, env Env, _ []string) int {
	for _, j := range sh.slots.background() {
		fmt.Fprintf(env.Out, "[%d]  Running\n", j.n)
	}
	return 0
}

func (sh *Shell) typeCommand(_ context.Context, env Env, args []string) int {
	code := 0
	short := args[0] == "which"
	for _, a := range args[1:] {
		switch {
		case a == "-v" || a == "-p" || a == "-P":
			short = true
			continue
		case strings.HasPrefix(a, "-"):
			continue
		}
		switch {
		case sh.runner.Funcs[a] != nil:
			fmt.Fprintln(env.Out, pick(short, a, a+" is a function"))
		case syntax.IsKeyword(a):
			fmt.Fprintln(env.Out, pick(short, a, a+" is a shell keyword"))
		case sh.o.Commands[a] != nil || sh.find(a) != nil && !interp.IsBuiltin(a):
			fmt.Fprintln(env.Out, pick(short, "/usr/bin/"+a, a+" is /usr/bin/"+a))
		case interp.IsBuiltin(a):
			fmt.Fprintln(env.Out, pick(short, a, a+" is a shell builtin"))
		default:
			if !short {
				fmt.Fprintf(env.Err, "sh: type: %s: not found\n", a)
			}
			code = 1
		}
	}
	return code
}

func pick(cond bool, a, b string) string {
	if cond {
		return a
	}
	return b
}

func (sh *Shell) historyCommand(_ context.Context, env Env, args []string) int {
	if sh.history == nil {
		return 0
	}
	lines := sh.history()
	from := 0
	if len(args) > 1 {
		if n, err := strconv.Atoi(args[1]); err == nil && n < len(lines) {
			from = len(lines) - n
		}
	}
	for i, l := range lines[from:] {
		fmt.Fprintf(env.Out, "%5d  %s\n", from+i+1, l)
	}
	return 0
}

// Names lists the commands that the shell has, sorted.
func (sh *Shell) Names() []string {
	names := []string{"sh", "cd", "export", "unset", "alias", "jobs", "kill", "type", "which", "history", "help", "read", "set", "source", "exit", "wait"}
	for n := range sh.o.Commands {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func (sh *Shell) helpCommand(_ context.Context, env Env, _ []string) int {
	fmt.Fprintln(env.Out, "Commands here (each explains itself with --help):")
	line := ""
	for _, n := range sh.Names() {
		if len(line)+len(n) > 72 {
			fmt.Fprintln(env.Out, " "+line)
			line = ""
		}
		line += " " + n
	}
	fmt.Fprintln(env.Out, " "+line)
	return 0
}

// readFile reads a file of at most limit bytes.
func readFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errIsDir}
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	return b, err
}
