package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// epochForTest is long ago.
var epochForTest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCacheKeepsWholeEntriesOnly(t *testing.T) {
	c, err := openCache(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if _, err := c.entry("a", func(p string) error { return errors.Join(os.WriteFile(p, []byte("half"), 0o644), broken) }); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if _, ok := c.find("a"); ok {
		t.Error("half an entry is there")
	}
	for range 2 {
		built := 0
		p, err := c.entry("b", func(p string) error { built++; return os.WriteFile(p, []byte("whole"), 0o644) })
		if err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(p); err != nil || string(content) != "whole" {
			t.Errorf("%q %v", content, err)
		}
	}
	if _, err := c.entry("b", func(string) error { return errors.New("built again") }); err != nil {
		t.Error(err)
	}
	old := filepath.Join(c.dir, "b")
	if err := os.Chtimes(old, epochForTest, epochForTest); err != nil {
		t.Fatal(err)
	}
	if err := c.prune(); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.find("b"); ok {
		t.Error("an entry that nobody used for long is still there")
	}
}

func TestSourcesTellsChanges(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.go": "1", "sub/b.txt": "2", "a_test.go": "3"})
	hash := func() string {
		t.Helper()
		h, err := sources(dir)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := hash()
	write(t, dir, map[string]string{"a_test.go": "changed"})
	if hash() != first {
		t.Error("a test's change is none of the image's")
	}
	write(t, dir, map[string]string{"sub/b.txt": "changed"})
	if hash() == first {
		t.Error("a change wasn't seen")
	}
	if key("ab", "c") == key("a", "bc") {
		t.Error("two lists of parts have one key")
	}
}

// The versions in labels are those of the modules here.
func TestVersionsAreThoseBuilt(t *testing.T) {
	for file, modules := range map[string]map[string]string{
		"kube/go.mod":   {"k8s.io/kubernetes": kubernetesVersion, "go.etcd.io/etcd/server/v3": etcdVersion, "go.etcd.io/etcd/etcdctl/v3": etcdVersion},
		"addons/go.mod": {"github.com/coredns/coredns": corednsVersion, "github.com/rancher/local-path-provisioner": localPathVersion},
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) >= 2 && modules[f[0]] != "" {
				got[f[0]] = f[1]
			}
		}
		if diff := cmp.Diff(modules, got); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
}

func TestKindManifest(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"pkg/build/nodeimage/const.go": "package nodeimage\n\nconst img = \"a\"\nconst other = img\nconst text = `x: ` + img + `\ny: ` + img + \"\\n\"\nconst n = 1 - 1\n"})
	got, err := kindManifest(dir, "const.go", "text", map[string]string{"img": "ours"})
	if err != nil || got != "x: ours\ny: ours\n" {
		t.Errorf("%q %v", got, err)
	}
	for name, c := range map[string]struct {
		constant string
		replaced map[string]string
	}{
		"a name we have nothing for": {"text", nil},
		"a name it doesn't use":      {"text", map[string]string{"img": "ours", "gone": "ours"}},
		"no such constant":           {"missing", nil},
		"no text":                    {"n", nil},
	} {
		if got, err := kindManifest(dir, "const.go", c.constant, c.replaced); err == nil {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestClosureStaysBelowItsRoot(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"usr/lib/real": "", "usr/lib64/x": ""})
	for link, target := range map[string]string{"lib": "usr/lib", "usr/lib64/loader": "/lib/real", "up": "../../../../usr/lib/real", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for p, want := range map[string]string{"/usr/lib64/loader": "usr/lib/real", "/up": "usr/lib/real", "/lib/real": "usr/lib/real"} {
		if got, err := resolve(root, p); err != nil || got != filepath.Join(root, want) {
			t.Errorf("%s: %s %v", p, got, err)
		}
	}
	for _, p := range []string{"/loop", "/nothing"} {
		if got, err := resolve(root, p); err == nil {
			t.Errorf("%s: %s", p, got)
		}
	}
}

func TestByShortName(t *testing.T) {
	const all = "registry.k8s.io/kube-apiserver:v1\nregistry.k8s.io/kube-controller-manager:v1\nregistry.k8s.io/kube-scheduler:v1\nregistry.k8s.io/kube-proxy:v1\nregistry.k8s.io/coredns/coredns:v2\nregistry.k8s.io/pause:3\n"
	got, err := byShortName(all + "registry.k8s.io/etcd:3.7.0-0\n")
	if err != nil || got["coredns"] != "registry.k8s.io/coredns/coredns:v2" || got["etcd"] != "registry.k8s.io/etcd:3.7.0-0" {
		t.Errorf("%v %v", got, err)
	}
	if _, err := byShortName(all); err == nil {
		t.Error("no etcd, and nobody minds")
	}
}

func TestContainerSpec(t *testing.T) {
	got, err := containerSpec([]byte(`{"process":{"cwd":"/","rlimits":[{"type":"RLIMIT_NOFILE"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(got, &spec); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"process": map[string]any{"cwd": "/"},
		"hooks":   map[string]any{"createContainer": []any{map[string]any{"path": "/kind/bin/mount-product-files.sh"}}},
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Error(diff)
	}
	if _, err := containerSpec([]byte(`{}`)); err == nil {
		t.Error("a specification without a process was taken")
	}
}

func TestSandboxImage(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"good": "[x]\n  sandbox_image = \"registry.k8s.io/pause:3.10\"\n", "bad": "[x]\n"})
	if got, err := sandboxImage(filepath.Join(dir, "good")); err != nil || got != "registry.k8s.io/pause:3.10" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := sandboxImage(filepath.Join(dir, "bad")); err == nil {
		t.Error("a configuration without one was taken")
	}
}
