package container

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"kubistro/internal/shell"
)

// kernelFS is the container's files.
type kernelFS struct{}

func (kernelFS) OpenFile(name string, flag int, perm fs.FileMode) (shell.File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err // not f: a nil *os.File isn't a nil File
	}
	return f, nil
}

func (kernelFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (kernelFS) Lstat(name string) (fs.FileInfo, error)     { return os.Lstat(name) }
func (kernelFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (kernelFS) Mkdir(name string, perm fs.FileMode) error  { return os.Mkdir(name, perm) }
func (kernelFS) Remove(name string) error                   { return os.Remove(name) }
func (kernelFS) Chtimes(name string, atime, mtime time.Time) error {
	return os.Chtimes(name, atime, mtime)
}
func (kernelFS) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }

func (kernelFS) Rename(oldname, newname string) error {
	err := os.Rename(oldname, newname)
	var link *os.LinkError
	if errors.As(err, &link) {
		return &fs.PathError{Op: link.Op, Path: oldname, Err: link.Err}
	}
	return err
}
