package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubistro/hack/image"
)

// realCluster is a kind cluster of a control plane and a worker made from the node image.
type realCluster struct {
	t          *testing.T
	kind       string
	name       string
	kubeconfig string
}

func (c *realCluster) try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return command(ctx, "/", []string{"KUBECONFIG=" + c.kubeconfig}, name, args...)
}

func (c *realCluster) must(name string, args ...string) string {
	c.t.Helper()
	out, err := c.try(name, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// file is the path of a test's file.
func (c *realCluster) file(name string) string {
	p, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// kubectl runs the node's own.
func (c *realCluster) kubectl(args ...string) (string, error) {
	return c.try("docker", append([]string{"exec", c.name + "-control-plane", "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"}, args...)...)
}

// eventually waits until kubectl says what is wanted.
func (c *realCluster) eventually(want string, args ...string) {
	c.t.Helper()
	var out string
	var err error
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); <-again.C {
		if out, err = c.kubectl(args...); err == nil && strings.Contains(out, want) {
			return
		}
	}
	c.t.Fatalf("kubectl %s: want %q, have %q, %v", strings.Join(args, " "), want, out, err)
}

// TestRealCluster makes a cluster from the image that KUBISTRO_KIND_IMAGE names and uses
// each thing that we built ourselves: network between nodes, DNS, volumes, NetworkPolicy.
func TestRealCluster(t *testing.T) {
	node := os.Getenv("KUBISTRO_KIND_IMAGE")
	if node == "" {
		t.Skip("KUBISTRO_KIND_IMAGE names no image: make test-kind")
	}
	dir := t.TempDir()
	b := &builder{cache: &cache{dir}, log: t.Output()}
	kind, err := b.build(t.Context(), program{name: "kind", module: "sigs.k8s.io/kind@" + kindVersion, pkg: ".", ldflags: "-s -w"})
	if err != nil {
		t.Fatal(err)
	}
	c := &realCluster{t: t, kind: kind, name: "kubistro-node-test", kubeconfig: filepath.Join(dir, "kubeconfig")}
	config := filepath.Join(dir, "kind.yaml")
	if err := os.WriteFile(config, []byte("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: control-plane}, {role: worker}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.must(kind, "delete", "cluster", "--name", c.name) })
	c.must(kind, "create", "cluster", "--name", c.name, "--image", node, "--config", config, "--wait", "5m")
	c.must(kind, "load", "image-archive", "--name", c.name, probeArchive(t, dir))

	c.must("docker", "cp", c.file("probes.yaml"), c.name+"-control-plane:/probes.yaml")
	if _, err := c.kubectl("apply", "-f", "/probes.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []string{"server", "friend", "stranger"} {
		c.eventually("True", "get", "pod", pod, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
	}
	// The server is on the worker, the others on the control plane's node. It writes to a volume of the default class.
	c.eventually("Bound", "get", "pvc", "data", "-o", "jsonpath={.status.phase}")
	for _, pod := range []string{"friend", "stranger"} {
		c.eventually("hello", "exec", pod, "--", "/probe", "get", "http://server.default.svc.cluster.local/")
	}

	// One policy lets only the friend in, and only at the named port.
	c.must("docker", "cp", c.file("policy.yaml"), c.name+"-control-plane:/policy.yaml")
	if _, err := c.kubectl("apply", "-f", "/policy.yaml"); err != nil {
		t.Fatal(err)
	}
	c.eventually("timeout", "exec", "stranger", "--", "/probe", "get", "http://server.default.svc.cluster.local/")
	c.eventually("hello", "exec", "friend", "--", "/probe", "get", "http://server.default.svc.cluster.local/")
	c.eventually("timeout", "exec", "friend", "--", "/probe", "get", "http://server.default.svc.cluster.local:81/")
	if _, err := c.kubectl("delete", "networkpolicy", "friends"); err != nil {
		t.Fatal(err)
	}
	c.eventually("hello", "exec", "stranger", "--", "/probe", "get", "http://server.default.svc.cluster.local/")
}

// probeArchive packs testdata/probe as an image.
func probeArchive(t *testing.T, dir string) string {
	t.Helper()
	binary, archive := filepath.Join(dir, "probe"), filepath.Join(dir, "probe.tar")
	if _, err := command(t.Context(), "testdata/probe", []string{"CGO_ENABLED=0"}, "go", "build", "-o", binary, "."); err != nil {
		t.Fatal(err)
	}
	var tree image.Tree
	tree.AddFile("/probe", binary, 0o755)
	b := &image.Builder{Dir: dir, Zstd: true}
	layer, err := b.Layer(&tree)
	if err != nil {
		t.Fatal(err)
	}
	img, err := b.Image(v1.Config{Entrypoint: []string{"/probe"}}, layer)
	if err != nil {
		t.Fatal(err)
	}
	if err := image.WriteOCI(archive, []image.Tagged{{Name: "docker.io/kubistro/probe:v1", Image: img}}); err != nil {
		t.Fatal(err)
	}
	return archive
}
