package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"kubistro/internal/lab"
)

// Finding is one thing that Examine looked at.
type Finding struct {
	Name, Value string
	Problem     string // what doesn't work for that reason; empty when all is well
	Mend        string // the command that mends it
	Fatal       bool   // no cluster can start
}

// What kind clusters need of a machine. kind's documentation has the inotify figures
// under "pod errors due to too many open files".
const (
	needWatches   = 524288
	needInstances = 512
	needPIDs      = 32768
	needDisk      = 10 << 30
	diskEach      = 2 << 30 // of a cluster: writable layers and what Pods write
	nodeBytes     = 160 << 20
	officeBytes   = 420 << 20
	othersBytes   = 2 << 30 // the system, the container runtime and the server
	learnersPer   = 3       // clusters per processor: an idle one with three workers takes a third of it
)

// Footprint is what a running cluster with a learner's Pods takes of memory, in bytes.
func (d *Driver) Footprint(spec lab.ClusterSpec) int64 { return footprint(spec) }

func footprint(spec lab.ClusterSpec) int64 { return officeBytes + int64(len(spec.Kitchens))*nodeBytes }

// system is what Examine asks the machine.
type system struct {
	read func(path string) ([]byte, error)
	free func(path string) (int64, error) // bytes for files in a folder
}

// Examine looks at everything that a kind cluster needs, and says how many learners fit.
func Examine(ctx context.Context, o Options) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	bin, err := findRuntime(o.Runtime)
	if err != nil {
		return []Finding{{Name: "kind: runtime", Value: "none", Problem: lab.AsError(err).Text.En, Mend: "sudo apt-get install docker.io", Fatal: true}}
	}
	return examine(ctx, o, bin, program{bin}, system{os.ReadFile, freeBytes})
}

func examine(ctx context.Context, o Options, bin string, e engine, s system) []Finding {
	out, err := e.run(ctx, nil, "info", "--format", "{{json .}}")
	var i runtimeInfo
	if err == nil {
		err = json.Unmarshal([]byte(out), &i)
	}
	m, sizeErr := parseInfo(out)
	if err = errors.Join(err, sizeErr); err != nil {
		f := Finding{Name: "kind: runtime", Value: bin, Problem: lab.AsError(problem(err)).Text.En, Fatal: true}
		switch said := strings.ToLower(err.Error()); {
		case strings.Contains(said, "permission denied"):
			f.Mend = "sudo usermod -aG docker $USER && newgrp docker"
		case bin == "docker":
			f.Mend = "sudo systemctl start docker"
		}
		return []Finding{f}
	}
	list := []Finding{
		{Name: "kind: runtime", Value: strings.TrimSpace(bin + " " + i.ServerVersion)},
		cgroupFinding(i), file("kind: agent", o.Agent, "make kind-agent"), image(ctx, o, e),
	}
	local := os.Getenv("DOCKER_HOST") == "" || strings.HasPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	disk := int64(0)
	if local {
		list = append(list,
			s.limit("kind: inotify watches", "/proc/sys/fs/inotify/max_user_watches", needWatches, "fs.inotify.max_user_watches", "with several nodes, Pods fail with \"too many open files\""),
			s.limit("kind: inotify instances", "/proc/sys/fs/inotify/max_user_instances", needInstances, "fs.inotify.max_user_instances", "with several nodes, nodes don't boot"),
			s.limit("kind: processes", "/proc/sys/kernel/pid_max", needPIDs, "kernel.pid_max", "a node has some 150 processes and threads"),
			s.modules())
		var f Finding
		f, disk = s.disk(i.DockerRootDir)
		list = append(list, f)
	}
	return append(list, ports(), fit(m, disk))
}

