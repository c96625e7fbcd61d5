package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// entries reads a tar stream into "path mode content or target" lines.
func entries(t *testing.T, r io.Reader) []string {
	t.Helper()
	var out []string
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h.FileInfo().Mode().String()+" "+h.Name+" "+h.Linkname+string(content))
	}
}

func TestTree(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "sub", "program")
	if err := os.WriteFile(program, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub/program", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var tree Tree
	tree.AddDir("/tmp", 0o777|os.ModeSticky)
	tree.AddData("/etc/passwd", []byte("root"), 0o644)
	tree.AddData("/etc-more", nil, 0o600)
	tree.AddFile("usr/bin/tool", program, 0o555)
	if err := tree.AddAll("/all", dir); err != nil {
		t.Fatal(err)
	}
	if !tree.Has("/all/link") || tree.Has("/all/nothing") {
		t.Error("Has doesn't know what was added")
	}
	var b bytes.Buffer
	if err := tree.Write(&b); err != nil {
		t.Fatal(err)
	}
	first := slices.Clone(b.Bytes())
	want := []string{
		"drwxr-xr-x all/ ", "Lrwxrwxrwx all/link sub/program", "drwx------ all/sub/ ", "-rwxr-xr-x all/sub/program x",
		"drwxr-xr-x etc/ ", "-rw-r--r-- etc/passwd root", "-rw------- etc-more ",
		"dtrwxrwxrwx tmp/ ", "drwxr-xr-x usr/ ", "drwxr-xr-x usr/bin/ ", "-r-xr-xr-x usr/bin/tool x",
	}
	if diff := cmp.Diff(want, entries(t, &b)); diff != "" {
		t.Error(diff)
	}
	var again bytes.Buffer
	if err := tree.Write(&again); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, again.Bytes()) {
		t.Error("the same tree was written differently the second time")
	}
}

func build(t *testing.T, b *Builder, content string) v1.Image {
	t.Helper()
	var tree Tree
	tree.AddData("/hello", []byte(content), 0o755)
	layer, err := b.Layer(&tree)
	if err != nil {
		t.Fatal(err)
	}
	img, err := b.Image(v1.Config{Entrypoint: []string{"/hello"}}, layer)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestOCIArchiveNamesItsImages(t *testing.T) {
	b := &Builder{Dir: t.TempDir(), Zstd: true}
	one, two := build(t, b, "one"), build(t, b, "two")
	file := filepath.Join(t.TempDir(), "images.tar")
	if err := WriteOCI(file, []Tagged{{"example.org/one:v1", one}, {"example.org/alias:v1", one}, {"example.org/two:v1", two}}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for tr := tar.NewReader(f); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		p := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(p, 0o755)
		} else {
			var content []byte
			if content, err = io.ReadAll(tr); err == nil {
				err = os.WriteFile(p, content, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range manifest.Manifests {
		img, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := img.Layers()
		if err != nil {
			t.Fatal(err)
		}
		content, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		got[m.Annotations["io.containerd.image.name"]] = entries(t, content)[0]
	}
	want := map[string]string{"example.org/one:v1": "-rwxr-xr-x hello one", "example.org/alias:v1": "-rwxr-xr-x hello one", "example.org/two:v1": "-rwxr-xr-x hello two"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDockerArchiveIsEqualForEqualInput(t *testing.T) {
	var sums []string
	for range 2 {
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := WriteDocker(file, Tagged{"example.org/hello:v1", build(t, &Builder{Dir: t.TempDir()}, "same")}); err != nil {
			t.Fatal(err)
		}
		tag, err := name.NewTag("example.org/hello:v1")
		if err != nil {
			t.Fatal(err)
		}
		img, err := tarball.ImageFromPath(file, &tag)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"/hello"}, config.Config.Entrypoint); diff != "" {
			t.Error(diff)
		}
		sum, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum.String())
	}
	if sums[0] != sums[1] {
		t.Errorf("two builds of the same differ: %v", sums)
	}
}
