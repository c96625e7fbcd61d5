package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubistro/hack/image"
)

// adaptNode is run on a node before containerd starts.
//
//go:embed adapt-node
var adaptNode []byte

const adaptUnit = `[Service]
ExecStartPre=/kind/bin/adapt-node
`

// node writes the node image as an archive for `docker load`: what kind's build
// (pkg/build/nodeimage, images/base/Dockerfile) makes with a container engine.
func (b *builder) node(ctx context.Context, file, name string) error {
	work, err := os.MkdirTemp(b.cache.dir, "work-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	root, err := b.debian(ctx)
	if err != nil {
		return err
	}
	bin := map[string]string{}
	if bin["pause"], err = b.pause(ctx); err != nil {
		return err
	}
	for _, p := range programs() {
		if bin[p.name], err = b.build(ctx, p); err != nil {
			return err
		}
	}
	kind, err := moduleDir(ctx, "sigs.k8s.io/kind@"+kindVersion)
	if err != nil {
		return err
	}
	defer b.step("assembling the node image")()

	t := new(image.Tree)
	if err := b.system(ctx, t, kind, bin); err != nil {
		return err
	}
	sandbox, err := sandboxImage(filepath.Join(kind, baseFiles, "etc/containerd/config.toml"))
	if err != nil {
		return err
	}
	list, err := b.componentImages(ctx, work, root, sandbox, bin)
	if err != nil {
		return err
	}
	archive := filepath.Join(work, "images.tar")
	if err := image.WriteOCI(archive, list); err != nil {
		return err
	}
	store, err := b.fillStore(ctx, work, archive, bin)
	if err != nil {
		return err
	}
	if err := t.AddAll("/var/lib/containerd", store); err != nil {
		return err
	}

	var base image.Tree
	for _, dir := range []string{"dev", "proc", "sys", "run", "var/log"} {
		base.AddDir("/"+dir, 0o755)
	}
	base.AddDir("/tmp", 0o777|fs.ModeSticky)
	if err := base.AddAll("/", root); err != nil {
		return err
	}
	outer := &image.Builder{Dir: work}
	system, err := outer.Layer(&base)
	if err != nil {
		return err
	}
	ours, err := outer.Layer(t)
	if err != nil {
		return err
	}
	img, err := outer.Image(v1.Config{
		Env:        []string{"container=docker", image.PathEnv}, // tells systemd where it is
		Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
		StopSignal: "SIGRTMIN+3", // at which systemd ends
		Labels: labels("Kubistro node", kubernetesVersion, "A node for kind "+kindVersion+", built from Go modules and Debian "+debianSuite+": Kubernetes "+kubernetesVersion+
			", containerd "+containerdVersion+", runc "+runcVersion+". Not an image of the kind project."),
	}, system, ours)
	if err != nil {
		return err
	}
	return image.WriteDocker(file, image.Tagged{Name: name, Image: img})
}

// baseFiles are the files that kind lays over a Debian, within its module.
const baseFiles = "images/base/files"

// system adds what stands between Debian and the images: kind's files, programs,
// units that are on, configuration.
func (b *builder) system(ctx context.Context, t *image.Tree, kind string, bin map[string]string) error {
	err := filepath.WalkDir(filepath.Join(kind, baseFiles), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		to := strings.TrimPrefix(p, filepath.Join(kind, baseFiles))
		mode := fs.FileMode(0o644) // the module cache has no modes
		if strings.HasPrefix(to, "/usr/local/bin/") || strings.HasPrefix(to, "/kind/bin/") {
			mode = 0o755
		}
		t.AddFile(to, p, mode)
		return nil
	})
	if err != nil {
		return err
	}
	for p, name := range map[string]string{
		"/usr/bin/kube": "kube", "/usr/local/sbin/runc": "runc", "/usr/local/bin/crictl": "crictl", "/usr/local/bin/ctr": "ctr",
		"/usr/local/bin/containerd": "containerd", "/usr/local/bin/containerd-shim-runc-v2": "containerd-shim-runc-v2",
		"/opt/cni/bin/host-local": "host-local", "/opt/cni/bin/loopback": "loopback", "/opt/cni/bin/ptp": "ptp", "/opt/cni/bin/portmap": "portmap",
	} {
		t.AddFile(p, bin[name], 0o755)
	}
	for _, n := range []string{"kubeadm", "kubelet", "kubectl"} {
		t.AddLink("/usr/bin/"+n, "kube")
	}
	const units = "/etc/systemd/system/"
	for _, u := range []string{"kubelet", "containerd", "undo-mount-hacks"} {
		if !t.Has(units + u + ".service") {
			return fmt.Errorf("kind %s has no unit %s any more", kindVersion, u)
		}
		t.AddLink(units+"multi-user.target.wants/"+u+".service", units+u+".service")
	}
	t.AddLink(units+"systemd-binfmt.service", "/dev/null") // it would write to the kernel of the host
	t.AddData("/etc/systemd/journald.conf.d/10-kind.conf", []byte("[Journal]\nReadKMsg=no\n"), 0o644)
	t.AddData("/kind/bin/adapt-node", adaptNode, 0o755)
	t.AddData(units+"containerd.service.d/10-adapt.conf", []byte(adaptUnit), 0o644)
	t.AddDir("/etc/kubernetes/manifests", 0o755)
	t.AddDir("/etc/cni/net.d", 0o755)
	for _, empty := range []string{"/etc/machine-id", "/etc/resolv.conf"} {
		t.AddData(empty, nil, 0o644)
	}
	t.AddData("/kind/version", []byte(kubernetesVersion), 0o644)

	spec, err := command(ctx, "/", nil, bin["ctr"], "oci", "spec")
	if err != nil {
		return err
	}
	base, err := containerSpec([]byte(spec))
	if err != nil {
		return err
	}
	t.AddData("/etc/containerd/cri-base.json", base, 0o644)

	cni, err := kindManifest(kind, "const_cni.go", "defaultCNIManifest", map[string]string{"kindnetdImage": kindnetImage})
	if err != nil {
		return err
	}
	t.AddData("/kind/manifests/default-cni.yaml", []byte(cni), 0o644)
	storage, err := kindManifest(kind, "const_storage.go", "defaultStorageManifest", map[string]string{"storageProvisionerImage": localPathImage, "storageHelperImage": helperImage})
	if err != nil {
		return err
	}
	t.AddData("/kind/manifests/default-storage.yaml", []byte(storage), 0o644)
	return nil
}