func cgroupFinding(i runtimeInfo) Finding {
	f := Finding{Name: "kind: cgroups", Value: "v" + strings.TrimPrefix(i.CgroupVersion+i.Host.CgroupVersion, "v")}
	if f.Value == "v1" {
		f.Problem = "the kubelet refuses cgroup v1 since Kubernetes 1.35, so nodes don't start with the usual node images"
		f.Mend = "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&systemd.unified_cgroup_hierarchy=1 /' /etc/default/grub && sudo update-grub && sudo reboot"
	}
	return f
}

func file(name, path, mend string) Finding {
	if _, err := os.Stat(path); err != nil {
		return Finding{Name: name, Value: "missing", Problem: "no cluster can start without it", Mend: mend, Fatal: true}
	}
	return Finding{Name: name, Value: path}
}

func image(ctx context.Context, o Options, e engine) Finding {
	name := o.Image
	if name == "" {
		name = defaultImage
	}
	f := Finding{Name: "kind: node image", Value: name}
	if _, err := e.run(ctx, nil, "image", "inspect", "--format", "{{.Id}}", name); err != nil {
		f.Problem, f.Mend = "it isn't on this machine yet: the first start downloads it (about 400 MB)", o.Runtime+" pull "+name
		f.Mend = strings.TrimSpace(f.Mend)
		if o.Runtime == "" {
			f.Mend = "docker pull " + name
		}
	}
	return f
}

// limit looks at a number of the kernel.
func (s system) limit(name, path string, need int64, key, why string) Finding {
	b, err := s.read(path)
	if err != nil {
		return Finding{Name: name, Value: "unknown"} // another system's machine runs the containers
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	f := Finding{Name: name, Value: strings.TrimSpace(string(b))}
	if err == nil && n < need {
		f.Problem, f.Mend = why, fmt.Sprintf("sudo sysctl -w %s=%d && echo %s=%d | sudo tee -a /etc/sysctl.d/99-kubistro.conf", key, need, key, need)
	}
	return f
}

// modules looks for what kind mounts into its nodes.
func (s system) modules() Finding {
	if _, err := s.read("/proc/sys/kernel/osrelease"); err != nil {
		return Finding{Name: "kind: /lib/modules", Value: "unknown"}
	}
	if _, err := os.Stat("/lib/modules"); err != nil {
		return Finding{Name: "kind: /lib/modules", Value: "missing", Problem: "kind mounts it into its nodes", Mend: "sudo mkdir -p /lib/modules"}
	}
	return Finding{Name: "kind: /lib/modules", Value: "there"}
}

func (s system) disk(dir string) (Finding, int64) {
	if dir == "" {
		dir = "/var/lib"
	}
	free, err := s.free(dir)
	if err != nil {
		return Finding{Name: "kind: disk", Value: "unknown"}, 0
	}
	f := Finding{Name: "kind: disk", Value: fmt.Sprintf("%.0f GiB free in %s", float64(free)/(1<<30), dir)}
	if free < needDisk {
		f.Problem, f.Mend = "a node image and a cluster need about 10 GiB", "docker system prune"
	}
	return f, free
}

// ports looks whether loopback has a free port, as each cluster needs one.
func ports() Finding {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Finding{Name: "kind: ports", Value: "none free", Problem: err.Error(), Mend: `sudo sysctl -w net.ipv4.ip_local_port_range="32768 60999"`, Fatal: true}
	}
	_ = l.Close() // it was only to be had
	return Finding{Name: "kind: ports", Value: "free on loopback"}
}

// fit says how many learners the machine has room for.
func fit(m machine, disk int64) Finding {
	spec := lab.DefaultClusterSpec()
	n := min((m.memory-othersBytes)/footprint(spec), m.cpus*learnersPer)
	if disk > 0 {
		n = min(n, disk/diskEach)
	}
	n = max(0, n)
	f := Finding{Name: "kind: learners", Value: fmt.Sprintf("%d CPUs, %.1f GiB: %d at once", m.cpus, float64(m.memory)/(1<<30), n)}
	if n < 1 {
		f.Problem, f.Fatal = "too little for one cluster", true
	}
	return f
}
