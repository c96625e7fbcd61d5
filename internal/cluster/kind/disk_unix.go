//go:build unix

package kind

import "golang.org/x/sys/unix"

// freeBytes is how much may be written to a folder's file system.
func freeBytes(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
