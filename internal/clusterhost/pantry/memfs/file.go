package memfs

import (
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// handle is an open file or folder.
type handle struct {
	fs     *FS
	node   *node
	name   string
	flag   int
	off    int64
	closed bool
	listed int // entries that ReadDir has returned
}

func (h *handle) fail(op string, err error) error { return pathError(op, h.name, err) }

func (h *handle) Stat() (fs.FileInfo, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.closed {
		return nil, h.fail("stat", fs.ErrClosed)
	}
	return h.fs.info(h.node, path.Base(h.name)), nil
}

func (h *handle) Read(b []byte) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	switch {
	case h.closed:
		return 0, h.fail("read", fs.ErrClosed)
	case h.node.mode.IsDir():
		return 0, h.fail("read", syscall.EISDIR)
	case h.flag&os.O_WRONLY != 0:
		return 0, h.fail("read", syscall.EBADF)
	case len(b) == 0:
		return 0, nil
	case h.off >= int64(len(h.node.data)):
		return 0, io.EOF
	}
	n := copy(b, h.node.data[h.off:])
	h.off += int64(n)
	return n, nil
}

func (h *handle) Write(b []byte) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	switch {
	case h.closed:
		return 0, h.fail("write", fs.ErrClosed)
	case h.flag&(os.O_WRONLY|os.O_RDWR) == 0:
		return 0, h.fail("write", syscall.EBADF)
	case h.flag&os.O_APPEND != 0:
		h.off = int64(len(h.node.data))
	}
	end := h.off + int64(len(b))
	if end < h.off || !h.fs.setSize(h.node, max(end, int64(len(h.node.data)))) {
		return 0, h.fail("write", syscall.ENOSPC)
	}
	copy(h.node.data[h.off:], b)
	h.off = end
	h.fs.touch(h.node)
	return len(b), nil
}

func (h *handle) Seek(offset int64, whence int) (int64, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += h.off
	case io.SeekEnd:
		offset += int64(len(h.node.data))
	default:
		return 0, h.fail("seek", syscall.EINVAL)
	}
	if h.closed {
		return 0, h.fail("seek", fs.ErrClosed)
	}
	if offset < 0 {
		return 0, h.fail("seek", syscall.EINVAL)
	}
	h.off = offset
	return offset, nil
}

func (h *handle) Close() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.closed {
		return h.fail("close", fs.ErrClosed)
	}
	h.closed = true
	h.node.opens--
	h.fs.reclaim(h.node)
	return nil
}

// ReadDir lists an open folder (fs.ReadDirFile).
func (h *handle) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := h.fs.ReadDir(h.name)
	if err != nil {
		return nil, err
	}
	entries = entries[min(h.listed, len(entries)):]
	if n > 0 {
		if len(entries) == 0 {
			return nil, io.EOF
		}
		entries = entries[:min(n, len(entries))]
	}
	h.listed += len(entries)
	return entries, nil
}

// setSize makes a file's content size bytes long, zeros at the end, in memory
// that can be written to. It reports false when there is no room.
func (f *FS) setSize(n *node, size int64) bool {
	if !n.shared && size <= int64(cap(n.data)) {
		old := int64(len(n.data))
		n.data = n.data[:size]
		if size > old {
			clear(n.data[old:])
		}
		if size == 0 {
			f.resize(n, 0)
		}
		return true
	}
	room := size
	if n.data != nil && size > int64(len(n.data)) {
		room += size / 4 // so that appending is not quadratic
	}
	if !f.resize(n, room) && !f.resize(n, size) {
		return false
	}
	n.data = n.data[:size]
	return true
}

// resize moves the content into memory of exactly room bytes, keeping as much as fits.
func (f *FS) resize(n *node, room int64) bool {
	held := int64(cap(n.data))
	if n.shared {
		held = 0
	}
	if !f.budget.take(room-held, 0) {
		return false
	}
	n.charged += room - held
	data := make([]byte, room)
	copy(data, n.data)
	n.data, n.shared = data, false
	return true
}
