package kubelet

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podFacts are what the downward API tells a container of its Pod.
type podFacts struct {
	pod         *corev1.Pod
	podIP       string
	hostIP      string
	allocatable corev1.ResourceList
}

// field follows kubelet_pods.go, podFieldSelectorRuntimeValue, and pkg/fieldpath.
func (f podFacts) field(path string) (string, error) {
	p := f.pod
	if name, key, ok := strings.Cut(strings.TrimSuffix(path, "']"), "['"); ok {
		switch name {
		case "metadata.labels":
			return p.Labels[key], nil
		case "metadata.annotations":
			return p.Annotations[key], nil
		}
		return "", fmt.Errorf("fieldPath %q does not support subscript", path)
	}
	switch path {
	case "metadata.name":
		return p.Name, nil
	case "metadata.namespace":
		return p.Namespace, nil
	case "metadata.uid":
		return string(p.UID), nil
	case "metadata.labels":
		return formatMap(p.Labels), nil
	case "metadata.annotations":
		return formatMap(p.Annotations), nil
	case "spec.nodeName":
		return p.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return p.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return f.hostIP, nil
	case "status.podIP", "status.podIPs":
		return f.podIP, nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", path)
}

func formatMap(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for k, v := range m {
		lines = append(lines, k+"="+strconv.Quote(v))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// resource follows pkg/api/v1/resource/helpers.go, ExtractContainerResourceValue.
func (f podFacts) resource(s *corev1.ResourceFieldSelector, own *corev1.Container) (string, error) {
	c := own
	if s.ContainerName != "" {
		c = nil
		for _, list := range [][]corev1.Container{f.pod.Spec.Containers, f.pod.Spec.InitContainers} {
			if i := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == s.ContainerName }); i >= 0 && c == nil {
				c = &list[i]
			}
		}
	}
	if c == nil {
		return "", fmt.Errorf("container %s not found", s.ContainerName)
	}
	kind, name, _ := strings.Cut(s.Resource, ".")
	list := c.Resources.Requests
	if kind == "limits" {
		list = c.Resources.Limits
	}
	q, ok := list[corev1.ResourceName(name)]
	if !ok && kind == "limits" {
		q = f.allocatable[corev1.ResourceName(name)]
	}
	div := s.Divisor
	if div.IsZero() {
		div = resource.MustParse("1")
	}
	if name == string(corev1.ResourceCPU) {
		return strconv.FormatInt(int64(math.Ceil(float64(q.MilliValue())/float64(div.MilliValue()))), 10), nil
	}
	return strconv.FormatInt(int64(math.Ceil(float64(q.Value())/float64(div.Value()))), 10), nil
}
