package addons

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const version = "v1.37.2"

// part is one of the control plane's own Pods.
type part struct {
	name, image string
	command     []string
	cpu, memory string
}

// parts lists the control plane as kubeadm runs it: cmd/kubeadm/app/phases/controlplane, .../etcd.
func parts() []part {
	return []part{
		{"etcd", "registry.k8s.io/etcd:3.7.0-0", []string{"etcd", "--data-dir=/var/lib/etcd", "--snapshot-count=10000"}, "100m", "100Mi"},
		{"kube-apiserver", "registry.k8s.io/kube-apiserver:" + version, []string{
			"kube-apiserver", "--allow-privileged=true", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
			"--secure-port=6443", "--service-cluster-ip-range=10.96.0.0/16",
		}, "250m", ""},
		{"kube-controller-manager", "registry.k8s.io/kube-controller-manager:" + version, []string{
			"kube-controller-manager", "--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16",
			"--service-cluster-ip-range=10.96.0.0/16", "--use-service-account-credentials=true",
		}, "200m", ""},
		{"kube-scheduler", "registry.k8s.io/kube-scheduler:" + version, []string{"kube-scheduler", "--bind-address=127.0.0.1"}, "100m", ""},
	}
}

// StaticPods are the Pods of the control plane for kubelet.Config.Static of the
// node named office; the kubelet adds the node's name to theirs.
func StaticPods(office string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range parts() {
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(p.cpu)}
		if p.memory != "" {
			requests[corev1.ResourceMemory] = resource.MustParse(p.memory)
		}
		out = append(out, &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%s", p.name, office), Namespace: metav1.NamespaceSystem,
				Labels: map[string]string{"component": p.name, "tier": "control-plane"},
			},
			Spec: corev1.PodSpec{
				HostNetwork: true, PriorityClassName: "system-node-critical", Priority: ptr.To(int32(2000001000)),
				DNSPolicy:       corev1.DNSClusterFirst,
				SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers: []corev1.Container{{
					Name: p.name, Image: p.image, ImagePullPolicy: corev1.PullIfNotPresent, Command: p.command,
					Resources: corev1.ResourceRequirements{Requests: requests},
				}},
			},
		})
	}
	return out
}

// note says truthfully what a part's Pod is.
func note(name string) string {
	what := map[string]string{
		"etcd":                    "The whiteboard of this cluster is a real etcd",
		"kube-apiserver":          "The API server of this cluster is the real kube-apiserver " + version,
		"kube-controller-manager": "The controllers of this cluster are the real kube-controller-manager " + version,
		"kube-scheduler":          "The scheduler of this cluster is the real kube-scheduler " + version,
		"kube-proxy":              "Service addresses of this node are translated by the cluster's virtual network from EndpointSlices",
		"kindnetd":                "Pods of this node are connected by the cluster's virtual network",
		"coredns":                 "Names of this cluster are answered by the cluster's virtual network while a Pod of this Deployment is ready",
	}[name]
	return what + ". It runs inside the cluster host's process; this Pod stands for it (" + strings.ToLower(name) + ")."
}
