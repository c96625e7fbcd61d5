package memfs

import (
	"crypto/rand"
	"io"
	"io/fs"
	"syscall"
	"time"

	"kubistro/internal/shell"
)

// device is an open character device.
type device struct {
	name  string
	read  func([]byte) (int, error)
	write func([]byte) (int, error)
}

func (d *device) Stat() (fs.FileInfo, error) {
	return info{name: d.name, mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, mtime: time.Now()}, nil
}
func (d *device) Read(b []byte) (int, error)     { return d.read(b) }
func (d *device) Write(b []byte) (int, error)    { return d.write(b) }
func (d *device) Seek(int64, int) (int64, error) { return 0, nil }
func (d *device) Close() error                   { return nil }

func discard(b []byte) (int, error)     { return len(b), nil }
func endOfFile([]byte) (int, error)     { return 0, io.EOF }
func notReadable([]byte) (int, error)   { return 0, syscall.EBADF }
func noSpaceLeft(b []byte) (int, error) { return 0, syscall.ENOSPC }

func zeros(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Null is /dev/null.
func Null(int) (shell.File, error) {
	return &device{name: "null", read: endOfFile, write: discard}, nil
}

// Zero is /dev/zero.
func Zero(int) (shell.File, error) {
	return &device{name: "zero", read: zeros, write: discard}, nil
}

// Full is /dev/full.
func Full(int) (shell.File, error) {
	return &device{name: "full", read: zeros, write: noSpaceLeft}, nil
}

// Random is /dev/urandom.
func Random(int) (shell.File, error) {
	return &device{name: "urandom", read: rand.Read, write: discard}, nil
}

// Output is a device that writes to w (/dev/stdout, /proc/1/fd/1).
func Output(name string, w io.Writer) Device {
	return func(int) (shell.File, error) {
		return &device{name: name, read: notReadable, write: w.Write}, nil
	}
}
