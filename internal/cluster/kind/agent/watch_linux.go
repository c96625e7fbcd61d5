package agent

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// watch tells of changes of files in a folder, until ctx ends. Several changes may
// be told as one.
func watch(ctx context.Context, dir string) (<-chan struct{}, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_MODIFY|syscall.IN_CREATE|syscall.IN_MOVED_TO|syscall.IN_MOVED_FROM); err != nil {
		f.Close()
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	changes := make(chan struct{}, 1)
	context.AfterFunc(ctx, func() { f.Close() })
	go func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := f.Read(buf); err != nil {
				return // closed
			}
			select {
			case changes <- struct{}{}:
			default:
			}
		}
	}()
	return changes, nil
}

// fileID names a file whatever it is called.
func fileID(fi os.FileInfo) string {
	if s, ok := fi.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(s.Ino, 10)
	}
	return fi.Name()
}
