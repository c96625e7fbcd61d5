package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

func fileTools() map[string]tool {
	return map[string]tool{
		"ls":       {ls, "[-la1hRdtrSF] [FILE]...\nList files."},
		"mkdir":    {mkdir, "[-p] DIR...\nMake folders."},
		"rmdir":    {rmdir, "DIR...\nRemove empty folders."},
		"rm":       {rm, "[-rf] FILE...\nRemove files; -r removes folders with what is in them."},
		"cp":       {cp, "[-r] SOURCE... DEST\nCopy files."},
		"mv":       {mv, "SOURCE... DEST\nMove or rename files."},
		"touch":    {touch, "FILE...\nSet the modification time; make missing files."},
		"chmod":    {chmod, "[-R] MODE FILE...\nChange permissions (755, +x, u+w)."},
		"pwd":      {pwd, "\nPrint the working folder."},
		"basename": {basename, "PATH [SUFFIX]\nStrip the folder."},
		"dirname":  {dirname, "PATH...\nStrip the last part."},
		"realpath": {realpath, "PATH...\nPrint the absolute path."},
		"stat":     {statCommand, "FILE...\nPrint size, mode and time."},
		"dd":       {dd, "[if=FILE] [of=FILE] [bs=N] [count=N] [skip=N] [seek=N] [conv=notrunc]\nCopy blocks."},
		"du":       {du, "[-sh] [FILE]...\nSum up sizes."},
		"mktemp":   {mktemp, "[-d]\nMake a temporary file in the working folder."},
		"find":     {find, "[PATH]... [-name P] [-iname P] [-path P] [-type f|d] [-maxdepth N] [-mindepth N] [-empty] [-size [+-]N[ckM]] [-delete] [-print0] [-exec COMMAND {} ;]\nWalk through folders."},
	}
}

func mkdir(_ context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "pvm:", map[string]string{"parents": "p"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	if len(names) == 0 {
		return env.fail(args, "missing operand")
	}
	code := 0
	for _, n := range names {
		p := abs(env.Dir, n)
		if flags(opts)["p"] {
			err = mkdirAll(env.FS, p)
		} else {
			err = env.FS.Mkdir(p, 0o755)
		}
		if err != nil {
			code = env.fail(args, "can't create directory '%s': %s", n, errText(err))
		}
	}
	return code
}

func mkdirAll(fsys FS, p string) error {
	if info, err := fsys.Stat(p); err == nil {
		if info.IsDir() {
			return nil
		}
		return &fs.PathError{Op: "mkdir", Path: p, Err: fs.ErrExist}
	}
	if parent := path.Dir(p); parent != p {
		if err := mkdirAll(fsys, parent); err != nil {
			return err
		}
	}
	return fsys.Mkdir(p, 0o755)
}

func rmdir(_ context.Context, env Env, args []string) int {
	code := 0
	for _, n := range args[1:] {
		p := abs(env.Dir, n)
		info, err := env.FS.Lstat(p)
		if err == nil && !info.IsDir() {
			err = errors.New("Not a directory")
		}
		if err == nil {
			err = env.FS.Remove(p)
		}
		if err != nil {
			code = env.fail(args, "'%s': %s", n, errText(err))
		}
	}
	return code
}

func rm(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "rRfivd", map[string]string{"recursive": "r", "force": "f"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	if len(names) == 0 && !f["f"] {
		return env.fail(args, "missing operand")
	}
	code := 0
	for _, n := range names {
		p := abs(env.Dir, n)
		if b := path.Base(n); b == "." || b == ".." {
			code = env.fail(args, "refusing to remove '.' or '..' directory: skipping '%s'", n)
			continue
		}
		info, err := env.FS.Lstat(p)
		switch {
		case err != nil:
			if !f["f"] || !errors.Is(err, fs.ErrNotExist) {
				code = env.fail(args, "can't remove '%s': %s", n, errText(err))
			}
			continue
		case info.IsDir() && !f["r"] && !f["R"]:
			code = env.fail(args, "'%s' is a directory", n)
			continue
		}
		if err := removeAll(ctx, env.FS, p, info); err != nil {
			code = env.fail(args, "can't remove '%s': %s", n, errText(err))
		}
	}
	return code
}

func removeAll(ctx context.Context, fsys FS, p string, info fs.FileInfo) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if info.IsDir() {
		list, err := fsys.ReadDir(p)
		if err != nil {
			return err
		}
		for _, e := range list {
			child := path.Join(p, e.Name())
			info, err := fsys.Lstat(child)
			if err == nil {
				err = removeAll(ctx, fsys, child, info)
			}
			if err != nil {
				return err
			}
		}
	}
	return fsys.Remove(p)
}

func touch(_ context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "cmat:d:", nil)
	if err != nil {
		return env.wrongUse(args, err)
	}
	code := 0
	for _, n := range names {
		p := abs(env.Dir, n)
		now := time.Now()
		err := env.FS.Chtimes(p, now, now)
		if errors.Is(err, fs.ErrNotExist) {
			if flags(opts)["c"] {
				continue
			}
			var f File
			if f, err = env.FS.OpenFile(p, os.O_WRONLY|os.O_CREATE, 0o644); err == nil {
				err = f.Close()
			}
		}
		if err != nil {
			code = env.fail(args, "%s: %s", n, errText(err))
		}
	}
	return code
}

