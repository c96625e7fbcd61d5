package memfs

import "sync"

// nodeCost is what a file or folder counts besides its content.
const nodeCost = 256

// Budget bounds the bytes and the number of files of the file systems that share it.
type Budget struct {
	parent *Budget

	mu        sync.Mutex
	bytes     int64
	files     int
	usedBytes int64
	usedFiles int
}

// NewBudget allows so many bytes of content (and 256 for each file) and so many files and folders.
func NewBudget(bytes int64, files int) *Budget { return &Budget{bytes: bytes, files: files} }

// Part is a budget of its own whose use counts in b as well: a container's part of its node's.
func (b *Budget) Part(bytes int64, files int) *Budget {
	return &Budget{parent: b, bytes: bytes, files: files}
}

// Used is what is taken now.
func (b *Budget) Used() (bytes int64, files int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.usedBytes, b.usedFiles
}

// Release gives back all that is taken, when what it bounds is gone for good.
func (b *Budget) Release() {
	bytes, files := b.Used()
	b.take(-bytes, -files)
}

// take reports false, and takes nothing, when there isn't enough room.
// Negative amounts give back.
func (b *Budget) take(bytes int64, files int) bool {
	if b.parent != nil && !b.parent.take(bytes, files) {
		return false
	}
	b.mu.Lock()
	ok := bytes <= 0 && files <= 0 || b.usedBytes+bytes <= b.bytes && b.usedFiles+files <= b.files
	if ok {
		b.usedBytes += bytes
		b.usedFiles += files
	}
	b.mu.Unlock()
	if !ok && b.parent != nil {
		b.parent.take(-bytes, -files)
	}
	return ok
}
