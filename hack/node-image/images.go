package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubistro/hack/image"
)

// Names of the images that the node's manifests ask for. They are not the names of
// what kind ships, since they are not that.
const (
	kindnetImage   = "docker.io/kubistro/kindnet:" + kindVersion
	localPathImage = "docker.io/kubistro/local-path-provisioner:" + localPathVersion
	helperImage    = "docker.io/kubistro/local-path-helper:" + debianSuite
)

// images makes the container images that a node starts with.
type images struct {
	*image.Builder
	root string // of Debian, whose tools kube-proxy and the helper Pods need
	bin  map[string]string
	list []image.Tagged
}

// componentImages makes every image that kubeadm and kind's manifests ask for, under
// the name they ask for. sandbox is the name of the image that containerd's
// configuration wants for the containers that hold a Pod's namespaces.
func (b *builder) componentImages(ctx context.Context, work, root, sandbox string, bin map[string]string) ([]image.Tagged, error) {
	asked, err := b.askedByKubeadm(ctx, work, bin["kube"])
	if err != nil {
		return nil, err
	}
	m := &images{Builder: &image.Builder{Dir: work, Zstd: true}, root: root, bin: bin}
	if err := m.kubernetes(asked); err != nil {
		return nil, err
	}
	for _, add := range []func() error{
		func() error {
			return m.add(v1.Config{Labels: labels("etcd", etcdVersion, "etcd and etcdctl "+etcdVersion+", built from their Go modules; the tag is the one that kubeadm asks for")},
				m.programs("etcd", "etcdctl"), asked["etcd"])
		},
		func() error {
			return m.add(v1.Config{Entrypoint: []string{"/coredns"}, User: "65532:65532", Labels: labels("coredns", corednsVersion,
				"CoreDNS "+corednsVersion+", built from its Go module with the plugins that a cluster uses; the tag is the one that kubeadm asks for")},
				m.file("/coredns", bin["coredns"]), asked["coredns"])
		},
		func() error {
			return m.add(v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535", Labels: labels("pause", kubernetesVersion,
				"pause, compiled from the C source in Kubernetes "+kubernetesVersion)}, m.file("/pause", bin["pause"]), asked["pause"], sandbox)
		},
		func() error {
			t := m.programs("kindnetd")
			if err := m.debian(t, "/usr/sbin/nft", "/usr/bin/ip"); err != nil {
				return err
			}
			return m.add(v1.Config{Entrypoint: []string{"/usr/local/bin/kindnetd"}, Labels: labels("kindnet", kindVersion,
				"Kubistro's own network plugin in the place of kindnetd: addresses and routes of Pods, masquerading, NetworkPolicy")}, t, kindnetImage)
		},
		func() error {
			return m.add(v1.Config{Labels: labels("local-path-provisioner", localPathVersion, "local-path-provisioner "+localPathVersion+", built from its Go module")},
				m.programs("local-path-provisioner"), localPathImage)
		},
		m.helper,
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return m.list, nil
}

// askedByKubeadm are the images that kubeadm will want, by the last part of their name.
func (b *builder) askedByKubeadm(ctx context.Context, work, kube string) (map[string]string, error) {
	kubeadm := filepath.Join(work, "kubeadm")
	if err := os.Symlink(kube, kubeadm); err != nil {
		return nil, err
	}
	out, err := command(ctx, work, nil, kubeadm, "config", "images", "list", "--kubernetes-version", kubernetesVersion)
	if err != nil {
		return nil, err
	}
	return byShortName(out)
}

// byShortName reads lines of image names.
func byShortName(lines string) (map[string]string, error) {
	asked := map[string]string{}
	for name := range strings.FieldsSeq(lines) {
		short, _, ok := strings.Cut(path.Base(name), ":")
		if !ok {
			return nil, fmt.Errorf("image name %q has no tag", name)
		}
		asked[short] = name
	}
	for _, n := range append([]string{"etcd", "coredns", "pause"}, kubernetesImages...) {
		if asked[n] == "" {
			return nil, fmt.Errorf("kubeadm asks for no image %s: %s", n, lines)
		}
	}
	return asked, nil
}

