package terminal

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"kubistro/internal/shell"
)

const (
	homePath  = "/home/learner" // where the learner sees the home
	maxHome   = 10 << 20        // bytes of all files
	maxFiles  = 200
	homeDepth = 16
)

// outside is the error for every path that isn't in the home.
type outside struct{}

func (outside) Error() string {
	return "Permission denied (only your own folder " + homePath + " exists here)"
}
func (outside) Is(target error) bool { return target == fs.ErrPermission }

// homeFS is the learner's home as the shell sees it. os.Root keeps symbolic
// links inside; writing is held to a quota.
type homeFS struct {
	root *os.Root
	mu   sync.Mutex
	used int64 // bytes, as of the last count plus what was written since
	n    int
}

func newHomeFS(dir string) (*homeFS, error) {
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &homeFS{root: r}, nil
}

// rel turns a path of the shell into one relative to the home.
func rel(op, name string) (string, error) {
	name = path.Clean(name)
	if name == homePath {
		return ".", nil
	}
	if r, ok := strings.CutPrefix(name, homePath+"/"); ok {
		if strings.Count(r, "/") >= homeDepth || len(r) > 1024 {
			return "", &fs.PathError{Op: op, Path: name, Err: syscall.ENAMETOOLONG}
		}
		return r, nil
	}
	return "", &fs.PathError{Op: op, Path: name, Err: outside{}}
}

// count measures the home; h.mu is held.
func (h *homeFS) count() {
	h.used, h.n = 0, 0
	fs.WalkDir(h.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == "." {
			return nil
		}
		h.n++
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			h.used += info.Size()
		}
		if h.n > 10*maxFiles {
			return fs.SkipAll
		}
		return nil
	})
}

func (h *homeFS) OpenFile(name string, flag int, perm fs.FileMode) (shell.File, error) {
	r, err := rel("open", name)
	if err != nil {
		return nil, err
	}
	write := flag&(os.O_WRONLY|os.O_RDWR) != 0
	if write {
		if err := h.room(name, r, flag); err != nil {
			return nil, err
		}
	}
	f, err := h.root.OpenFile(r, flag|syscall.O_NONBLOCK, perm&0o777)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	if write {
		return &quotaFile{f: f, h: h}, nil
	}
	return f, nil
}

// room checks that a file may be opened for writing.
func (h *homeFS) room(name, r string, flag int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count()
	_, err := h.root.Lstat(r)
	if err != nil && flag&os.O_CREATE != 0 && h.n >= maxFiles || h.used >= maxHome && flag&os.O_TRUNC == 0 {
		return &fs.PathError{Op: "open", Path: name, Err: syscall.EDQUOT}
	}
	return nil
}

// quotaFile counts what is written.
type quotaFile struct {
	f *os.File // not embedded: its ReadFrom would go around the quota
	h *homeFS
}

func (q *quotaFile) Read(p []byte) (int, error)                { return q.f.Read(p) }
func (q *quotaFile) Seek(off int64, whence int) (int64, error) { return q.f.Seek(off, whence) }
func (q *quotaFile) Stat() (fs.FileInfo, error)                { return q.f.Stat() }
func (q *quotaFile) Close() error                              { return q.f.Close() }

func (q *quotaFile) Write(p []byte) (int, error) {
	q.h.mu.Lock()
	over := q.h.used+int64(len(p)) > maxHome
	if over {
		q.h.count()
		over = q.h.used+int64(len(p)) > maxHome
	}
	if !over {
		q.h.used += int64(len(p))
	}
	q.h.mu.Unlock()
	if over {
		return 0, &fs.PathError{Op: "write", Path: q.f.Name(), Err: syscall.EDQUOT}
	}
	return q.f.Write(p)
}

func (h *homeFS) Stat(name string) (fs.FileInfo, error) {
	r, err := rel("stat", name)
	if err != nil {
		return nil, err
	}
	return h.root.Stat(r)
}

func (h *homeFS) Lstat(name string) (fs.FileInfo, error) {
	r, err := rel("lstat", name)
	if err != nil {
		return nil, err
	}
	return h.root.Lstat(r)
}

func (h *homeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	r, err := rel("readdir", name)
	if err != nil {
		return nil, err
	}
	return fs.ReadDir(h.root.FS(), r)
}

func (h *homeFS) Mkdir(name string, perm fs.FileMode) error {
	r, err := rel("mkdir", name)
	if err != nil {
		return err
	}
	if err := h.room(name, r, os.O_CREATE|os.O_TRUNC); err != nil {
		return err
	}
	return h.root.Mkdir(r, perm&0o777)
}

func (h *homeFS) Remove(name string) error {
	r, err := rel("remove", name)
	if err == nil && r == "." {
		err = &fs.PathError{Op: "remove", Path: name, Err: fs.ErrPermission}
	}
	if err != nil {
		return err
	}
	return h.root.Remove(r)
}

func (h *homeFS) Rename(oldname, newname string) error {
	a, err := rel("rename", oldname)
	if err != nil {
		return err
	}
	b, err := rel("rename", newname)
	if err != nil {
		return err
	}
	return h.root.Rename(a, b)
}

func (h *homeFS) Chtimes(name string, atime, mtime time.Time) error {
	r, err := rel("chtimes", name)
	if err != nil {
		return err
	}
	return h.root.Chtimes(r, atime, mtime)
}

func (h *homeFS) Chmod(name string, mode fs.FileMode) error {
	r, err := rel("chmod", name)
	if err != nil {
		return err
	}
	return h.root.Chmod(r, mode&0o777)
}