// containerSpec is containerd's default for a container, changed as kind does: a hook
// hides the host's product files, and limits are those of the node.
func containerSpec(spec []byte) ([]byte, error) {
	var s map[string]any
	if err := json.Unmarshal(spec, &s); err != nil {
		return nil, err
	}
	process, ok := s["process"].(map[string]any)
	if !ok {
		return nil, errors.New("the runtime's default specification has no process")
	}
	delete(process, "rlimits")
	hooks, _ := s["hooks"].(map[string]any)
	if hooks == nil {
		hooks = map[string]any{}
	}
	list, _ := hooks["createContainer"].([]any)
	hooks["createContainer"] = append(list, map[string]any{"path": "/kind/bin/mount-product-files.sh"})
	s["hooks"] = hooks
	return json.MarshalIndent(s, "", "  ")
}

// sandboxImage is the image for namespaces that a containerd configuration names.
func sandboxImage(config string) (string, error) {
	data, err := os.ReadFile(config)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == "sandbox_image" {
			return strings.Trim(strings.TrimSpace(value), `"`), nil
		}
	}
	return "", fmt.Errorf("%s names no sandbox_image", config)
}

// fillStore lets a containerd of its own import the archive, and returns the folder
// that a node's containerd finds it in. Nothing is unpacked: a node does that.
func (b *builder) fillStore(ctx context.Context, work, archive string, bin map[string]string) (string, error) {
	root, socket := filepath.Join(work, "containerd"), filepath.Join(work, "containerd.sock")
	config := filepath.Join(work, "containerd.toml")
	text := fmt.Sprintf("version = 3\nroot = %q\nstate = %q\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.cri.v1.images\", \"io.containerd.cri.v1.runtime\"]\n[grpc]\naddress = %q\n[ttrpc]\naddress = %q\n",
		root, filepath.Join(work, "state"), socket, socket+".ttrpc")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	daemon := exec.CommandContext(ctx, bin["containerd"], "--config", config)
	var log bytes.Buffer
	daemon.Stdout, daemon.Stderr = &log, &log
	daemon.Cancel = func() error { return daemon.Process.Signal(os.Interrupt) }
	if err := daemon.Start(); err != nil {
		return "", err
	}
	err := importImages(ctx, bin["ctr"], socket, archive)
	cancel()
	if waited := daemon.Wait(); err != nil {
		return "", fmt.Errorf("%w\ncontainerd (%v):\n%s", err, waited, tail(log.Bytes()))
	}
	// Of its plugins' folders a node needs contents and the list of images.
	list, err := os.ReadDir(root)
	if err != nil {
		return "", err
	}
	for _, e := range list {
		if e.Name() != "io.containerd.content.v1.content" && e.Name() != "io.containerd.metadata.v1.bolt" {
			if err := os.RemoveAll(filepath.Join(root, e.Name())); err != nil {
				return "", err
			}
		}
	}
	return root, nil
}

func importImages(ctx context.Context, ctr, socket, archive string) error {
	for { // it says nowhere else that it listens
		if _, err := command(ctx, "/", nil, ctr, "--address", socket, "version"); err == nil {
			break
		} else if ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	// Pinned: the kubelet's garbage collection leaves them, nobody could pull them again.
	_, err := command(ctx, "/", nil, ctr, "--address", socket, "--namespace", "k8s.io", "images", "import",
		"--label=io.cri-containerd.pinned=pinned", "--all-platforms", "--no-unpack", "--digests", archive)
	return err
}
