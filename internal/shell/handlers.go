package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/interp"
)

const (
	sizeCommand   = own + "size"
	maxArgBytes   = 4 << 20
	maxOpenFiles  = 128
	framesPerCall = 14 // Go stack frames of the interpreter for one nested function call, at least
)

func runOf(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// call sees every simple command before it runs. It ends stages whose reader is
// gone, bounds nesting and arguments, and redirects builtins that would reach
// for the host to commands of ours.
func (sh *Shell) call(ctx context.Context, args []string) ([]string, error) {
	r, hc := runOf(ctx), interp.HandlerCtx(ctx)
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	if j := jobOf(hc.Stdout); j != nil && j.ctx.Err() != nil {
		return []string{"exit", "141"}, nil
	}
	if err := sh.pace(r.ctx, 1, 1); err != nil {
		return nil, err
	}
	var pc [1]uintptr
	if runtime.Callers(sh.o.Limits.Depth*framesPerCall, pc[:]) > 0 {
		r.fail("functions and subshells are nested too deeply (endless recursion?)")
		return nil, r.ctx.Err()
	}
	total := 0
	for _, a := range args {
		total += len(a) + 16
	}
	if total > maxArgBytes {
		r.fail(args[0] + ": argument list too long")
		return nil, r.ctx.Err()
	}
	return sh.redirectBuiltin(ctx, r, hc, args)
}

func (sh *Shell) redirectBuiltin(ctx context.Context, r *run, hc interp.HandlerContext, args []string) ([]string, error) {
	refuse := func(format string, a ...any) ([]string, error) {
		fmt.Fprintf(hc.Stderr, format+"\n", a...)
		return []string{"false"}, nil
	}
	switch args[0] {
	case "command", "builtin":
		if len(args) == 1 {
			return []string{"true"}, nil
		}
		switch args[1] {
		case "-v", "-V":
			return append([]string{own + "type", args[1]}, args[2:]...), nil
		case "-p", "--":
			return sh.redirectBuiltin(ctx, r, hc, append([]string{"command"}, args[2:]...))
		}
		return sh.redirectBuiltin(ctx, r, hc, args[1:])
	case "exec":
		if len(args) == 1 {
			return refuse("sh: exec: redirecting the shell itself isn't available here; redirect a command or a { block; }")
		}
		return args, nil
	case "eval":
		src, err := rewrite(strings.Join(args[1:], " "))
		if err != nil {
			return refuse("%s", syntaxMessage("sh: eval", err))
		}
		return []string{"eval", src}, nil
	case "trap":
		if len(args) > 2 && args[1] != "-" && !strings.HasPrefix(args[1], "-") {
			src, err := rewrite(args[1])
			if err != nil {
				return refuse("%s", syntaxMessage("sh: trap", err))
			}
			out := []string{"trap", src}
			for _, s := range args[2:] {
				switch strings.TrimPrefix(strings.ToUpper(s), "SIG") {
				case "EXIT", "0":
					out = append(out, "EXIT")
				case "ERR":
					out = append(out, "ERR")
				}
			}
			if len(out) == 2 {
				return []string{"true"}, nil // no signals here
			}
			return out, nil
		}
		return args, nil
	case "alias":
		for i, a := range args[1:] {
			if name, src, ok := strings.Cut(a, "="); ok {
				checked, err := rewrite(src)
				if err != nil {
					return refuse("%s", syntaxMessage("sh: alias", err))
				}
				if strings.HasSuffix(src, " ") {
					checked += " "
				}
				args[i+1] = name + "=" + checked
			}
		}
		return args, nil
	case "source", ".":
		return sh.source(r, hc, args, refuse)
	case "cd", "pushd":
		if len(args) == 2 && args[1] != "-" && args[1] != "" {
			p := abs(hc.Dir, args[1])
			info, err := sh.o.FS.Stat(p)
			if err == nil && !info.IsDir() {
				return refuse("sh: %s: %s: Not a directory", args[0], args[1])
			}
			if err != nil {
				return refuse("sh: %s: %s: %s", args[0], args[1], errText(err))
			}
		}
		return args, nil
	case "read":
		if hc.Stdin == io.Reader(r.base) {
			r.feedLine(ctx, args)
		}
		return args, nil
	case "wait":
		sh.waitBuiltin(ctx, args[1:])
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return args, nil
	case "mapfile", "readarray":
		return refuse("sh: %s: isn't available here; use while read", args[0])
	case "kill", "jobs", "type", "pwd", "printf", "echo", "umask", "ulimit", "help", "times", "fg", "bg", "fc", "newgrp", "history":
		return append([]string{own + args[0]}, args[1:]...), nil
	case "test", "[":
		for i, a := range args {
			if (a == "-O" || a == "-G") && i+1 < len(args) {
				args[i] = "-e"
			}
		}
		return args, nil
	}
	return args, nil
}

// source gives the interpreter a checked copy of a script.
func (sh *Shell) source(r *run, hc interp.HandlerContext, args []string, refuse func(string, ...any) ([]string, error)) ([]string, error) {
	if len(args) < 2 {
		return refuse("sh: %s: filename argument required", args[0])
	}
	text, err := readFile(sh.o.FS, abs(hc.Dir, args[1]), maxSource)
	if err != nil {
		return refuse("sh: %s: %s: %s", args[0], args[1], errText(err))
	}
	src, err := rewrite(string(text))
	if err != nil {
		return refuse("%s", syntaxMessage("sh: "+args[1], err))
	}
	key := r.keep(src)
	return append([]string{args[0], key}, args[2:]...), nil
}

// keep stores a checked script under a path that open serves once.
func (r *run) keep(src string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sources == nil {
		r.sources = map[string]string{}
	}
	key := sourcePath + strconv.Itoa(len(r.sources)) + "-" + strconv.Itoa(len(src))
	r.sources[key] = src
	return key
}

// feedLine moves one line from the run's input into the pipe that the read
// builtin reads from.
func (r *run) feedLine(ctx context.Context, args []string) {
	raw := false
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") && strings.Contains(a, "r") {
			raw = true
		}
	}
	if r.in == nil {
		r.baseWrite.Close()
		return
	}
	var line []byte
	var b [1]byte
	for len(line) < 60<<10 { // a pipe holds 64 KiB
		n, err := r.in.ReadContext(ctx, b[:])
		if n > 0 {
			line = append(line, b[0])
			if b[0] == '\n' && (raw || !bytes.HasSuffix(line, []byte("\\\n"))) {
				break
			}
		}
		if err != nil {
			r.baseWrite.Write(line)
			r.baseWrite.Close()
			return
		}
	}
	r.baseWrite.Write(line)
}

