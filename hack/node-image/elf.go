package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// libraryFolders are where Debian's loader looks, below a root whose /lib and /lib64
// are links into /usr.
var libraryFolders = []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib64"}

// closure returns the given files and all shared libraries that they need to run, as
// sorted paths below root. A library's path ends in the name it is asked for by.
func closure(root string, files ...string) ([]string, error) {
	seen := map[string]bool{}
	for rest := slices.Clone(files); len(rest) > 0; rest = rest[1:] {
		if seen[rest[0]] {
			continue
		}
		seen[rest[0]] = true
		file, err := resolve(root, rest[0])
		if err != nil {
			return nil, err
		}
		names, loader, err := libraries(file)
		if err != nil {
			return nil, err
		}
		if loader != "" {
			rest = append(rest, path.Join("/usr", loader)) // /lib64 is a link to /usr/lib64
		}
		for _, n := range names {
			found, err := findLibrary(root, n)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", rest[0], err)
			}
			rest = append(rest, found)
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// resolve follows the links of a path below root as a process there would, and returns
// where the file is on disk.
func resolve(root, p string) (string, error) {
	done, rest := "/", strings.Split(p, "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0]) // ".." of the root is the root
		rest = rest[1:]
		target, err := os.Readlink(filepath.Join(root, next))
		if err != nil { // no link
			done = next
			continue
		}
		if links++; links > 40 {
			return "", fmt.Errorf("%s: too many links", p)
		}
		if path.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	file := filepath.Join(root, done)
	_, err := os.Stat(file)
	return file, err
}

// libraries are the names that an executable or library asks the loader for, and the
// path of the loader, if it names one.
func libraries(file string) (names []string, loader string, err error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	if names, err = f.ImportedLibraries(); err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			text, err := io.ReadAll(p.Open())
			return names, strings.TrimRight(string(text), "\x00"), err
		}
	}
	return names, "", nil
}

func findLibrary(root, name string) (string, error) {
	for _, dir := range libraryFolders {
		p := path.Join(dir, name)
		if _, err := resolve(root, p); err == nil {
			return p, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("library %s isn't in %v", name, libraryFolders)
}
