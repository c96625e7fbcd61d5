package kubelet

import (
	"io/fs"
	"path"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"kubistro/internal/shell"
)

// Bounds of what containers can write: everything is kept in memory.
const (
	nodeDiskBytes  = 256 << 20
	layerBytes     = 16 << 20 // a container's writable layer
	emptyDirBytes  = 32 << 20
	inodeBytes     = 256 // what a file costs besides its content
	maxPathElement = 255
)

// quota counts bytes against a bound and its parent's.
type quota struct {
	mu     sync.Mutex
	max    int64
	used   int64
	parent *quota
}

func newQuota(max int64, parent *quota) *quota { return &quota{max: max, parent: parent} }

// add books n bytes (negative gives back); false: no space left.
func (q *quota) add(n int64) bool {
	if q == nil {
		return true
	}
	q.mu.Lock()
	if n > 0 && q.used+n > q.max {
		q.mu.Unlock()
		return false
	}
	q.used += n
	q.mu.Unlock()
	if !q.parent.add(n) {
		q.mu.Lock()
		q.used -= n
		q.mu.Unlock()
		return false
	}
	return true
}

// release gives back everything.
func (q *quota) release() {
	q.mu.Lock()
	n := q.used
	q.used = 0
	q.mu.Unlock()
	q.parent.add(-n)
}

func (q *quota) bytes() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// inode is a file or directory. Content is copied on the first write, so that
// the files of an image are shared by all its containers.
type inode struct {
	mode     fs.FileMode
	mtime    time.Time
	data     []byte
	owned    bool   // data was copied and may be changed in place
	booked   int64  // what quota holds for it
	quota    *quota // who pays for what is written here
	children map[string]*inode
	load     func() ([]byte, error) // content that is made at the first read (tokens)
	null     bool                   // /dev/null
}

func dirNode(mode fs.FileMode, mtime time.Time, q *quota) *inode {
	return &inode{mode: fs.ModeDir | mode, mtime: mtime, quota: q, children: map[string]*inode{}}
}

func fileNode(data []byte, mode fs.FileMode, mtime time.Time, q *quota) *inode {
	return &inode{mode: mode, mtime: mtime, data: data, quota: q}
}

func (n *inode) isDir() bool { return n.mode.IsDir() }

// mkdirAll makes the directories down to name and returns the last one.
func (n *inode) mkdirAll(name string, mtime time.Time) *inode {
	for _, part := range strings.Split(strings.Trim(name, "/"), "/") {
		if part == "" {
			continue
		}
		c := n.children[part]
		if c == nil || !c.isDir() {
			c = dirNode(0o755, mtime, n.quota)
			n.children[part] = c
		}
		n = c
	}
	return n
}

// put places a file at name, making its directories.
func (n *inode) put(name string, f *inode) {
	dir, base := path.Split(path.Clean("/" + name))
	n.mkdirAll(dir, f.mtime).children[base] = f
}

type mount struct {
	node     *inode
	readOnly bool
}

// memFS is a container's root: one tree with other trees mounted into it. All
// containers of a Pod share one lock because they share volumes.
type memFS struct {
	mu       *sync.RWMutex
	root     *inode
	mounts   map[string]mount // by clean absolute path
	readOnly bool             // the root itself (readOnlyRootFilesystem)
	now      func() time.Time
}

var _ shell.FS = (*memFS)(nil)

// mount puts node at name; where a file is mounted, a placeholder shows it in its directory.
func (m *memFS) mount(name string, node *inode, readOnly bool) {
	name = path.Clean("/" + name)
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base := path.Split(name)
	if d, _, err := m.walk(dir); err == nil && d.isDir() && d.children[base] != nil {
		m.mounts[name] = mount{node, readOnly}
		return
	}
	m.root.mkdirAll(dir, m.now())
	if base != "" {
		if node.isDir() {
			m.root.mkdirAll(name, m.now())
		} else {
			m.root.put(name, fileNode(nil, 0o644, m.now(), nil))
		}
	}
	m.mounts[name] = mount{node, readOnly}
}