// abs makes a path absolute and clean.
func abs(dir, p string) string {
	if !path.IsAbs(p) {
		p = path.Join(dir, p)
	}
	return path.Clean(p)
}

func (sh *Shell) open(ctx context.Context, name string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	r, hc := runOf(ctx), interp.HandlerCtx(ctx)
	fault := func(msg string) (io.ReadWriteCloser, error) {
		return nil, &fs.PathError{Op: "sh:", Path: name, Err: errors.New(msg)}
	}
	switch {
	case name == slotPath || name == bgSlotPath:
		j := sh.start(r, name == bgSlotPath)
		if j == nil {
			r.fail(fmt.Sprintf("cannot fork: too many jobs and pipeline stages at once (at most %d)", sh.o.Limits.Jobs))
			return nil, r.ctx.Err()
		}
		return &jobWriter{w: hc.Stdout, job: j}, nil
	case name == substPath:
		return &capWriter{w: hc.Stdout, left: sh.o.Limits.VarBytes, job: jobOf(hc.Stdout), run: r}, nil
	case strings.HasPrefix(name, sourcePath):
		r.mu.Lock()
		src, ok := r.sources[name]
		r.mu.Unlock()
		if !ok {
			return fault("No such file or directory")
		}
		return textFile{strings.NewReader(src)}, nil
	case name == "":
		return fault("No such file or directory")
	}
	p := abs(hc.Dir, name)
	switch p {
	case "/dev/stdout", "/dev/tty":
		return passWriter{hc.Stdout}, nil
	case "/dev/stderr":
		return passWriter{hc.Stderr}, nil
	}
	if sh.slots.files.Load() >= maxOpenFiles {
		return fault("Too many open files")
	}
	f, err := sh.o.FS.OpenFile(p, flag, perm)
	if err != nil {
		if sh.o.Ash {
			return nil, ashError(sh.name, name, flag, err)
		}
		return fault(errText(err))
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return fault("Is a directory")
	}
	sh.slots.files.Add(1)
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		return &outFile{File: f, job: jobOf(hc.Stdout), run: r}, nil
	}
	return sh.inFile(f)
}

// inFile makes an open file into what the interpreter takes as standard input
// without a goroutine of its own that nobody ends.
func (sh *Shell) inFile(f File) (io.ReadWriteCloser, error) {
	pr, pw, err := os.Pipe()
	if err != nil {
		f.Close()
		sh.slots.files.Add(-1)
		return nil, &fs.PathError{Op: "sh:", Path: "<", Err: errors.New("Too many open files")}
	}
	go func() { // ends when the file or its reader does: the interpreter closes pr
		defer sh.slots.files.Add(-1)
		defer f.Close()
		defer pw.Close()
		io.Copy(pw, io.LimitReader(f, 1<<40))
	}()
	return pr, nil
}

type textFile struct{ *strings.Reader }

func (textFile) Write([]byte) (int, error) { return 0, fs.ErrPermission }

func (textFile) Close() error { return nil }

type passWriter struct{ io.Writer }

func (passWriter) Read([]byte) (int, error) { return 0, io.EOF }

func (passWriter) Close() error { return nil }

func (sh *Shell) stat(ctx context.Context, name string, follow bool) (fs.FileInfo, error) {
	p := abs(interp.HandlerCtx(ctx).Dir, name)
	if follow {
		return sh.o.FS.Stat(p)
	}
	return sh.o.FS.Lstat(p)
}

func (sh *Shell) readDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	list, err := sh.o.FS.ReadDir(abs(interp.HandlerCtx(ctx).Dir, name))
	return list[:min(len(list), 10000)], err
}

func (sh *Shell) access(ctx context.Context, name string, mode interp.AccessMode) error {
	info, err := sh.o.FS.Stat(abs(interp.HandlerCtx(ctx).Dir, name))
	if err != nil {
		return err
	}
	if info.IsDir() {
		return nil
	}
	if mode&interp.AccessExec != 0 && info.Mode()&0o111 == 0 || mode&interp.AccessWrite != 0 && info.Mode()&0o222 == 0 {
		return fs.ErrPermission
	}
	return nil
}
