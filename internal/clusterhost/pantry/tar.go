package pantry

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
	"syscall"

	"kubistro/internal/shell"
)

// tarJob is one call of tar: create, extract or list, as kubectl cp needs them.
type tarJob struct {
	p       *Process
	mode    byte // c, x or t
	file    string
	dir     string
	gzip    bool
	verbose bool
	names   []string
}

// tarProgram is the part of tar that busybox has and kubectl cp uses.
func tarProgram(ctx context.Context, p *Process) int {
	j := tarJob{p: p, file: "-", dir: p.workDir()}
	if err := j.parse(p.Args[1:]); err != nil {
		fmt.Fprintf(p.Stderr, "tar: %v\n", err)
		return 1
	}
	var err error
	switch j.mode {
	case 'c':
		err = j.create(ctx)
	default:
		err = j.read(ctx)
	}
	if err != nil {
		fmt.Fprintf(p.Stderr, "tar: %s\n", tarError(err))
		return 1
	}
	return 0
}

// tarError is an error in the words of busybox.
func tarError(err error) string {
	var pe *fs.PathError
	if !errors.As(err, &pe) {
		return err.Error()
	}
	reason := pe.Err.Error()
	for errno, text := range map[syscall.Errno]string{
		syscall.ENOENT: "No such file or directory", syscall.ENOSPC: "No space left on device", syscall.EROFS: "Read-only file system",
		syscall.EISDIR: "Is a directory", syscall.ENOTDIR: "Not a directory",
	} {
		if errors.Is(pe.Err, errno) {
			reason = text
		}
	}
	return pe.Path + ": " + reason
}

// parse reads the arguments; the first may be a bundle of letters without a dash.
func (j *tarJob) parse(args []string) error {
	for k := 0; k < len(args); k++ {
		a := args[k]
		switch {
		case strings.HasPrefix(a, "--"):
			name, value, _ := strings.Cut(a[2:], "=")
			switch name {
			case "directory":
				j.dir = j.abs(value)
			case "file":
				j.file = value
			case "create", "extract", "list":
				j.mode = map[string]byte{"create": 'c', "extract": 'x', "list": 't'}[name]
			}
			continue
		case k > 0 && (!strings.HasPrefix(a, "-") || a == "-"):
			j.names = append(j.names, a)
			continue
		}
		for _, letter := range strings.TrimPrefix(a, "-") {
			switch letter {
			case 'c', 'x', 't':
				j.mode = byte(letter)
			case 'z':
				j.gzip = true
			case 'v':
				j.verbose = true
			case 'f', 'C':
				if k++; k >= len(args) {
					return fmt.Errorf("option requires an argument -- '%c'", letter)
				}
				if letter == 'f' {
					j.file = args[k]
				} else {
					j.dir = j.abs(args[k])
				}
			case 'm', 'p', 'o', 'h', 'k':
			default:
				return fmt.Errorf("unrecognized option: %c", letter)
			}
		}
	}
	switch {
	case j.mode == 0:
		return errors.New("need at least one option: -c, -x or -t")
	case j.mode == 'c' && len(j.names) == 0:
		return errors.New("empty archive")
	}
	return nil
}

func (j *tarJob) abs(name string) string {
	dir := j.dir
	if dir == "" {
		dir = j.p.workDir()
	}
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

func (j *tarJob) create(ctx context.Context) (err error) {
	var out io.Writer = j.p.Stdout
	if j.file != "-" {
		file, err := j.p.FS.OpenFile(path.Join("/", abs(j.p, j.file)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		defer file.Close()
		out = file
	}
	if j.gzip {
		z := gzip.NewWriter(out)
		defer func() { err = errors.Join(err, z.Close()) }()
		out = z
	}
	tw := tar.NewWriter(out)
	for _, name := range j.names {
		if err := j.add(ctx, tw, name, 0); err != nil {
			return err
		}
	}
	return tw.Close()
}

// add writes a file or folder into the archive; names are stored without the first slash.
func (j *tarJob) add(ctx context.Context, tw *tar.Writer, name string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	full := j.abs(name)
	info, err := j.p.FS.Stat(full)
	if err != nil {
		return &fs.PathError{Op: "stat", Path: name, Err: unwrapPath(err)}
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil // devices
	}
	h, err := tar.FileInfoHeader(info, "")
	if err != nil {
		return err
	}
	h.Name = strings.TrimLeft(name, "/")
	if info.IsDir() {
		h.Name = strings.TrimSuffix(h.Name, "/") + "/"
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	if j.verbose {
		fmt.Fprintln(j.p.Stderr, h.Name)
	}
	if !info.IsDir() {
		return j.content(tw, full, info.Size())
	}
	if depth > 100 {
		return errors.New(name + ": folders are nested too deeply")
	}
	entries, err := j.p.FS.ReadDir(full)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := j.add(ctx, tw, path.Join(name, e.Name()), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// content copies size bytes; a file that shrank in the meantime is filled up.
func (j *tarJob) content(w io.Writer, name string, size int64) error {
	file, err := j.p.FS.OpenFile(name, readOnly, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	n, err := io.Copy(w, io.LimitReader(file, size))
	if err != nil {
		return err
	}
	_, err = io.CopyN(w, zeroReader{}, size-n)
	return err
}

func (j *tarJob) read(ctx context.Context) error {
	in := j.p.Stdin
	if j.file != "-" {
		file, err := j.p.FS.OpenFile(abs(j.p, j.file), readOnly, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	if j.gzip {
		z, err := gzip.NewReader(in)
		if err != nil {
			return errors.New("invalid gzip magic")
		}
		in = z
	}
	for tr := tar.NewReader(in); ; {
		h, err := tr.Next()
		switch {
		case err == io.EOF:
			_, err = io.Copy(io.Discard, in) // so that the sender isn't cut off
			return err
		case err != nil:
			return errors.New("short read")
		case ctx.Err() != nil:
			return ctx.Err()
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if name == "" || !j.wanted(name) {
			continue
		}
		if j.mode == 't' {
			fmt.Fprintln(j.p.Stdout, h.Name)
			continue
		}
		if j.verbose {
			fmt.Fprintln(j.p.Stderr, h.Name)
		}
		if err := j.extract(tr, h, path.Join(j.dir, name)); err != nil {
			return err
		}
	}
}

func (j *tarJob) wanted(name string) bool {
	for _, n := range j.names {
		n = strings.Trim(path.Clean("/"+n), "/")
		if name == n || strings.HasPrefix(name, n+"/") {
			return true
		}
	}
	return len(j.names) == 0
}

func (j *tarJob) extract(r io.Reader, h *tar.Header, name string) error {
	mode := fs.FileMode(h.Mode) & fs.ModePerm
	switch h.Typeflag {
	case tar.TypeDir:
		return mkdirAll(j.p.FS, name, mode|0o700)
	case tar.TypeReg:
	default:
		fmt.Fprintf(j.p.Stderr, "tar: %s: only files and folders can be extracted here\n", h.Name)
		return nil
	}
	if err := mkdirAll(j.p.FS, path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := j.p.FS.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, r)
	return errors.Join(err, file.Close())
}

// abs is a path of a process, made absolute.
func abs(p *Process, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(p.workDir(), name)
}

func mkdirAll(fsys shell.FS, name string, perm fs.FileMode) error {
	if info, err := fsys.Stat(name); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
		}
		return nil
	}
	if err := mkdirAll(fsys, path.Dir(name), perm); err != nil {
		return err
	}
	return fsys.Mkdir(name, perm)
}

func unwrapPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// zeroReader is /dev/zero.
type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
