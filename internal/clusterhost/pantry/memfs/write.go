package memfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"kubistro/internal/shell"
)

// MkdirAll makes a folder and those above it.
func (f *FS) MkdirAll(name string, perm fs.FileMode) error {
	name = clean(name)
	if info, err := f.Stat(name); err == nil {
		if !info.IsDir() {
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		return nil
	}
	if err := f.MkdirAll(path.Dir(name), perm); err != nil {
		return err
	}
	if err := f.Mkdir(name, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// WriteFile writes a whole file, making its folders.
func (f *FS) WriteFile(name string, data []byte, perm fs.FileMode) error {
	if err := f.MkdirAll(path.Dir(clean(name)), 0o755); err != nil {
		return err
	}
	file, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// ReadFile reads a whole file.
func (f *FS) ReadFile(name string) ([]byte, error) {
	file, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// AddImage puts an image's files in, by absolute path. The bytes are shared, and
// copied when a process changes a file; only the entries count in the budget.
func (f *FS) AddImage(files map[string][]byte) error {
	for name, data := range files {
		name = clean(name)
		perm := fs.FileMode(0o644)
		if strings.Contains(name, "/bin/") || strings.Contains(name, "/sbin/") || string(data) == shell.Executable {
			perm = 0o755
		}
		if err := f.WriteFile(name, nil, perm); err != nil {
			return err
		}
		f.mu.Lock()
		n, err := f.find("open", name)
		if err == nil {
			n.data, n.shared = data, true
		}
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// AddDevice puts a device at a path.
func (f *FS) AddDevice(name string, d Device) error {
	name = clean(name)
	if err := f.WriteFile(name, nil, 0o666); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find("open", name)
	if err != nil {
		return err
	}
	n.device, n.mode = d, fs.ModeDevice|fs.ModeCharDevice|0o666
	return nil
}

// Replace swaps the whole content, as the kubelet does when a ConfigMap or Secret
// has changed: readers see all of the old or all of the new. Open files keep
// what they had. Paths are relative to the root; when there is no room, nothing changes.
func (f *FS) Replace(files map[string][]byte, perm fs.FileMode) error {
	next := New(f.budget)
	next.now = f.now
	for name, data := range files {
		if err := next.WriteFile(name, data, perm); err != nil {
			next.Discard()
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropTree(f.root)
	f.root.children = next.root.children
	f.touch(f.root)
	return nil
}

// RemoveAll removes a file or folder and all below it; it is no error when there is none.
func (f *FS) RemoveAll(name string) error {
	name = clean(name)
	info, err := f.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		entries, err := f.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := f.RemoveAll(path.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	return f.Remove(name)
}
