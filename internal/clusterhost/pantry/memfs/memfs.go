// Package memfs is a container's file system in memory: a bounded tree with
// devices and with other file systems mounted in it. It implements shell.FS and
// never touches the host's disk. There are no links, owners or permission
// checks: every process is root.
package memfs

import (
	"errors"
	"io/fs"
	"path"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"kubistro/internal/shell"
)

// FS is a file system. All methods are safe for concurrent use; paths are
// absolute and slash-separated. A full FS gives syscall.ENOSPC.
type FS struct {
	budget *Budget

	mu       sync.Mutex
	root     *node
	mounts   []mount // longest path first
	readOnly bool
	kind     string // what statfs says; "" is an ordinary disk
	now      func() time.Time
	changed  func()
}

var _ shell.FS = (*FS)(nil)

// New makes an empty file system that takes its room from budget. The budget may
// be shared by several file systems; what an FS holds goes back at Discard.
func New(budget *Budget) *FS {
	f := &FS{budget: budget, now: time.Now}
	f.root = &node{mode: fs.ModeDir | 0o755, mtime: f.now(), children: map[string]*node{}, links: 1}
	return f
}

// OnChange has changed called after every change of the tree or of a file, while
// the FS is locked: it must return at once and not use the FS.
func (f *FS) OnChange(changed func()) {
	f.mu.Lock()
	f.changed = changed
	f.mu.Unlock()
}

// touch notes that n has changed now.
func (f *FS) touch(n *node) {
	n.mtime = f.now()
	f.tell()
}

func (f *FS) tell() {
	if f.changed != nil {
		f.changed()
	}
}

// mount is another file system at a path.
type mount struct {
	at       string
	fs       shell.FS
	sub      string // path inside fs that appears at the mount point
	readOnly bool
}

// Mount makes the file or folder sub of src ("/" for all of it) appear at a path;
// the mount point is made where it is missing. A later mount at or below an
// earlier one wins.
func (f *FS) Mount(at string, src shell.FS, sub string, readOnly bool) error {
	at, sub = clean(at), clean(sub)
	if at == "/" {
		return pathError("mount", at, syscall.EBUSY)
	}
	info, err := src.Stat(sub)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = f.MkdirAll(at, 0o755)
	} else if _, err = f.Stat(at); err != nil {
		err = f.WriteFile(at, nil, 0o644)
	}
	if err != nil && !errors.Is(err, syscall.EROFS) { // below a read-only mount the point must exist, as it does for sub paths
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	mounts := append([]mount{{at, src, sub, readOnly}}, f.mounts...)
	sort.SliceStable(mounts, func(a, b int) bool { return len(mounts[a].at) > len(mounts[b].at) })
	f.mounts = mounts
	return nil
}

// SetReadOnly refuses every change with syscall.EROFS, but for mounts and devices.
func (f *FS) SetReadOnly(on bool) {
	f.mu.Lock()
	f.readOnly = on
	f.mu.Unlock()
}

// SetType sets what statfs says the file system is, such as "tmpfs".
func (f *FS) SetType(kind string) {
	f.mu.Lock()
	f.kind = kind
	f.mu.Unlock()
}

// Discard gives everything that the FS holds back to its budget and empties it.
// Files that are still open stay readable, and are given back when closed.
func (f *FS) Discard() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropTree(f.root)
	f.root.children = map[string]*node{}
	f.mounts = nil
}

// through finds the mount that a path is in; the last one made wins among equals.
func (f *FS) through(name string) (mount, string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.mounts {
		if name == m.at {
			return m, m.sub, true
		}
		if strings.HasPrefix(name, m.at+"/") {
			return m, path.Join(m.sub, name[len(m.at):]), true
		}
	}
	return mount{}, "", false
}

func (f *FS) isMountPoint(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.mounts {
		if m.at == name || strings.HasPrefix(m.at, name+"/") {
			return true
		}
	}
	return false
}

