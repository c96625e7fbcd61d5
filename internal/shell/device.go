package shell

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"
)

var (
	errIsDir    = errors.New("Is a directory")
	errTooLarge = errors.New("File too large")
)

// errText is the usual Unix wording of a file system error, without the path.
func errText(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errIsDir), errors.Is(err, syscall.EISDIR):
		return "Is a directory"
	case errors.Is(err, syscall.ENOTDIR):
		return "Not a directory"
	case errors.Is(err, syscall.ENOTEMPTY):
		return "Directory not empty"
	case errors.Is(err, syscall.EDQUOT):
		return "Disk quota exceeded"
	case errors.Is(err, syscall.ENOSPC):
		return "No space left on device"
	case errors.Is(err, syscall.EFBIG):
		return "File too large"
	case errors.Is(err, syscall.EROFS):
		return "Read-only file system"
	case errors.Is(err, syscall.ENAMETOOLONG):
		return "File name too long"
	case errors.Is(err, syscall.ELOOP):
		return "Too many levels of symbolic links"
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		if _, plain := p.Err.(syscall.Errno); !plain && p.Err != fs.ErrNotExist && p.Err != fs.ErrPermission && p.Err != fs.ErrExist {
			return p.Err.Error()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory"
	case errors.Is(err, fs.ErrExist):
		return "File exists"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	}
	return err.Error()
}

// deviceFS adds /dev/null and /dev/zero to an FS that may lack them.
type deviceFS struct{ FS }

func (d deviceFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if name == "/dev/null" || name == "/dev/zero" {
		return deviceFile(path.Base(name)), nil
	}
	return d.FS.OpenFile(name, flag, perm)
}

func (d deviceFS) Stat(name string) (fs.FileInfo, error) {
	if name == "/dev/null" || name == "/dev/zero" {
		return deviceInfo(path.Base(name)), nil
	}
	return d.FS.Stat(name)
}

func (d deviceFS) Lstat(name string) (fs.FileInfo, error) {
	if strings.HasPrefix(name, "/dev/") {
		if i, err := d.Stat(name); err == nil {
			return i, nil
		}
	}
	return d.FS.Lstat(name)
}

type deviceFile string

func (d deviceFile) Stat() (fs.FileInfo, error)     { return deviceInfo(d), nil }
func (d deviceFile) Write(p []byte) (int, error)    { return len(p), nil }
func (d deviceFile) Seek(int64, int) (int64, error) { return 0, nil }
func (d deviceFile) Close() error                   { return nil }
func (d deviceFile) Read(p []byte) (int, error) {
	if d == "null" {
		return 0, io.EOF
	}
	clear(p)
	return len(p), nil
}

type deviceInfo string

func (d deviceInfo) Name() string       { return string(d) }
func (d deviceInfo) Size() int64        { return 0 }
func (d deviceInfo) Mode() fs.FileMode  { return fs.ModeDevice | fs.ModeCharDevice | 0o666 }
func (d deviceInfo) ModTime() time.Time { return time.Time{} }
func (d deviceInfo) IsDir() bool        { return false }
func (d deviceInfo) Sys() any           { return nil }
