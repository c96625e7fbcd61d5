package shell

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// into is where SOURCE goes: DEST, or a file in it when it is a folder.
func into(fsys FS, source, dest string) string {
	if info, err := fsys.Stat(dest); err == nil && info.IsDir() {
		return path.Join(dest, path.Base(source))
	}
	return dest
}

func cp(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "rRafpvi", map[string]string{"recursive": "r", "archive": "a", "force": "f"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	return env.eachSource(args, names, func(source, dest string) error {
		return copyTree(ctx, env.FS, source, dest, f["r"] || f["R"] || f["a"], 0)
	})
}

func (e Env) eachSource(args, names []string, f func(source, dest string) error) int {
	if len(names) < 2 {
		return e.fail(args, "missing file operand")
	}
	dest := abs(e.Dir, names[len(names)-1])
	sources := names[:len(names)-1]
	if len(sources) > 1 {
		if info, err := e.FS.Stat(dest); err != nil || !info.IsDir() {
			return e.fail(args, "target '%s': Not a directory", names[len(names)-1])
		}
	}
	code := 0
	for _, n := range sources {
		p := abs(e.Dir, n)
		to := into(e.FS, p, dest)
		err := errors.New("source and destination are the same file")
		if to != p {
			err = f(p, to)
		}
		if err != nil {
			code = e.fail(args, "can't %s '%s': %s", map[string]string{"cp": "copy", "mv": "move"}[args[0]], n, errText(err))
		}
	}
	return code
}

func copyTree(ctx context.Context, fsys FS, source, dest string, recursive bool, depth int) error {
	info, err := fsys.Stat(source)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return copyFile(ctx, fsys, source, dest, info.Mode().Perm())
	}
	switch {
	case !recursive:
		return errors.New("it is a folder (use -r)")
	case strings.HasPrefix(dest+"/", source+"/"):
		return errors.New("cannot copy a folder into itself")
	case depth > 64:
		return errors.New("too many levels of folders")
	}
	if err := mkdirAll(fsys, dest); err != nil {
		return err
	}
	list, err := fsys.ReadDir(source)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := copyTree(ctx, fsys, path.Join(source, e.Name()), path.Join(dest, e.Name()), true, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(ctx context.Context, fsys FS, source, dest string, mode fs.FileMode) error {
	in, err := fsys.OpenFile(source, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := fsys.OpenFile(dest, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	err = copyTo(ctx, out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

func mv(ctx context.Context, env Env, args []string) int {
	_, names, err := getopt(args[1:], "fivn", nil)
	if err != nil {
		return env.wrongUse(args, err)
	}
	return env.eachSource(args, names, func(source, dest string) error {
		info, err := env.FS.Lstat(source)
		if err != nil {
			return err
		}
		err = env.FS.Rename(source, dest)
		if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return err
		}
		if cerr := copyTree(ctx, env.FS, source, dest, true, 0); cerr != nil {
			return cerr // another volume of a container
		}
		return removeAll(ctx, env.FS, source, info)
	})
}
