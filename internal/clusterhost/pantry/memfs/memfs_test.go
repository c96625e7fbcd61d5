package memfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newFS(t testing.TB, bytes int64, files int) (*FS, *Budget) {
	b := NewBudget(bytes, files)
	f := New(b)
	t.Cleanup(func() {
		f.Discard()
		if bytes, files := b.Used(); bytes != 0 || files != 0 {
			t.Errorf("after Discard %d bytes and %d files are still charged", bytes, files)
		}
	})
	return f, b
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, f *FS, name string) string {
	t.Helper()
	data, err := f.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func names(t testing.TB, f *FS, dir string) []string {
	t.Helper()
	entries, err := f.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		out = append(out, name)
	}
	return out
}

func TestFilesAndFolders(t *testing.T) {
	f, _ := newFS(t, 1<<20, 100)
	must(t, f.WriteFile("/a/b/menu", []byte("soup"), 0o644), f.Mkdir("/a/c", 0o755))
	if got := read(t, f, "/a/b/menu"); got != "soup" {
		t.Errorf("read %q", got)
	}
	if diff := cmp.Diff([]string{"b/", "c/"}, names(t, f, "/a")); diff != "" {
		t.Error(diff)
	}
	must(t, f.Rename("/a/b/menu", "/a/c/card"), f.Remove("/a/b"))
	if diff := cmp.Diff([]string{"card"}, names(t, f, "/a/c")); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		what string
		err  error
		want error
	}{
		{"missing", f.Remove("/x"), fs.ErrNotExist},
		{"below a file", f.Mkdir("/a/c/card/x", 0o755), syscall.ENOTDIR},
		{"there already", f.Mkdir("/a", 0o755), fs.ErrExist},
		{"not empty", f.Remove("/a/c"), syscall.ENOTEMPTY},
		{"into itself", f.Rename("/a", "/a/c/a"), syscall.EINVAL},
		{"file over folder", f.Rename("/a/c/card", "/a/c"), syscall.EISDIR},
		{"root", f.Remove("/"), syscall.EBUSY},
		{"long name", f.Mkdir("/"+strings.Repeat("x", 256), 0o755), syscall.ENAMETOOLONG},
		{"deep", f.MkdirAll(strings.Repeat("/x", 100), 0o755), syscall.ENAMETOOLONG},
		{"out of the root", f.WriteFile("/../../etc/x", nil, 0o644), nil},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.what, tc.err, tc.want)
		}
		var pe *fs.PathError
		if tc.want != nil && !errors.As(tc.err, &pe) {
			t.Errorf("%s: %T is not a *fs.PathError", tc.what, tc.err)
		}
	}
	must(t, f.RemoveAll("/a"), f.RemoveAll("/a"), f.RemoveAll("/x"))
}