// walk finds the node at name; readOnly says whether it lies on a read-only mount.
func (m *memFS) walk(name string) (n *inode, readOnly bool, err error) {
	n, readOnly = m.root, m.readOnly
	if mt, ok := m.mounts["/"]; ok {
		n, readOnly = mt.node, mt.readOnly
	}
	cur := ""
	for _, part := range strings.Split(strings.Trim(path.Clean("/"+name), "/"), "/") {
		if part == "" {
			continue
		}
		if !n.isDir() {
			return nil, readOnly, syscall.ENOTDIR
		}
		cur += "/" + part
		c := n.children[part]
		if mt, ok := m.mounts[cur]; ok {
			c, readOnly = mt.node, mt.readOnly
		}
		if c == nil {
			return nil, readOnly, fs.ErrNotExist
		}
		n = c
	}
	return n, readOnly, nil
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (m *memFS) Stat(name string) (fs.FileInfo, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, _, err := m.walk(name)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return n.info(path.Base(path.Clean("/" + name))), nil
}

// Lstat is Stat: there are no symbolic links.
func (m *memFS) Lstat(name string) (fs.FileInfo, error) { return m.Stat(name) }

func (m *memFS) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, _, err := m.walk(name)
	if err == nil && !n.isDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	out := make([]fs.DirEntry, 0, len(n.children))
	for base, c := range n.children {
		if mt, ok := m.mounts[path.Join(path.Clean("/"+name), base)]; ok {
			c = mt.node
		}
		out = append(out, fs.FileInfoToDirEntry(c.info(base)))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name() < out[j].Name() })
	return out, nil
}

// parent finds the directory that name would be in, writable.
func (m *memFS) parent(name string) (dir *inode, base string, err error) {
	name = path.Clean("/" + name)
	if _, ok := m.mounts[name]; ok || name == "/" {
		return nil, "", syscall.EBUSY
	}
	d, base := path.Split(name)
	dir, ro, err := m.walk(d)
	switch {
	case err != nil:
		return nil, "", err
	case !dir.isDir():
		return nil, "", syscall.ENOTDIR
	case ro:
		return nil, "", syscall.EROFS
	case len(base) > maxPathElement:
		return nil, "", syscall.ENAMETOOLONG
	}
	return dir, base, nil
}

func (m *memFS) Mkdir(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, _, err := m.walk(name); err == nil {
		return pathError("mkdir", name, fs.ErrExist)
	}
	dir, base, err := m.parent(name)
	if err != nil {
		return pathError("mkdir", name, err)
	}
	n := dirNode(perm.Perm(), m.now(), dir.quota)
	if !n.book(inodeBytes) {
		return pathError("mkdir", name, syscall.ENOSPC)
	}
	dir.children[base], dir.mtime = n, m.now()
	return nil
}

func (m *memFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(name)
	if err != nil {
		return pathError("remove", name, err)
	}
	n := dir.children[base]
	switch {
	case n == nil:
		return pathError("remove", name, fs.ErrNotExist)
	case n.isDir() && len(n.children) > 0:
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	n.unbook()
	delete(dir.children, base)
	dir.mtime = m.now()
	return nil
}

func (m *memFS) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, base, err := m.parent(oldname)
	if err != nil {
		return pathError("rename", oldname, err)
	}
	n := from.children[base]
	if n == nil {
		return pathError("rename", oldname, fs.ErrNotExist)
	}
	to, newBase, err := m.parent(newname)
	if err != nil {
		return pathError("rename", newname, err)
	}
	oldPath, newPath := path.Clean("/"+oldname), path.Clean("/"+newname)
	switch old := to.children[newBase]; {
	case newPath == oldPath:
		return nil
	case from.quota != to.quota:
		return pathError("rename", newname, syscall.EXDEV)
	case strings.HasPrefix(newPath, oldPath+"/"):
		return pathError("rename", newname, syscall.EINVAL)
	case old != nil && old.isDir() != n.isDir():
		return pathError("rename", newname, syscall.EISDIR)
	case old != nil && old.isDir() && len(old.children) > 0:
		return pathError("rename", newname, syscall.ENOTEMPTY)
	case old != nil:
		old.unbook()
	}
	delete(from.children, base)
	to.children[newBase] = n
	return nil
}

func (m *memFS) Chtimes(name string, _, mtime time.Time) error {
	return m.change("chtimes", name, func(n *inode) { n.mtime = mtime })
}

func (m *memFS) Chmod(name string, mode fs.FileMode) error {
	return m.change("chmod", name, func(n *inode) { n.mode = n.mode&^fs.ModePerm | mode.Perm() })
}

func (m *memFS) change(op, name string, f func(*inode)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ro, err := m.walk(name)
	if err == nil && ro {
		err = syscall.EROFS
	}
	if err != nil {
		return pathError(op, name, err)
	}
	f(n)
	return nil
}

// book charges n bytes to who pays for the inode.
func (n *inode) book(bytes int64) bool {
	if !n.quota.add(bytes) {
		return false
	}
	n.booked += bytes
	return true
}

func (n *inode) unbook() {
	n.quota.add(-n.booked)
	n.booked = 0
}
