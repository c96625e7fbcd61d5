package kind

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/clustertest"
	"kubistro/internal/lab"
)

// imageEnv names the node image for tests with real kind clusters; DOCKER_HOST says where
// they run. make test-kind sets both.
const imageEnv = "KUBISTRO_KIND_IMAGE"

// realWithin is how long a start, and anything that a cluster does, may take on a busy machine.
const realWithin = 15 * time.Minute

// realOptions are those of a driver of real clusters in a folder of the test's own. What is
// left of its clusters ends with the test.
func realOptions(t *testing.T) Options {
	t.Helper()
	image := os.Getenv(imageEnv)
	if image == "" {
		t.Skip(imageEnv + " isn't set: make test-kind runs this with real kind clusters")
	}
	dir := t.TempDir()
	agent := filepath.Join(dir, "kind-agent")
	build(t, agent, "kubistro/cmd/kind-agent")
	o := Options{Dir: dir, Agent: agent, Image: image, Archives: []string{whoamiArchive(t)}, StartTimeout: realWithin, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	t.Cleanup(func() {
		d, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := d.known(context.Background())
		if err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			t.Errorf("cluster %s is left over", id)
			if err := d.remove(context.Background(), id); err != nil {
				t.Error(err)
			}
		}
	})
	return o
}

// build makes a static Linux program.
func build(t *testing.T, out string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"build", "-ldflags", "-s -w", "-o", out}, args...)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
}

const whoami = `package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		name, _ := os.Hostname()
		fmt.Fprintln(w, "Hostname:", name)
	})
	panic(http.ListenAndServe(":80", nil))
}
`

// whoamiArchive is an image archive as docker save makes it: a program that says its
// host's name, under the name that the conformance suite uses.
func whoamiArchive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(whoami), 0o600); err != nil {
		t.Fatal(err)
	}
	build(t, filepath.Join(dir, "whoami"), source)
	program, err := os.ReadFile(filepath.Join(dir, "whoami"))
	if err != nil {
		t.Fatal(err)
	}
	layer := tarOf(t, map[string][]byte{"whoami": program}, 0o755)
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{"Entrypoint": []string{"/whoami"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{"docker.io/traefik/whoami:latest"}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "whoami.tar")
	if err := os.WriteFile(path, tarOf(t, map[string][]byte{"manifest.json": manifest, "config.json": config, "layer.tar": layer}, 0o644), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func tarOf(t *testing.T, files map[string][]byte, mode int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestKindConforms(t *testing.T) {
	clustertest.Run(t, func(t *testing.T) clustertest.Setup {
		o := realOptions(t)
		var former *Driver
		return clustertest.Setup{
			Open: func(t *testing.T) cluster.Driver {
				if former != nil {
					if err := former.Close(); err != nil {
						t.Error(err)
					}
				}
				d, err := New(o)
				if err != nil {
					t.Fatal(err)
				}
				former = d
				t.Cleanup(func() {
					if err := d.Close(); err != nil {
						t.Error(err)
					}
				})
				return d
			},
			Crash: func(t *testing.T, id string) {
				if _, err := former.engine.run(t.Context(), nil, "kill", former.prefix+id+"-control-plane"); err != nil {
					t.Fatal(err)
				}
			},
			Remains: func(t *testing.T, id string) []string {
				out, err := containers(t.Context(), former.engine, former.prefix+id)
				if err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(former.dir(id)); err == nil {
					out = append(out, former.dir(id))
				}
				return out
			},
			Annex:  lab.Kitchen{CPU: "1", Memory: "1Gi"},
			Within: realWithin,
		}
	})
}

// realDriver is a driver with realOptions, closed at the end.
func realDriver(t *testing.T) *Driver {
	t.Helper()
	d, err := New(realOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// cancelledPerRun is how many of the stages a run of the tests cancels: the later ones cost a whole start each.
const cancelledPerRun = 3

// TestKindCancelInEveryStage cancels real starts in the middle of kind's stages, others every day.
func TestKindCancelInEveryStage(t *testing.T) {
	d := realDriver(t)
	spec := lab.ClusterSpec{Kitchens: lab.DefaultClusterSpec().Kitchens[:1]}
	all := []string{stageNodes, stageConfig, stageControlPlane, stageNetwork, stageKitchens, stagePantry, stageReady}
	for i := range cancelledPerRun {
		stage := all[(time.Now().YearDay()*cancelledPerRun+i)%len(all)]
		ctx, cancel := context.WithCancel(t.Context())
		_, err := d.Create(ctx, "cancelled", spec, func(s lab.Stage) {
			if s.Name == stage {
				cancel()
			}
		})
		cancel()
		if err == nil {
			t.Errorf("%s: created all the same", stage)
		}
		if left, err := d.known(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("%s: left over: %v, %v", stage, left, err)
		}
		home, _ := os.UserHomeDir() // none: nothing to look at
		if b, err := os.ReadFile(filepath.Join(home, ".kube", "config")); err == nil && strings.Contains(string(b), d.prefix) {
			t.Errorf("%s: the user's kubeconfig was touched", stage)
		}
	}
}
