package course

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Folders are courses of authors: folders of the disk that are courses (they have a course.yaml) or have courses in
// them, beside the built-in ones. Reload is for one goroutine at a time.
type Folders struct {
	builtIn fs.FS // nil: without the built-in courses
	shared  fs.FS // whose shared folder folders without one use
	dirs    []string
	good    map[string]*Course // the newest version of each without a fault, by id
}

// NewFolders makes a set of the built-in courses (only: without them) and those of dirs. Its error
// is for a folder that isn't there.
func NewFolders(builtIn fs.FS, only bool, dirs []string) (*Folders, error) {
	f := &Folders{shared: builtIn, good: map[string]*Course{}}
	if !only {
		f.builtIn = builtIn
	}
	for _, d := range dirs {
		abs, err := filepath.Abs(d)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(abs)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s is no folder", d)
		}
		f.dirs = append(f.dirs, abs)
	}
	return f, nil
}

// Reload reads everything again. A course with faults stays as it was when it last had none, or stays
// away; the faults are for its author.
func (f *Folders) Reload() ([]*Course, Faults) {
	var out []*Course
	var all Faults
	from := map[string]string{}
	take := func(l *Library, faults Faults, place string, file func(string) string) {
		if l != nil {
			for _, c := range l.Courses {
				if first, taken := from[c.ID]; taken {
					faults = append(faults, Fault{File: c.ID + "/course.yaml", Message: fmt.Sprintf("a course %q is already in %s", c.ID, first)})
					continue
				}
				from[c.ID] = place
				if slices.ContainsFunc(faults, func(x Fault) bool { return below(x.File, c.ID) || below(x.File, sharedFolder) }) {
					c = f.good[c.ID]
				}
				if c != nil {
					f.good[c.ID] = c
					out = append(out, c)
				}
			}
		}
		for _, x := range faults {
			x.File = file(x.File)
			all = append(all, x)
		}
	}
	if f.builtIn != nil {
		l, faults := load(f.builtIn, nil)
		take(l, faults, "the built-in courses", func(name string) string { return name })
	}
	for _, dir := range f.dirs {
		root := dir
		files := os.DirFS(dir)
		if _, err := fs.Stat(files, "course.yaml"); err == nil {
			root = filepath.Dir(dir) // the folder is a course itself: its name is the id
			files = oneOf{os.DirFS(root), filepath.Base(dir)}
		}
		l, faults := load(files, f.shared)
		take(l, faults, dir, func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) })
	}
	return out, all
}

// Dirs are the folders of the disk to watch.
func (f *Folders) Dirs() []string {
	out := slices.Clone(f.dirs)
	for _, d := range f.dirs {
		if _, err := os.Stat(filepath.Join(d, "course.yaml")); err == nil {
			if shared := filepath.Join(filepath.Dir(d), sharedFolder); isDir(shared) {
				out = append(out, shared)
			}
		}
	}
	return out
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func below(file, folder string) bool {
	return file == folder || len(file) > len(folder) && file[:len(folder)+1] == folder+"/"
}

// oneOf shows one folder of a file system, and the shared one.
type oneOf struct {
	fs.FS
	folder string
}

// ReadDir is part of fs.ReadDirFS.
func (o oneOf) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(o.FS, name)
	if name != "." {
		return list, err
	}
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool { return e.Name() != o.folder && e.Name() != sharedFolder }), err
}