var kubernetesImages = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}

// kubernetes makes the four images of Kubernetes. They share one layer: the program
// is one, and kube-proxy's need for iptables costs the others nothing.
func (m *images) kubernetes(asked map[string]string) error {
	t := m.base()
	t.AddFile("/usr/local/bin/kube", m.bin["kube"], 0o755)
	for _, n := range kubernetesImages {
		t.AddLink("/usr/local/bin/"+n, "kube")
	}
	tools := []string{"/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi", "/usr/sbin/nft", "/usr/sbin/conntrack", "/usr/bin/kmod"}
	for _, p := range libraryFolders {
		extensions, err := filepath.Glob(filepath.Join(m.root, p, "xtables", "*.so"))
		if err != nil {
			return err
		}
		for _, e := range extensions {
			tools = append(tools, strings.TrimPrefix(e, m.root))
		}
	}
	if err := m.debian(t, tools...); err != nil {
		return err
	}
	for _, n := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		t.AddLink("/usr/sbin/"+n, "xtables-nft-multi")
	}
	t.AddLink("/usr/sbin/modprobe", "../bin/kmod")
	for _, f := range []string{"protocols", "services", "ethertypes"} {
		t.AddFile("/etc/"+f, filepath.Join(m.root, "etc", f), 0o644)
	}
	layer, err := m.Layer(t)
	if err != nil {
		return err
	}
	for _, n := range kubernetesImages {
		img, err := m.Image(v1.Config{Env: []string{image.PathEnv}, Entrypoint: []string{"/usr/local/bin/" + n}, Labels: labels(n, kubernetesVersion,
			"Kubernetes "+kubernetesVersion+", built from its Go module as one program for all components")}, layer)
		if err != nil {
			return err
		}
		m.list = append(m.list, image.Tagged{Name: asked[n], Image: img})
	}
	return nil
}

// helper makes the image that makes and removes folders of volumes.
func (m *images) helper() error {
	t := m.base()
	if err := m.debian(t, "/usr/bin/dash", "/usr/bin/mkdir", "/usr/bin/rm"); err != nil {
		return err
	}
	t.AddLink("/usr/bin/sh", "dash")
	return m.add(v1.Config{Labels: labels("local-path-helper", debianSuite, "sh, mkdir and rm of Debian "+debianSuite)}, t, helperImage)
}

// add makes an image of one layer under one or several names.
func (m *images) add(config v1.Config, t *image.Tree, names ...string) error {
	layer, err := m.Layer(t)
	if err != nil {
		return err
	}
	config.Env = append(config.Env, image.PathEnv)
	img, err := m.Image(config, layer)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, n := range names {
		if !seen[n] {
			m.list = append(m.list, image.Tagged{Name: n, Image: img})
		}
		seen[n] = true
	}
	return nil
}

// base is what images have that hold more than one file.
func (m *images) base() *image.Tree {
	t := new(image.Tree)
	t.AddDir("/tmp", 0o777|os.ModeSticky)
	t.AddDir("/run", 0o755)
	t.AddData("/etc/passwd", []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"), 0o644)
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		t.AddDir("/usr/"+dir, 0o755)
		t.AddLink("/"+dir, "usr/"+dir)
	}
	return t
}

func (m *images) programs(names ...string) *image.Tree {
	t := m.base()
	for _, n := range names {
		t.AddFile("/usr/local/bin/"+n, m.bin[n], 0o755)
	}
	return t
}

func (m *images) file(p, source string) *image.Tree {
	t := new(image.Tree)
	t.AddFile(p, source, 0o755)
	return t
}

// debian adds programs of Debian with the libraries that they need.
func (m *images) debian(t *image.Tree, files ...string) error {
	all, err := closure(m.root, files...)
	if err != nil {
		return err
	}
	for _, f := range all {
		source, err := resolve(m.root, f)
		if err != nil {
			return err
		}
		t.AddFile(f, source, 0o755)
	}
	return nil
}

func labels(title, version, description string) map[string]string {
	return map[string]string{image.LabelTitle: title, image.LabelVersion: version, image.LabelDescription: description}
}
