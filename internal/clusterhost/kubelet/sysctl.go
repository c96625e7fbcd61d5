package kubelet

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilsysctl "k8s.io/component-helpers/node/util/sysctl"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/pantry/memfs"
)

// safeSysctls are the parameters that a kubelet allows by default (sysctl/safe_sysctls.go),
// with what a Pod has when it sets none: the kernel's defaults, and containerd's for
// unprivileged ports and pings.
func safeSysctls() map[string]string {
	return map[string]string{
		"kernel.shm_rmid_forced":              "0",
		"net.ipv4.ip_local_port_range":        "32768\t60999",
		"net.ipv4.tcp_syncookies":             "1",
		"net.ipv4.ping_group_range":           "0\t2147483647",
		"net.ipv4.ip_unprivileged_port_start": "0",
		"net.ipv4.ip_local_reserved_ports":    "",
		"net.ipv4.tcp_keepalive_time":         "7200",
		"net.ipv4.tcp_fin_timeout":            "60",
		"net.ipv4.tcp_keepalive_intvl":        "75",
		"net.ipv4.tcp_keepalive_probes":       "9",
		"net.ipv4.tcp_rmem":                   "4096\t131072\t6291456",
		"net.ipv4.tcp_wmem":                   "4096\t16384\t4194304",
		"net.ipv4.tcp_slow_start_after_idle":  "1",
		"net.ipv4.tcp_notsent_lowat":          "4294967295",
	}
}

// forbiddenSysctl says why the node doesn't take a Pod's sysctls: sysctl/allowlist.go.
func forbiddenSysctl(pod *corev1.Pod) string {
	sc := pod.Spec.SecurityContext
	if sc == nil || len(sc.Sysctls) == 0 {
		return ""
	}
	safe := safeSysctls()
	for _, s := range sc.Sysctls {
		name := utilsysctl.NormalizeName(s.Name)
		if _, ok := safe[name]; !ok {
			return fmt.Sprintf("forbidden sysctl: %q not allowlisted", name)
		}
		space, _, _ := utilsysctl.GetNamespace(name)
		shared := map[utilsysctl.Namespace]bool{
			utilsysctl.IPCNamespace: pod.Spec.HostIPC, utilsysctl.NetNamespace: pod.Spec.HostNetwork,
			utilsysctl.UserNamespace: ptr.Deref(pod.Spec.HostUsers, true),
		}
		if shared[space] {
			return fmt.Sprintf("forbidden sysctl: %q not allowed with host %s enabled", name, space)
		}
	}
	return ""
}

// sysctlFiles shows a container the kernel's parameters that are its Pod's own, in /proc/sys. They
// are what the Pod asks for; nothing in the virtual network goes by them.
func sysctlFiles(fs *memfs.FS, pod *corev1.Pod) error {
	values := safeSysctls()
	if sc := pod.Spec.SecurityContext; sc != nil {
		own := map[string]string{}
		for _, s := range sc.Sysctls {
			own[utilsysctl.NormalizeName(s.Name)] = strings.Join(strings.Fields(s.Value), "\t")
		}
		maps.Copy(values, own)
	}
	for name, value := range values {
		text := []byte(value + "\n")
		file := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
		if err := fs.AddDevice(file, loaded(file, func() ([]byte, error) { return text, nil })); err != nil {
			return err
		}
	}
	return nil
}