// newMode applies a chmod expression to a mode.
func newMode(expr string, mode fs.FileMode) (fs.FileMode, error) {
	if n, err := strconv.ParseUint(expr, 8, 12); err == nil {
		return fs.FileMode(n & 0o777), nil
	}
	for _, part := range strings.Split(expr, ",") {
		i := strings.IndexAny(part, "+-=")
		if i < 0 {
			return 0, fmt.Errorf("invalid mode '%s'", expr)
		}
		who, bits := part[:i], fs.FileMode(0)
		if who == "" || strings.Contains(who, "a") {
			who = "ugo"
		}
		for _, c := range part[i+1:] {
			v, ok := map[rune]fs.FileMode{'r': 4, 'w': 2, 'x': 1, 'X': 1}[c]
			if !ok {
				return 0, fmt.Errorf("invalid mode '%s'", expr)
			}
			bits |= v
		}
		var mask, all fs.FileMode
		for _, c := range who {
			shift, ok := map[rune]uint{'u': 6, 'g': 3, 'o': 0}[c]
			if !ok {
				return 0, fmt.Errorf("invalid mode '%s'", expr)
			}
			mask |= bits << shift
			all |= 7 << shift
		}
		switch part[i] {
		case '+':
			mode |= mask
		case '-':
			mode &^= mask
		default:
			mode = mode&^all | mask
		}
	}
	return mode & 0o777, nil
}

func chmod(ctx context.Context, env Env, args []string) int {
	rest := args[1:]
	recursive := false
	if len(rest) > 0 && rest[0] == "-R" {
		recursive, rest = true, rest[1:]
	}
	if len(rest) < 2 {
		return env.fail(args, "missing operand")
	}
	code := 0
	for _, n := range rest[1:] {
		err := walk(ctx, env.FS, abs(env.Dir, n), 0, func(p string, info fs.FileInfo, depth int) error {
			if depth > 0 && !recursive {
				return fs.SkipDir
			}
			mode, err := newMode(rest[0], info.Mode().Perm())
			if err != nil {
				return err
			}
			return env.FS.Chmod(p, mode)
		})
		if err != nil {
			code = env.fail(args, "%s: %s", n, errText(err))
		}
	}
	return code
}

// walk calls f for p and all below it, in order of names. fs.SkipDir from f
// leaves out what is below.
func walk(ctx context.Context, fsys FS, p string, depth int, f func(p string, info fs.FileInfo, depth int) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	info, err := fsys.Lstat(p)
	if err != nil {
		return err
	}
	if err := f(p, info, depth); err != nil {
		if errors.Is(err, fs.SkipDir) {
			return nil
		}
		return err
	}
	if !info.IsDir() || depth > 64 {
		return nil
	}
	list, err := fsys.ReadDir(p)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := walk(ctx, fsys, path.Join(p, e.Name()), depth+1, f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func pwd(_ context.Context, env Env, _ []string) int {
	fmt.Fprintln(env.Out, env.Dir)
	return 0
}

func basename(_ context.Context, env Env, args []string) int {
	if len(args) < 2 {
		return env.fail(args, "missing operand")
	}
	b := path.Base(args[1])
	if len(args) > 2 && b != args[2] {
		b = strings.TrimSuffix(b, args[2])
	}
	fmt.Fprintln(env.Out, b)
	return 0
}

func dirname(_ context.Context, env Env, args []string) int {
	if len(args) < 2 {
		return env.fail(args, "missing operand")
	}
	for _, a := range args[1:] {
		fmt.Fprintln(env.Out, path.Dir(a))
	}
	return 0
}

func realpath(_ context.Context, env Env, args []string) int {
	code := 0
	for _, a := range args[1:] {
		p := abs(env.Dir, a)
		if _, err := env.FS.Stat(p); err != nil {
			code = env.fail(args, "%s: %s", a, errText(err))
			continue
		}
		fmt.Fprintln(env.Out, p)
	}
	return code
}

func statCommand(_ context.Context, env Env, args []string) int {
	code := 0
	for _, a := range args[1:] {
		info, err := env.FS.Stat(abs(env.Dir, a))
		if err != nil {
			code = env.fail(args, "can't stat '%s': %s", a, errText(err))
			continue
		}
		fmt.Fprintf(env.Out, "  File: %s\n  Size: %d\nAccess: (%04o/%s)\nModify: %s\n", a, info.Size(), info.Mode().Perm(), modeText(info.Mode()), info.ModTime().Format("2006-01-02 15:04:05 -0700"))
	}
	return code
}

func du(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "shacb", nil)
	if err != nil {
		return env.wrongUse(args, err)
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	code := 0
	for _, n := range names {
		total := int64(0)
		err := walk(ctx, env.FS, abs(env.Dir, n), 0, func(_ string, info fs.FileInfo, _ int) error {
			if info.Mode().IsRegular() {
				total += info.Size()
			}
			return nil
		})
		if err != nil {
			code = env.fail(args, "%s: %s", n, errText(err))
			continue
		}
		size := strconv.FormatInt((total+1023)/1024, 10)
		if flags(opts)["h"] {
			size = humanSize(total)
		}
		fmt.Fprintf(env.Out, "%s\t%s\n", size, n)
	}
	return code
}

func mktemp(_ context.Context, env Env, args []string) int {
	for i := 0; i < 1000; i++ {
		p := path.Join(env.Dir, fmt.Sprintf("tmp.%06x", time.Now().UnixNano()&0xffffff+int64(i)))
		var err error
		if len(args) > 1 && args[1] == "-d" {
			err = env.FS.Mkdir(p, 0o700)
		} else {
			var f io.Closer
			if f, err = env.FS.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				f.Close()
			}
		}
		if err == nil {
			fmt.Fprintln(env.Out, p)
			return 0
		}
		if !errors.Is(err, fs.ErrExist) {
			return env.fail(args, "%s", errText(err))
		}
	}
	return env.fail(args, "no free name")
}
