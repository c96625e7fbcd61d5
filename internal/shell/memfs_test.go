package shell_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kubistro/internal/shell"
)

// rootFS is an FS over a temporary folder.
type rootFS struct{ *os.Root }

func newRootFS(t testing.TB) rootFS {
	r, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return rootFS{r}
}

func rel(name string) string {
	if name == "/" {
		return "."
	}
	return filepath.FromSlash(name[1:])
}

func (f rootFS) OpenFile(name string, flag int, perm fs.FileMode) (shell.File, error) {
	file, err := f.Root.OpenFile(rel(name), flag, perm)
	if err != nil {
		return nil, err
	}
	return file, nil
}
func (f rootFS) Stat(name string) (fs.FileInfo, error)  { return f.Root.Stat(rel(name)) }
func (f rootFS) Lstat(name string) (fs.FileInfo, error) { return f.Root.Lstat(rel(name)) }
func (f rootFS) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(f.Root.FS(), filepath.ToSlash(rel(name)))
}
func (f rootFS) Mkdir(name string, perm fs.FileMode) error { return f.Root.Mkdir(rel(name), perm) }
func (f rootFS) Remove(name string) error                  { return f.Root.Remove(rel(name)) }
func (f rootFS) Rename(a, b string) error                  { return f.Root.Rename(rel(a), rel(b)) }
func (f rootFS) Chtimes(name string, a, m time.Time) error { return f.Root.Chtimes(rel(name), a, m) }
func (f rootFS) Chmod(name string, mode fs.FileMode) error { return f.Root.Chmod(rel(name), mode) }

var _ io.Reader
