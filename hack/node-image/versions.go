package main

// What the image is made of. A test holds the versions of what is built in a module
// here (kube, addons) against that module's go.mod.
const (
	kubernetesVersion = "v1.37.2"
	kindVersion       = "v0.33.0"
	containerdVersion = "v2.4.2"
	runcVersion       = "v1.5.3"
	cniVersion        = "v1.10.0"
	crictlVersion     = "v1.37.0"
	etcdVersion       = "v3.7.3"
	corednsVersion    = "v1.15.0"
	localPathVersion  = "v0.0.30"

	debianSuite  = "bookworm"
	debianMirror = "http://deb.debian.org/debian"
)

// debianPackages are those of kind's own base image (images/base/Dockerfile) that a
// node without NFS and fuse-overlayfs uses, and dbus, which Debian's systemd asks for.
var debianPackages = []string{
	"bash", "ca-certificates", "conntrack", "curl", "dbus", "e2fsprogs", "ethtool", "iproute2", "iptables", "jq", "kmod", "libseccomp2",
	"mount", "nftables", "pigz", "procps", "rsync", "socat", "systemd", "systemd-sysv", "util-linux",
}

// program is one executable that is built from source.
type program struct {
	name string
	// Either a folder below this one, or a public module that is built in its own folder
	// and so with the checksums its authors recorded.
	here   string
	module string // path@version

	pkg     string // within that, or the whole path of a tool of the module there
	tags    string
	ldflags string
	cgo     bool
}

func stamp() string {
	flags := "-s -w"
	for _, p := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		// As in the Makefile: the tag's date stands for the build's, so that equal sources give equal programs.
		flags += " -X " + p + ".gitVersion=" + kubernetesVersion + " -X " + p + ".gitMajor=1 -X " + p + ".gitMinor=37 -X " + p + ".gitCommit=unknown" +
			" -X " + p + ".gitTreeState=archive -X " + p + ".buildDate=2026-10-27T12:01:04Z"
	}
	return flags
}

func programs() []program {
	const (
		small      = "-s -w"
		containerd = "github.com/containerd/containerd/v2"
		cni        = "github.com/containernetworking/plugins@" + cniVersion
	)
	list := []program{
		{name: "kube", here: "kube", pkg: ".", ldflags: stamp()},
		{name: "etcd", here: "kube", pkg: "go.etcd.io/etcd/server/v3", ldflags: small},
		{name: "etcdctl", here: "kube", pkg: "go.etcd.io/etcd/etcdctl/v3", ldflags: small},
		{name: "coredns", here: "addons", pkg: "./coredns", ldflags: small},
		{name: "kindnetd", here: "kindnet", pkg: ".", ldflags: small},
		{name: "local-path-provisioner", here: "addons", pkg: "github.com/rancher/local-path-provisioner", ldflags: small + " -X main.VERSION=" + localPathVersion},
		// Its part in C sets up namespaces before Go runs, so this one needs a C compiler.
		{name: "runc", module: "github.com/opencontainers/runc@" + runcVersion, pkg: ".", tags: "seccomp netgo osusergo", cgo: true, ldflags: small + " -linkmode external -extldflags -static"},
		{name: "crictl", module: "sigs.k8s.io/cri-tools@" + crictlVersion, pkg: "./cmd/crictl", ldflags: small + " -X sigs.k8s.io/cri-tools/pkg/version.Version=" + crictlVersion},
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		list = append(list, program{
			name: name, module: containerd + "@" + containerdVersion, pkg: "./cmd/" + name, tags: "no_aufs no_zfs no_btrfs no_devmapper",
			ldflags: small + " -X " + containerd + "/version.Version=" + containerdVersion,
		})
	}
	for _, pkg := range []string{"ipam/host-local", "main/loopback", "main/ptp", "meta/portmap"} {
		list = append(list, program{name: pkg[5:], module: cni, pkg: "./plugins/" + pkg, ldflags: small})
	}
	return list
}
