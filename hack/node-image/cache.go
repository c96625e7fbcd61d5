package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// kept is how long an entry of the cache stays after it was used last.
const kept = 30 * 24 * time.Hour

// cache is a folder of things that took long to make, each under a key that names
// all it was made from.
type cache struct{ dir string }

// openCache makes the folder and waits for others who use it: two checkouts may
// build at the same time. It is closed by the end of the process.
func openCache(dir string) (*cache, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	return &cache{dir}, nil // the lock's file stays open on purpose
}

// find is the path of an entry; ok says whether it is there.
func (c *cache) find(name string) (p string, ok bool) {
	p = filepath.Join(c.dir, name)
	now := time.Now()
	return p, os.Chtimes(p, now, now) == nil
}

// entry returns the path of an entry, made by build in a folder or file of its own if
// it isn't there. An entry is there whole or not at all.
func (c *cache) entry(name string, build func(path string) error) (string, error) {
	p, ok := c.find(name)
	if ok {
		return p, nil
	}
	half := p + ".half"
	if err := os.RemoveAll(half); err != nil {
		return "", err
	}
	if err := build(half); err != nil {
		return "", errors.Join(err, os.RemoveAll(half))
	}
	return p, os.Rename(half, p)
}

// prune removes what nobody has used for long.
func (c *cache) prune() error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			return err
		}
		if time.Since(info.ModTime()) > kept && e.Name() != "lock" {
			if err := os.RemoveAll(filepath.Join(c.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// key is a short name for everything that went in.
func key(parts ...string) string {
	h := sha256.New()
	for _, p := range append(parts, runtime.Version(), runtime.GOARCH) {
		fmt.Fprintf(h, "%d %s\n", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// sources is the hash of the files below the folders, without what belongs to tests.
func sources(folders ...string) (string, error) {
	h := sha256.New()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if err != nil || d.IsDir() || strings.HasSuffix(p, "_test.go") {
				return err
			}
			rel, err := filepath.Rel(folder, p)
			if err != nil {
				return err
			}
			f, err := os.Open(p)
			if err != nil {
				return err
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%s %d\n", filepath.ToSlash(rel), info.Size())
			_, err = io.Copy(h, f)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
