package kind

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"kubistro/internal/clusterhost/noderules"
	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/lab"
)

// officeName is the control plane's node.
const officeName = noderules.Office

// The cluster's networks, kind's defaults, and the name server that kubeadm puts into the second.
const (
	podNetwork     = "10.244.0.0/16"
	serviceNetwork = "10.96.0.0/16"
	dnsAddress     = "10.96.0.10:53"
)

// Paths in the control plane's container. The API server's Pod has both folders mounted.
const (
	settingsDir = "/etc/kubernetes/kubistro"
	logDir      = "/var/log/kubistro"
	auditLog    = logDir + "/audit.log"
	auditPolicy = settingsDir + "/audit-policy.yaml"
	tokenFile   = settingsDir + "/tokens.csv"
	patchesDir  = "/kind/patches" // of kubeadm, in every node
)

// Users of the API server besides kubeadm's own.
const (
	labUser      = "kubistro"
	learnerUser  = "learner"
	learnerGroup = "kubistro:learners"
	adminGroup   = "system:masters"
)

// machine is what the container runtime's machine has, all of which every node sees.
type machine struct {
	cpus   int64
	memory int64 // bytes
}

// kubeadmTimeouts are how long kubeadm waits for a component: on a busy machine its own four minutes are
// too few. What ends a start that hangs is Options.StartTimeout.
var kubeadmTimeouts = map[string]any{"controlPlaneComponentHealthCheck": "20m", "kubeletHealthCheck": "20m", "tlsBootstrap": "20m", "discovery": "20m", "kubernetesAPICall": "5m", "etcdAPICall": "5m"}

// configOf is the kind configuration of a cluster: nodes named and labelled as in a
// spec, an API server that knows our tokens and keeps an audit log.
func configOf(spec lab.ClusterSpec, image string, c *pace.Clock) (*v1alpha4.Cluster, error) {
	cfg := &v1alpha4.Cluster{
		Networking: v1alpha4.Networking{IPFamily: v1alpha4.IPv4Family, APIServerAddress: "127.0.0.1", PodSubnet: podNetwork, ServiceSubnet: serviceNetwork},
		Nodes: []v1alpha4.Node{{
			Role: v1alpha4.ControlPlaneRole, Image: image,
			KubeadmConfigPatches: []string{document("InitConfiguration", map[string]any{
				"nodeRegistration": map[string]any{"name": officeName}, "patches": map[string]any{"directory": patchesDir}, "timeouts": kubeadmTimeouts,
			})},
		}},
		KubeadmConfigPatches: []string{document("ClusterConfiguration", map[string]any{
			"apiServer": map[string]any{
				"extraArgs":    arguments(apiServerFlags(c)),
				"extraVolumes": []any{volume("kubistro-settings", settingsDir, true), volume("kubistro-log", logDir, false)},
			},
			"controllerManager": map[string]any{"extraArgs": arguments(managerFlags(c))},
			"scheduler":         map[string]any{"extraArgs": arguments(map[string]string{"leader-elect": "false"})},
		})},
	}
	for _, k := range spec.Kitchens {
		taints, err := noderules.Taints(k.Taints)
		if err != nil {
			return nil, fmt.Errorf("kitchen %s: %w", k.Name, err)
		}
		cfg.Nodes = append(cfg.Nodes, v1alpha4.Node{
			Role: v1alpha4.WorkerRole, Image: image, Labels: k.Labels,
			KubeadmConfigPatches: []string{document("JoinConfiguration", map[string]any{
				"nodeRegistration": map[string]any{"name": k.Name, "taints": taints}, "patches": map[string]any{"directory": patchesDir}, "timeouts": kubeadmTimeouts,
			})},
		})
	}
	return cfg, nil
}

// document is a kubeadm configuration (JSON is YAML).
func document(kind string, fields map[string]any) string {
	doc := map[string]any{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": kind}
	maps.Copy(doc, fields)
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err) // maps of strings
	}
	return string(b)
}

func arguments(flags map[string]string) []any {
	var out []any
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		out = append(out, map[string]any{"name": name, "value": flags[name]})
	}
	return out
}

func volume(name, path string, readOnly bool) map[string]any {
	return map[string]any{"name": name, "hostPath": path, "mountPath": path, "readOnly": readOnly, "pathType": corev1.HostPathDirectoryOrCreate}
}

// evictionMemory is the kubelet's default threshold, which kind's configuration leaves out.
const evictionMemory = 100 << 20

// kubeletPatch is what a node's kubelet does otherwise than kind has it: Pods get what
// the kitchen is declared to have, and are evicted when memory runs out. The office has
// the whole machine.
func kubeletPatch(k *lab.Kitchen, m machine, c *pace.Clock) (string, error) {
	doc := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"evictionHard": map[string]string{"memory.available": fmt.Sprint(evictionMemory), "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
	}
	maps.Copy(doc, kubeletPeriods(c))
	if k != nil {
		cpu, err := resource.ParseQuantity(k.CPU)
		if err != nil {
			return "", fmt.Errorf("kitchen %s: cpu: %w", k.Name, err)
		}
		memory, err := resource.ParseQuantity(k.Memory)
		if err != nil {
			return "", fmt.Errorf("kitchen %s: memory: %w", k.Name, err)
		}
		spareCPU, spareMemory := m.cpus*1000-cpu.MilliValue(), m.memory-memory.Value()-evictionMemory
		if spareCPU < 0 || spareMemory < 0 {
			return "", tooBig(*k, m)
		}
		doc["systemReserved"] = map[string]string{"cpu": fmt.Sprintf("%dm", spareCPU), "memory": fmt.Sprint(spareMemory)}
	}
	b, err := json.Marshal(doc)
	return string(b), err
}
