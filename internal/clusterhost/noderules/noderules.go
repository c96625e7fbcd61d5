// Package noderules says which kitchens can become nodes, for every driver alike.
package noderules

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"kubistro/internal/lab"
)

// Office is the control plane's node, which no kitchen may be called.
const Office = "office"

// maxLabels is how many labels and taints a kitchen may have together.
const maxLabels = 32

// Validate refuses what could never become a Node.
func Validate(k lab.Kitchen) error {
	if problems := validation.IsDNS1123Label(k.Name); len(problems) > 0 || k.Name == Office {
		return fmt.Errorf("%q is no name for a kitchen: %s", k.Name, strings.Join(problems, "; "))
	}
	for what, q := range map[string]string{"cpu": k.CPU, "memory": k.Memory} {
		v, err := resource.ParseQuantity(q)
		if err != nil || v.Sign() <= 0 || v.CmpInt64(1<<50) > 0 {
			return fmt.Errorf("%s %q is no quantity that a node could have", what, q)
		}
	}
	if len(k.Labels)+len(k.Taints) > maxLabels {
		return fmt.Errorf("more than %d labels and taints", maxLabels)
	}
	for key, value := range k.Labels {
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			return fmt.Errorf("label %s=%s: %s", key, value, strings.Join(problems, "; "))
		}
		if !kubeletLabel(key) {
			return fmt.Errorf("label %s: NodeRestriction forbids a kubelet to set it", key)
		}
	}
	for name, amount := range k.Resources {
		if err := lab.CheckExtendedResource(name, amount); err != nil {
			return err
		}
	}
	_, err := Taints(k.Taints)
	return err
}

// kubeletLabel reports whether a kubelet may label its own node so: k8s.io/kubelet/pkg/apis/well_known_labels.go.
func kubeletLabel(key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	if !ok {
		return true
	}
	in := func(domain string) bool { return prefix == domain || strings.HasSuffix(prefix, "."+domain) }
	switch {
	case in("kubelet.kubernetes.io"), in("node.kubernetes.io"), key == corev1.LabelTopologyZone, key == corev1.LabelTopologyRegion:
		return true
	}
	return !in("kubernetes.io") && !in("k8s.io")
}

// Taints reads taints as kubectl taint takes them: key[=value]:Effect. Without any the
// result is empty and not nil: kubeadm would take its own instead.
func Taints(in []string) ([]corev1.Taint, error) {
	out := []corev1.Taint{}
	for _, s := range in {
		left, effect, _ := strings.Cut(s, ":")
		key, value, _ := strings.Cut(left, "=")
		t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if len(problems) > 0 || !slices.Contains([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect) {
			return nil, fmt.Errorf("taint %q isn't key=value:Effect", s)
		}
		out = append(out, t)
	}
	return out, nil
}
