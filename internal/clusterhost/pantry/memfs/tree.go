package memfs

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"kubistro/internal/shell"
)

// Bounds of names, as Linux has them, and of depth.
const (
	maxName  = 255
	maxPath  = 4095
	maxDepth = 64
)

// node is a file, folder or device. The FS's lock guards it.
type node struct {
	mode     fs.FileMode
	uid, gid uint32
	mtime    time.Time
	data     []byte
	shared   bool // data belongs to an image: copy before writing
	charged  int64
	children map[string]*node // of a folder
	device   Device
	links    int // 1 while it is in a folder
	opens    int
}

// Device makes what opening a device gives.
type Device func(flag int) (shell.File, error)

func (f *FS) info(n *node, name string) fs.FileInfo {
	return info{name: name, size: int64(len(n.data)), mode: n.mode, mtime: n.mtime, attributes: Attributes{UID: n.uid, GID: n.gid, FSType: f.kind}}
}

type info struct {
	name       string
	size       int64
	mode       fs.FileMode
	mtime      time.Time
	attributes Attributes
}

// Attributes are what a FileInfo doesn't tell.
type Attributes struct {
	UID, GID uint32
	FSType   string // "tmpfs", or "" for the node's disk
}

// AttributesOf returns a file's attributes; those of another file system are zero.
func AttributesOf(i fs.FileInfo) Attributes {
	a, _ := i.Sys().(Attributes)
	return a
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.mtime }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return i.attributes }

// find walks to a node.
func (f *FS) find(op, name string) (*node, error) {
	if len(name) > maxPath {
		return nil, pathError(op, name, syscall.ENAMETOOLONG)
	}
	n := f.root
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "/"), "/") {
		if part == "" {
			continue
		}
		if !n.mode.IsDir() {
			return nil, pathError(op, name, syscall.ENOTDIR)
		}
		if n = n.children[part]; n == nil {
			return nil, pathError(op, name, syscall.ENOENT)
		}
	}
	return n, nil
}

// parent finds the folder that name is, or would be, in.
func (f *FS) parent(op, name string) (dir *node, base string, err error) {
	dirName, base := path.Split(name)
	if dir, err = f.find(op, path.Clean(dirName)); err != nil {
		return nil, "", pathError(op, name, err.(*fs.PathError).Err)
	}
	switch {
	case !dir.mode.IsDir():
		err = syscall.ENOTDIR
	case len(base) > maxName || len(name) > maxPath || strings.Count(name, "/") > maxDepth:
		err = syscall.ENAMETOOLONG
	}
	if err != nil {
		return nil, "", pathError(op, name, err)
	}
	return dir, base, nil
}

// add makes a new node in a folder and charges for it.
func (f *FS) add(dir *node, base string, mode fs.FileMode) (*node, error) {
	cost := int64(nodeCost + len(base))
	if !f.budget.take(cost, 1) {
		return nil, syscall.ENOSPC
	}
	n := &node{mode: mode, mtime: f.now(), charged: cost, links: 1}
	if mode.IsDir() {
		n.children = map[string]*node{}
	}
	dir.children[base] = n
	f.touch(dir)
	return n, nil
}

func (f *FS) mkdir(name string, perm fs.FileMode) error {
	if name == "/" {
		return pathError("mkdir", name, syscall.EEXIST)
	}
	dir, base, err := f.parent("mkdir", name)
	if err != nil {
		return err
	}
	if dir.children[base] != nil {
		return pathError("mkdir", name, syscall.EEXIST)
	}
	if _, err := f.add(dir, base, fs.ModeDir|perm&fs.ModePerm); err != nil {
		return pathError("mkdir", name, err)
	}
	return nil
}

func (f *FS) remove(name string) error {
	if name == "/" {
		return pathError("remove", name, syscall.EBUSY)
	}
	dir, base, err := f.parent("remove", name)
	if err != nil {
		return err
	}
	n := dir.children[base]
	switch {
	case n == nil:
		return pathError("remove", name, syscall.ENOENT)
	case len(n.children) > 0:
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	delete(dir.children, base)
	f.touch(dir)
	f.dropTree(n)
	return nil
}

// dropTree takes a node and all below it out of the tree and gives its room back.
func (f *FS) dropTree(n *node) {
	for _, c := range n.children {
		f.dropTree(c)
	}
	if n != f.root {
		n.links = 0
		f.reclaim(n)
	}
}

// reclaim gives a node's room back when neither a folder nor an open file holds it.
func (f *FS) reclaim(n *node) {
	if n.links == 0 && n.opens == 0 && n.charged > 0 {
		f.budget.take(-n.charged, -1)
		n.charged, n.data = 0, nil
	}
}

func (f *FS) move(oldname, newname string) error {
	fail := func(err error) error { return pathError("rename", oldname, err) }
	if newname == oldname {
		_, err := f.find("rename", oldname)
		return err
	}
	if strings.HasPrefix(newname, oldname+"/") {
		return fail(syscall.EINVAL)
	}
	from, oldBase, err := f.parent("rename", oldname)
	if err != nil {
		return err
	}
	to, newBase, err := f.parent("rename", newname)
	if err != nil {
		return err
	}
	n, target := from.children[oldBase], to.children[newBase]
	switch {
	case n == nil:
		return fail(syscall.ENOENT)
	case target == nil:
	case target.mode.IsDir() && !n.mode.IsDir():
		return fail(syscall.EISDIR)
	case !target.mode.IsDir() && n.mode.IsDir():
		return fail(syscall.ENOTDIR)
	case len(target.children) > 0:
		return fail(syscall.ENOTEMPTY)
	}
	if target != nil {
		f.dropTree(target)
	}
	delete(from.children, oldBase)
	to.children[newBase] = n
	f.touch(from)
	f.touch(to)
	return nil
}

func writes(flag int) bool {
	return flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0
}

func (f *FS) open(name string, flag int, perm fs.FileMode) (shell.File, error) {
	fail := func(err error) (shell.File, error) { return nil, pathError("open", name, err) }
	n, err := f.find("open", name)
	switch {
	case err == nil && n.device != nil:
		return n.device(flag)
	case err == nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return fail(syscall.EEXIST)
	case err == nil && n.mode.IsDir() && writes(flag):
		return fail(syscall.EISDIR)
	case f.readOnly && writes(flag):
		return fail(syscall.EROFS)
	case err == nil:
	case flag&os.O_CREATE == 0:
		return nil, err
	default:
		dir, base, err := f.parent("open", name)
		if err != nil {
			return nil, err
		}
		if n, err = f.add(dir, base, perm&fs.ModePerm); err != nil {
			return fail(err)
		}
	}
	if flag&os.O_TRUNC != 0 {
		f.setSize(n, 0)
		f.touch(n)
	}
	n.opens++
	return &handle{fs: f, node: n, name: name, flag: flag}, nil
}
