package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"kubistro/internal/lab"
)

// Quota of a home. A terminal's own writes are bounded by its confinement.
const (
	homeBytes  = 10 << 20
	homeFiles  = 200
	fileBytes  = 2 << 20
	pathLength = 200
	pathDepth  = 8
)

// home is a learner's folder on the server's disk. Everything goes through an
// os.Root, so that a link that leads out leads nowhere.
type home struct {
	path string
	root *os.Root
	mu   sync.Mutex // writes, so that quotas hold
}

func openHome(dir string) (*home, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("session: home: %w", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("session: home: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("session: home: %w", err)
	}
	return &home{path: abs, root: root}, nil
}

func (h *home) close() { h.root.Close() }

// valid cleans a path, or says what is wrong with it.
func valid(name string) (string, error) {
	bad := lab.Fail(lab.CodeInvalid, "檔名不能用。", "That file name can't be used.")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "/home/learner/"), "./")
	switch {
	case name == "", len(name) > pathLength, !utf8.ValidString(name), !fs.ValidPath(name), name == ".",
		strings.Count(name, "/") >= pathDepth, strings.ContainsAny(name, "\\\x00"):
		return "", bad
	}
	for _, r := range name {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return "", bad
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.TrimSpace(part) == "" {
			return "", bad
		}
	}
	return name, nil
}

// known turns the file system's errors into sentences.
func known(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return lab.Fail(lab.CodeNotFound, "沒有這個檔案。", "There is no such file.").Because(err)
	case errors.Is(err, fs.ErrExist):
		return lab.Fail(lab.CodeConflict, "同名的檔案或資料夾已經存在。", "There is a file or folder of that name already.").Because(err)
	}
	return lab.Fail(lab.CodeInvalid, "這個檔案無法使用：它可能是資料夾，或是指向別處的連結。",
		"That file can't be used: it may be a folder, or a link that leads elsewhere.").Because(err)
}

// list returns files and folders, sorted by path; what lies beyond the quota isn't listed.
func (h *home) list() ([]FileInfo, error) {
	out := []FileInfo{}
	err := fs.WalkDir(h.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == "." {
			return nil // what can't be read isn't shown
		}
		if len(out) >= 2*homeFiles {
			return fs.SkipAll
		}
		if strings.HasPrefix(d.Name(), ".") && d.IsDir() {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil || !d.IsDir() && !info.Mode().IsRegular() {
			return nil
		}
		out = append(out, infoOf(p, info))
		return nil
	})
	slices.SortFunc(out, func(a, b FileInfo) int { return strings.Compare(a.Path, b.Path) })
	return out, known(err)
}

func infoOf(p string, info fs.FileInfo) FileInfo {
	f := FileInfo{Path: p, Folder: info.IsDir(), Modified: info.ModTime().UTC()}
	if !f.Folder {
		f.Size = info.Size()
	}
	return f
}

func (h *home) read(name string) ([]byte, FileInfo, error) {
	name, err := valid(name)
	if err != nil {
		return nil, FileInfo{}, err
	}
	info, err := h.root.Stat(name)
	if err != nil {
		return nil, FileInfo{}, known(err)
	}
	if !info.Mode().IsRegular() {
		return nil, FileInfo{}, known(fs.ErrInvalid)
	}
	if info.Size() > fileBytes {
		return nil, FileInfo{}, tooLarge()
	}
	f, err := h.root.Open(name)
	if err != nil {
		return nil, FileInfo{}, known(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, fileBytes))
	return data, infoOf(name, info), known(err)
}

func tooLarge() error {
	return lab.Fail(lab.CodeTooLarge, "檔案太大或太多：單一檔案上限 2 MB，全部共 10 MB、200 個檔案。",
		"Too large or too many: a file may have 2 MB, all together 10 MB and 200 files.")
}

// write replaces a file as a whole: readers see the old one or the new one.
func (h *home) write(name string, content []byte) (FileInfo, error) {
	name, err := valid(name)
	if err != nil {
		return FileInfo{}, err
	}
	if len(content) > fileBytes {
		return FileInfo{}, tooLarge()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.fits(name, int64(len(content))); err != nil {
		return FileInfo{}, err
	}
	if dir := path.Dir(name); dir != "." {
		if err := h.root.MkdirAll(dir, 0o700); err != nil {
			return FileInfo{}, known(err)
		}
	}
	if info, err := h.root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return FileInfo{}, known(fs.ErrInvalid)
	}
	part := path.Join(path.Dir(name), ".saving~")
	if err := h.root.WriteFile(part, content, 0o600); err != nil {
		return FileInfo{}, errors.Join(known(err), h.root.Remove(part))
	}
	if err := h.root.Rename(part, name); err != nil {
		return FileInfo{}, known(err)
	}
	info, err := h.root.Stat(name)
	if err != nil {
		return FileInfo{}, known(err)
	}
	return infoOf(name, info), nil
}

// fits checks the quota for a file of size bytes in the place of name.
func (h *home) fits(name string, size int64) error {
	var bytes int64
	files := 1
	err := fs.WalkDir(h.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == "." || p == name {
			return nil
		}
		files++
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		if files > homeFiles || bytes+size > homeBytes {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return known(err)
	}
	if files > homeFiles || bytes+size > homeBytes {
		return tooLarge()
	}
	return nil
}

func (h *home) remove(name string) error {
	name, err := valid(name)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return known(h.root.Remove(name))
}

// place puts an exercise's files into the home. A file that the learner has
// made different stays as name~.
func (h *home) place(files map[string][]byte) error {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		old, _, err := h.read(name)
		if err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		if err == nil {
			if _, err := h.write(name+"~", old); err != nil {
				return fmt.Errorf("session: keep a copy of %s: %w", name, err)
			}
		}
		if _, err := h.write(name, files[name]); err != nil {
			return fmt.Errorf("session: place %s: %w", name, err)
		}
	}
	return nil
}
