package shell

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const maxUnpacked = 1 << 30

func tarCommand(ctx context.Context, env Env, args []string) int {
	rest := args[1:]
	if len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		rest = append([]string{"-" + rest[0]}, rest[1:]...)
	}
	opts, names, err := getopt(rest, "cxtzvmpf:C:ho", map[string]string{"create": "c", "extract": "x", "list": "t", "gzip": "z", "verbose": "v", "file:": "f", "directory:": "C", "warning:": "-", "no-same-owner": "-", "no-same-permissions": "-", "strip-components:": "-", "no-overwrite-dir": "-"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	dir := abs(env.Dir, value(opts, "C", "."))
	if info, err := env.FS.Stat(dir); err != nil || !info.IsDir() {
		env.fail(args, "can't change directory to '%s': No such file or directory", value(opts, "C", "."))
		return 2
	}
	file := value(opts, "f", "-")
	a := archiver{ctx: ctx, env: env, dir: dir, verbose: f["v"]}
	switch {
	case f["c"]:
		var w io.Writer = env.Out
		if file != "-" {
			out, oerr := env.FS.OpenFile(abs(env.Dir, file), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
			if oerr != nil {
				env.fail(args, "%s: %s", file, errText(oerr))
				return 2
			}
			defer out.Close()
			w = out
		}
		err = a.pack(w, names, f["z"])
	case f["x"], f["t"]:
		r, oerr := env.open(file)
		if oerr != nil {
			env.fail(args, "can't open '%s': %s", file, errText(oerr))
			return 2
		}
		defer r.Close()
		err = a.unpack(r, names, f["z"] || strings.HasSuffix(file, "gz"), f["t"])
	default:
		env.fail(args, "must specify one of -c, -x, -t")
		return 2
	}
	if err != nil {
		if ctx.Err() != nil {
			return 130
		}
		env.fail(args, "%s", errText(err))
		return 2
	}
	return 0
}

type archiver struct {
	ctx     context.Context
	env     Env
	dir     string
	verbose bool
}

func (a archiver) pack(w io.Writer, names []string, zip bool) error {
	if len(names) == 0 {
		return errors.New("empty archive")
	}
	if zip {
		z := gzip.NewWriter(w)
		defer z.Close()
		w = z
	}
	t := tar.NewWriter(w)
	for _, n := range names {
		base := abs(a.dir, n)
		err := walk(a.ctx, a.env.FS, base, 0, func(p string, info fs.FileInfo, _ int) error {
			if !info.IsDir() && !info.Mode().IsRegular() {
				return nil
			}
			h, err := tar.FileInfoHeader(info, "")
			if err != nil {
				return err
			}
			h.Name = strings.TrimLeft(n+strings.TrimPrefix(p, base), "/")
			if info.IsDir() {
				h.Name += "/"
			}
			h.Uname, h.Gname = "", ""
			if err := t.WriteHeader(h); err != nil || info.IsDir() {
				return err
			}
			if a.verbose {
				fmt.Fprintln(a.env.Err, h.Name)
			}
			f, err := a.env.FS.OpenFile(p, os.O_RDONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			return copyTo(a.ctx, t, io.LimitReader(f, h.Size))
		})
		if err != nil {
			return fmt.Errorf("%s: %s", n, errText(err))
		}
	}
	return t.Close()
}

func (a archiver) unpack(r io.Reader, names []string, zip, list bool) error {
	if zip {
		z, err := gzip.NewReader(r)
		if err != nil {
			return errors.New("not in gzip format")
		}
		r = z
	}
	t := tar.NewReader(io.LimitReader(r, maxUnpacked))
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("invalid tar magic or truncated archive")
		}
		name := path.Clean("/" + h.Name) // ".." can't leave the target
		if len(names) > 0 && !selected(name, names) {
			continue
		}
		if list || a.verbose {
			fmt.Fprintln(a.env.Out, h.Name)
		}
		if list {
			continue
		}
		target := path.Join(a.dir, name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = mkdirAll(a.env.FS, target)
		case tar.TypeReg:
			err = a.file(t, target, fs.FileMode(h.Mode).Perm())
		}
		if err != nil {
			return fmt.Errorf("%s: %s", h.Name, errText(err))
		}
	}
}

func selected(name string, names []string) bool {
	for _, n := range names {
		n = path.Clean("/" + n)
		if name == n || strings.HasPrefix(name, n+"/") {
			return true
		}
	}
	return false
}

func (a archiver) file(r io.Reader, target string, mode fs.FileMode) error {
	if err := mkdirAll(a.env.FS, path.Dir(target)); err != nil {
		return err
	}
	f, err := a.env.FS.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode|0o200)
	if err != nil {
		return err
	}
	err = copyTo(a.ctx, f, r)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