func TestOpenFlags(t *testing.T) {
	f, _ := newFS(t, 1<<20, 100)
	must(t, f.WriteFile("/x", []byte("12345"), 0o644))
	file, err := f.OpenFile("/x", os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	io.WriteString(file, "67")
	if _, err := file.Read(make([]byte, 1)); !errors.Is(err, syscall.EBADF) {
		t.Errorf("read of a file opened for writing: %v", err)
	}
	must(t, file.Close())
	file, err = f.OpenFile("/x", os.O_RDWR, 0)
	must(t, err)
	if _, err := file.Seek(-2, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	io.WriteString(file, "XYZ")
	must(t, file.Close())
	if got := read(t, f, "/x"); got != "12345XYZ" {
		t.Errorf("read %q", got)
	}
	if _, err := f.OpenFile("/x", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); !errors.Is(err, fs.ErrExist) {
		t.Errorf("O_EXCL: %v", err)
	}
	if _, err := f.OpenFile("/", os.O_WRONLY, 0); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("folder for writing: %v", err)
	}
	file, err = f.OpenFile("/hole", os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	file.Seek(3, io.SeekStart)
	io.WriteString(file, "x")
	must(t, file.Close())
	if got := read(t, f, "/hole"); got != "\x00\x00\x00x" {
		t.Errorf("hole reads %q", got)
	}
}

func TestImageBytesAreSharedUntilChanged(t *testing.T) {
	f, b := newFS(t, 4096, 20)
	image := bytes.Repeat([]byte("i"), 1<<20)
	must(t, f.AddImage(map[string][]byte{"/usr/bin/tool": image, "/etc/x": []byte("image")}))
	if used, _ := b.Used(); used > 4096 {
		t.Errorf("an image of 1 MiB is charged %d bytes", used)
	}
	must(t, f.WriteFile("/etc/x", []byte("mine"), 0o644))
	file, err := f.OpenFile("/usr/bin/tool", os.O_RDWR, 0)
	must(t, err)
	if _, err := io.WriteString(file, "x"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("copy of a big file: %v, want ENOSPC", err)
	}
	must(t, file.Close())
	if image[0] != 'i' {
		t.Error("the image itself was changed")
	}
}

func TestBudget(t *testing.T) {
	node := NewBudget(100_000, 50)
	a, b := New(node.Part(60_000, 1000)), New(node.Part(60_000, 1000))
	if err := a.WriteFile("/x", make([]byte, 70_000), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("over its own part: %v", err)
	}
	must(t, a.WriteFile("/y", make([]byte, 55_000), 0o644))
	if err := b.WriteFile("/y", make([]byte, 55_000), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("over the node's: %v", err)
	}
	var err error
	for n := 0; err == nil && n < 100; n++ {
		err = b.Mkdir("/"+strings.Repeat("d", n+1), 0o755)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("too many files: %v", err)
	}
	open, err := a.OpenFile("/y", os.O_RDONLY, 0)
	must(t, err, a.Remove("/y"))
	if used, _ := node.Used(); used < 55_000 {
		t.Errorf("a removed file that is open counts nothing (%d bytes in all)", used)
	}
	must(t, open.Close())
	a.Discard()
	b.Discard()
	if bytes, files := node.Used(); bytes != 0 || files != 0 {
		t.Errorf("%d bytes and %d files are left", bytes, files)
	}
}

func TestMounts(t *testing.T) {
	root, _ := newFS(t, 1<<20, 100)
	config, _ := newFS(t, 1<<20, 100)
	shared, _ := newFS(t, 1<<20, 100)
	must(t, config.Replace(map[string][]byte{"price": []byte("120"), "name": []byte("soup")}, 0o644))
	must(t,
		root.Mount("/etc/menu", config, "/", true),
		root.Mount("/work", shared, "/", false),
		root.Mount("/etc/name", config, "/name", true),
	)
	if diff := cmp.Diff([]string{"name", "price"}, names(t, root, "/etc/menu")); diff != "" {
		t.Error(diff)
	}
	if got := read(t, root, "/etc/name"); got != "soup" {
		t.Errorf("sub path reads %q", got)
	}
	if diff := cmp.Diff([]string{"menu/", "name"}, names(t, root, "/etc")); diff != "" {
		t.Error(diff)
	}
	if err := root.WriteFile("/etc/menu/price", []byte("1"), 0o644); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write to a read-only mount: %v", err)
	}
	var pe *fs.PathError
	if err := root.Remove("/etc/menu/nothing"); !errors.Is(err, syscall.EROFS) || !errors.As(err, &pe) || pe.Path != "/etc/menu/nothing" {
		t.Errorf("remove in a read-only mount: %v", err)
	}
	must(t, root.WriteFile("/work/order", []byte("7"), 0o644))
	if got := read(t, shared, "/order"); got != "7" {
		t.Errorf("the volume has %q", got)
	}
	if err := root.Rename("/work/order", "/order"); !errors.Is(err, syscall.EXDEV) {
		t.Errorf("rename across mounts: %v", err)
	}
	if err := root.Remove("/work"); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("remove of a mount point: %v", err)
	}
	must(t, config.Replace(map[string][]byte{"price": []byte("130")}, 0o644))
	if got := read(t, root, "/etc/menu/price"); got != "130" {
		t.Errorf("after the ConfigMap changed: %q", got)
	}
	if _, err := root.Stat("/etc/menu/name"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key that is gone: %v", err)
	}
}

func TestReadOnlyRoot(t *testing.T) {
	f, _ := newFS(t, 1<<20, 100)
	must(t, f.WriteFile("/x", []byte("x"), 0o644), f.AddDevice("/dev/null", Null))
	f.SetReadOnly(true)
	for what, err := range map[string]error{
		"write": f.WriteFile("/x", nil, 0o644), "mkdir": f.Mkdir("/d", 0o755), "remove": f.Remove("/x"),
		"rename": f.Rename("/x", "/y"), "chmod": f.Chmod("/x", 0o600),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v, want EROFS", what, err)
		}
	}
	if got := read(t, f, "/x"); got != "x" {
		t.Errorf("read %q", got)
	}
	null, err := f.OpenFile("/dev/null", os.O_WRONLY, 0)
	must(t, err)
	if n, err := null.Write([]byte("gone")); n != 4 || err != nil {
		t.Errorf("/dev/null: %d, %v", n, err)
	}
	f.SetReadOnly(false)
}

func TestDevices(t *testing.T) {
	f, _ := newFS(t, 1<<20, 100)
	var out bytes.Buffer
	must(t, f.AddDevice("/dev/zero", Zero), f.AddDevice("/dev/full", Full), f.AddDevice("/dev/urandom", Random), f.AddDevice("/dev/stdout", Output("stdout", &out)))
	must(t, f.WriteFile("/dev/stdout", []byte("line\n"), 0))
	if out.String() != "line\n" {
		t.Errorf("stdout got %q", out.String())
	}
	if err := f.WriteFile("/dev/full", []byte("x"), 0); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("/dev/full: %v", err)
	}
	for _, name := range []string{"/dev/zero", "/dev/urandom"} {
		file, err := f.OpenFile(name, os.O_RDONLY, 0)
		must(t, err)
		b := bytes.Repeat([]byte{1}, 64)
		if n, err := io.ReadFull(file, b); n != 64 || err != nil || bytes.Equal(b, bytes.Repeat([]byte{1}, 64)) {
			t.Errorf("%s gave %d bytes, %v", name, n, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	f, _ := newFS(t, 1<<20, 1000)
	volume, _ := newFS(t, 1<<20, 1000)
	must(t, f.Mount("/v", volume, "/", false))
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			name := "/v/" + string(rune('a'+n))
			for range 100 {
				f.WriteFile(name, []byte("x"), 0o644)
				f.ReadFile(name)
				f.ReadDir("/v")
				volume.Replace(map[string][]byte{"k": nil}, 0o644)
				f.Rename(name, name+"2")
				f.RemoveAll(name + "2")
			}
		})
	}
	wg.Wait()
}
