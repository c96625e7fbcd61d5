package kubelet

import (
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"kubistro/internal/shell"
)

type nodeInfo struct {
	name  string
	size  int64
	mode  fs.FileMode
	mtime time.Time
}

func (i nodeInfo) Name() string       { return i.name }
func (i nodeInfo) Size() int64        { return i.size }
func (i nodeInfo) Mode() fs.FileMode  { return i.mode }
func (i nodeInfo) ModTime() time.Time { return i.mtime }
func (i nodeInfo) IsDir() bool        { return i.mode.IsDir() }
func (i nodeInfo) Sys() any           { return nil }

func (n *inode) info(name string) nodeInfo {
	size := int64(len(n.data))
	if n.isDir() {
		size = 4096
	}
	return nodeInfo{name: name, size: size, mode: n.mode, mtime: n.mtime}
}

// OpenFile opens or makes a file with the flags of package os.
func (m *memFS) OpenFile(name string, flag int, perm fs.FileMode) (shell.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	write := flag&(os.O_WRONLY|os.O_RDWR|os.O_TRUNC|os.O_APPEND) != 0
	n, ro, err := m.walk(name)
	switch {
	case err == nil && flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		err = fs.ErrExist
	case err == nil && write && n.isDir():
		err = syscall.EISDIR
	case err == nil && write && ro && !n.null:
		err = syscall.EROFS
	case err == nil && n.load != nil:
		data, lerr := n.load()
		if lerr != nil {
			err = syscall.EIO
		}
		n.data = data
	case err != nil && flag&os.O_CREATE != 0:
		var dir *inode
		var base string
		if dir, base, err = m.parent(name); err != nil {
			break
		}
		n = fileNode(nil, perm.Perm(), m.now(), dir.quota)
		if !n.book(inodeBytes) {
			err = syscall.ENOSPC
			break
		}
		dir.children[base], dir.mtime = n, m.now()
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	if flag&os.O_TRUNC != 0 && !n.null {
		n.quota.add(inodeBytes - n.booked)
		n.data, n.owned, n.booked, n.mtime = nil, true, inodeBytes, m.now()
	}
	return &memFile{fs: m, node: n, name: name, flag: flag, write: write || flag&os.O_CREATE != 0 && flag&(os.O_WRONLY|os.O_RDWR) != 0}, nil
}

// memFile is an open file; not for concurrent use by several goroutines.
type memFile struct {
	fs     *memFS
	node   *inode
	name   string
	flag   int
	write  bool
	off    int64
	closed bool
}

func (f *memFile) Stat() (fs.FileInfo, error) {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	return f.node.info(path.Base(path.Clean("/" + f.name))), nil
}

func (f *memFile) Close() error {
	if f.closed {
		return pathError("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	return nil
}

func (f *memFile) Read(p []byte) (int, error) {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	switch {
	case f.closed:
		return 0, pathError("read", f.name, fs.ErrClosed)
	case f.node.isDir():
		return 0, pathError("read", f.name, syscall.EISDIR)
	case f.flag&os.O_WRONLY != 0:
		return 0, pathError("read", f.name, syscall.EBADF)
	case f.off >= int64(len(f.node.data)):
		return 0, io.EOF
	}
	n := copy(p, f.node.data[f.off:])
	f.off += int64(n)
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	switch {
	case f.closed:
		return 0, pathError("write", f.name, fs.ErrClosed)
	case !f.write:
		return 0, pathError("write", f.name, syscall.EBADF)
	case f.node.null:
		return len(p), nil
	}
	n := f.node
	if f.flag&os.O_APPEND != 0 {
		f.off = int64(len(n.data))
	}
	end := f.off + int64(len(p))
	if end > layerBytes+emptyDirBytes {
		return 0, pathError("write", f.name, syscall.EFBIG)
	}
	grow := end + inodeBytes - n.booked
	if n.booked == 0 { // the first write copies an image's file
		grow = max(end, int64(len(n.data))) + inodeBytes
	}
	if grow > 0 && !n.book(grow) {
		return 0, pathError("write", f.name, syscall.ENOSPC)
	}
	if !n.owned {
		n.data, n.owned = append(make([]byte, 0, max(end, int64(len(n.data)))), n.data...), true
	}
	if gap := f.off - int64(len(n.data)); gap > 0 {
		n.data = append(n.data, make([]byte, gap)...)
	}
	k := copy(n.data[f.off:], p)
	n.data = append(n.data, p[k:]...)
	f.off, n.mtime = end, f.fs.now()
	return len(p), nil
}

func (f *memFile) Seek(offset int64, whence int) (int64, error) {
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	switch whence {
	case io.SeekCurrent:
		offset += f.off
	case io.SeekEnd:
		offset += int64(len(f.node.data))
	}
	if offset < 0 {
		return 0, pathError("seek", f.name, fs.ErrInvalid)
	}
	f.off = offset
	return offset, nil
}

// ReadDir lists an open directory, all at once.
func (f *memFile) ReadDir(n int) ([]fs.DirEntry, error) {
	all, err := f.fs.ReadDir(f.name)
	if err != nil || n <= 0 {
		return all, err
	}
	i := min(int(f.off), len(all))
	j := min(i+n, len(all))
	if i == j {
		return nil, io.EOF
	}
	f.off = int64(j)
	return all[i:j], nil
}
