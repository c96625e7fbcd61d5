// Package image makes container images out of files, without a container engine:
// file trees become layers, layers become images, images become archives. Equal
// inputs give equal bytes. It runs nothing and reaches no registry.
package image

import (
	"archive/tar"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// epoch is the modification time of every file in a layer: what isn't asked for
// must not make two builds differ. It isn't 1970, which some tools take for "unset".
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Tree is the files of a layer. Folders that nobody added are made with mode 0755.
// The zero value is an empty tree. It reads files from disk only when it is written.
type Tree struct {
	entries map[string]entry // by absolute slash path
}

type entry struct {
	header tar.Header // without name
	source string     // file on disk with the content; "" if data is it
	data   []byte
}

func (t *Tree) add(p string, e entry) {
	if t.entries == nil {
		t.entries = map[string]entry{}
	}
	t.entries[path.Clean("/"+p)] = e
}

// AddFile adds the file at source on disk as p.
func (t *Tree) AddFile(p, source string, mode fs.FileMode) {
	t.add(p, entry{header: tar.Header{Typeflag: tar.TypeReg, Mode: tarMode(mode)}, source: source})
}

// AddData adds a file with the given content as p.
func (t *Tree) AddData(p string, data []byte, mode fs.FileMode) {
	t.add(p, entry{header: tar.Header{Typeflag: tar.TypeReg, Mode: tarMode(mode)}, data: data})
}

// AddDir adds a folder.
func (t *Tree) AddDir(p string, mode fs.FileMode) {
	t.add(p, entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: tarMode(mode)}})
}

// AddLink adds a symbolic link.
func (t *Tree) AddLink(p, target string) {
	t.add(p, entry{header: tar.Header{Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}})
}

// Has says whether p was added; a folder that only holds something wasn't.
func (t *Tree) Has(p string) bool {
	_, ok := t.entries[path.Clean("/"+p)]
	return ok
}

// AddAll adds what is below root on disk, under the folder p, with modes, owners and
// links as they are. A file that has several names becomes several files. Sockets and
// devices are left out: no image of ours needs one.
func (t *Tree) AddAll(p, root string) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil || rel == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{header: tar.Header{Mode: tarMode(info.Mode())}}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			e.header.Uid, e.header.Gid = int(s.Uid), int(s.Gid)
		}
		switch info.Mode().Type() {
		case 0:
			e.header.Typeflag, e.source = tar.TypeReg, file
		case fs.ModeDir:
			e.header.Typeflag = tar.TypeDir
		case fs.ModeSymlink:
			e.header.Typeflag = tar.TypeSymlink
			if e.header.Linkname, err = os.Readlink(file); err != nil {
				return err
			}
		default:
			return nil
		}
		t.add(path.Join(p, filepath.ToSlash(rel)), e)
		return nil
	})
}

// Write writes the tree as a tar stream: parents first, else by name.
func (t *Tree) Write(w io.Writer) error {
	all := maps.Clone(t.entries)
	for p := range t.entries {
		for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}}
			}
		}
	}
	paths := slices.SortedFunc(maps.Keys(all), comparePaths)
	tw := tar.NewWriter(w)
	for _, p := range paths {
		if err := write(tw, p, all[p]); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return tw.Close()
}

func write(tw *tar.Writer, p string, e entry) error {
	h := e.header
	h.Name, h.ModTime, h.Format = strings.TrimPrefix(p, "/"), epoch, tar.FormatPAX
	if h.Typeflag == tar.TypeDir {
		h.Name += "/"
	}
	if e.source == "" {
		h.Size = int64(len(e.data))
		if err := tw.WriteHeader(&h); err != nil {
			return err
		}
		_, err := tw.Write(e.data)
		return err
	}
	f, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Size = info.Size()
	if err := tw.WriteHeader(&h); err != nil {
		return err
	}
	_, err = io.Copy(tw, f)
	return err
}

// comparePaths orders by path elements, so that a folder comes before what it holds
// and is followed by it.
func comparePaths(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "/"), strings.Split(b, "/"), cmp.Compare[string])
}

// tarMode are permissions with the setuid, setgid and sticky bits as tar has them.
func tarMode(m fs.FileMode) int64 {
	mode := int64(m.Perm())
	for bit, value := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			mode |= value
		}
	}
	return mode
}
