//go:build !unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// lockFolder makes sure that one server uses a data folder. The system doesn't
// let an open file be removed, so a leftover of a crash can be told from a running server.
func lockFolder(dir string) (unlock func(), err error) {
	path := filepath.Join(dir, "lock")
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("another labserver uses %s; end it, or choose another folder with --data", dir)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}