// OpenFile opens a file as os.OpenFile does.
func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (shell.File, error) {
	name = clean(name)
	if m, inner, ok := f.through(name); ok {
		if m.readOnly && writes(flag) {
			return nil, pathError("open", name, syscall.EROFS)
		}
		file, err := m.fs.OpenFile(inner, flag, perm)
		return file, rename(err, name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open(name, flag, perm)
}

// Stat describes a file.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	name = clean(name)
	if m, inner, ok := f.through(name); ok {
		info, err := m.fs.Stat(inner)
		if err != nil {
			return nil, rename(err, name)
		}
		return renamed{info, path.Base(name)}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find("stat", name)
	if err != nil {
		return nil, err
	}
	return f.info(n, path.Base(name)), nil
}

// Lstat is Stat: there are no symbolic links.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.Stat(name) }

// ReadDir lists a folder, sorted by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	name = clean(name)
	if m, inner, ok := f.through(name); ok {
		entries, err := m.fs.ReadDir(inner)
		return entries, rename(err, name)
	}
	f.mu.Lock()
	n, err := f.find("open", name)
	if err == nil && !n.mode.IsDir() {
		err = pathError("readdir", name, syscall.ENOTDIR)
	}
	if err != nil {
		f.mu.Unlock()
		return nil, err
	}
	infos := make([]fs.FileInfo, 0, len(n.children))
	for child, c := range n.children {
		infos = append(infos, f.info(c, child))
	}
	f.mu.Unlock()
	entries := make([]fs.DirEntry, 0, len(infos))
	for _, info := range infos {
		if f.isMountPoint(path.Join(name, info.Name())) {
			if real, err := f.Stat(path.Join(name, info.Name())); err == nil {
				info = real
			}
		}
		entries = append(entries, fs.FileInfoToDirEntry(info))
	}
	sort.Slice(entries, func(a, b int) bool { return entries[a].Name() < entries[b].Name() })
	return entries, nil
}

// Mkdir makes a folder.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	return f.change("mkdir", name, func(s shell.FS, inner string) error { return s.Mkdir(inner, perm) },
		func(name string) error { return f.mkdir(name, perm) })
}

// Remove removes a file or an empty folder.
func (f *FS) Remove(name string) error {
	if name = clean(name); f.isMountPoint(name) {
		return pathError("remove", name, syscall.EBUSY)
	}
	return f.change("remove", name, func(s shell.FS, inner string) error { return s.Remove(inner) }, f.remove)
}

// Rename moves a file or folder; across mounts it fails with syscall.EXDEV.
func (f *FS) Rename(oldname, newname string) error {
	oldname, newname = clean(oldname), clean(newname)
	if f.isMountPoint(oldname) || f.isMountPoint(newname) {
		return pathError("rename", oldname, syscall.EBUSY)
	}
	from, oldInner, ok1 := f.through(oldname)
	to, newInner, ok2 := f.through(newname)
	switch {
	case ok1 != ok2 || ok1 && from.at != to.at:
		return pathError("rename", oldname, syscall.EXDEV)
	case ok1 && from.readOnly:
		return pathError("rename", oldname, syscall.EROFS)
	case ok1:
		return rename(from.fs.Rename(oldInner, newInner), oldname)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readOnly {
		return pathError("rename", oldname, syscall.EROFS)
	}
	return f.move(oldname, newname)
}

// Chtimes sets the time of the last change.
func (f *FS) Chtimes(name string, atime, mtime time.Time) error {
	return f.change("chtimes", name, func(s shell.FS, inner string) error { return s.Chtimes(inner, atime, mtime) },
		func(name string) error {
			n, err := f.find("chtimes", name)
			if err == nil {
				n.mtime = mtime
				f.tell()
			}
			return err
		})
}

// Chmod sets the permission bits, which nothing looks at but the learner.
func (f *FS) Chmod(name string, mode fs.FileMode) error {
	return f.change("chmod", name, func(s shell.FS, inner string) error { return s.Chmod(inner, mode) },
		func(name string) error {
			n, err := f.find("chmod", name)
			if err == nil {
				n.mode = n.mode&^fs.ModePerm | mode&fs.ModePerm
				f.tell()
			}
			return err
		})
}

// change runs one of two functions: in the mount that name is in, or (locked) in this tree.
func (f *FS) change(op, name string, mounted func(shell.FS, string) error, own func(string) error) error {
	name = clean(name)
	if m, inner, ok := f.through(name); ok {
		if m.readOnly {
			return pathError(op, name, syscall.EROFS)
		}
		return rename(mounted(m.fs, inner), name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readOnly {
		return pathError(op, name, syscall.EROFS)
	}
	return own(name)
}

func clean(name string) string { return path.Clean("/" + name) }

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// rename gives a mounted file system's error the path that the caller knows.
func rename(err error, name string) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return &fs.PathError{Op: pe.Op, Path: name, Err: pe.Err}
	}
	return err
}

// renamed is a FileInfo under the name of its mount point.
type renamed struct {
	fs.FileInfo
	name string
}

func (r renamed) Name() string { return r.name }
