package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// Bounds of the kitchens that can be added.
const (
	maxKitchens      = 40
	maxKitchenLabels = 32
	kitchenTimeout   = time.Minute // until it is Ready
)

// ready gives the nodes of a cluster that has them.
func (h *Host) ready() (*nodes, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes == nil {
		return nil, controlapi.ErrNotReady
	}
	return h.nodes, nil
}

func noKitchen(name string) error {
	return fmt.Errorf("%w: there is no kitchen %q", controlapi.ErrNotFound, name)
}

// kitchen finds a kitchen; the office is none.
func (h *Host) kitchen(name string) (*node, error) {
	n, err := h.ready()
	if err != nil {
		return nil, err
	}
	k := n.get(name)
	if k == nil || name == officeName {
		return nil, noKitchen(name)
	}
	return k, nil
}

// Power powers a kitchen off or on; the office has no switch.
func (h *Host) Power(r controlapi.PowerRequest) error {
	k, err := h.kitchen(r.Node)
	if err != nil {
		return err
	}
	if r.On {
		k.PowerOn()
	} else {
		k.PowerOff()
	}
	return nil
}

// Cable pulls a kitchen's network cable or plugs it in.
func (h *Host) Cable(r controlapi.CableRequest) error {
	k, err := h.kitchen(r.Node)
	if err != nil {
		return err
	}
	k.SetCable(r.In)
	return nil
}

// Kitchens lists the kitchens that there are now.
func (h *Host) Kitchens() ([]lab.KitchenState, error) {
	n, err := h.ready()
	if err != nil {
		return nil, err
	}
	out := []lab.KitchenState{}
	for _, name := range n.names() {
		if k := n.get(name); k != nil && name != officeName {
			out = append(out, lab.KitchenState{Kitchen: k.kitchen.Kitchen, Address: k.kitchen.Address.String(), Power: k.Power(), Cable: k.Cable()})
		}
	}
	return out, nil
}

// AddKitchen opens a kitchen and returns when its node is Ready. It is there again
// after a sleep.
func (h *Host) AddKitchen(ctx context.Context, k lab.Kitchen) error {
	return h.changing(ctx, func(ctx context.Context) error {
		n, err := h.ready()
		if err != nil {
			return err
		}
		if err := validateKitchen(k); err != nil {
			return fmt.Errorf("%w: %w", controlapi.ErrInvalid, err)
		}
		switch {
		case n.get(k.Name) != nil:
			return fmt.Errorf("%w: there is a node %s already", controlapi.ErrConflict, k.Name)
		case len(n.names()) > maxKitchens:
			return fmt.Errorf("%w: a cluster has at most %d kitchens", controlapi.ErrConflict, maxKitchens)
		}
		added := kitchen{Kitchen: k, Address: h.changes.freeAddress(h.cfg.Spec)}
		c, err := kitchenConfig(added)
		if err != nil {
			return fmt.Errorf("%w: %w", controlapi.ErrInvalid, err)
		}
		if err := n.add(c, added); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, kitchenTimeout, errors.New("its node doesn't become Ready"))
		defer cancel()
		select {
		case <-n.get(k.Name).Ready():
		case <-ctx.Done():
			n.remove(k.Name)
			return fmt.Errorf("kitchen %s: %w", k.Name, context.Cause(ctx))
		}
		h.changes.Added = append(h.changes.Added, added)
		return nil
	})
}

// RemoveKitchen takes a kitchen away and deletes its Node, as a cloud does with a
// machine that is given back: what runs there ends without warning, and what it kept is gone.
func (h *Host) RemoveKitchen(ctx context.Context, name string) error {
	return h.changing(ctx, func(ctx context.Context) error { return h.removeKitchen(ctx, name) })
}

// removeKitchen is RemoveKitchen within a change.
func (h *Host) removeKitchen(ctx context.Context, name string) error {
	if _, err := h.kitchen(name); err != nil {
		return err
	}
	n, err := h.ready()
	if err != nil {
		return err
	}
	n.remove(name)
	h.changes.Added = slices.DeleteFunc(slices.Clone(h.changes.Added), func(k kitchen) bool { return k.Name == name })
	if slices.ContainsFunc(h.cfg.Spec.Kitchens, func(k lab.Kitchen) bool { return k.Name == name }) && !slices.Contains(h.changes.Removed, name) {
		h.changes.Removed = append(h.changes.Removed, name)
	}
	h.changes.setHome(loopKubelet+name, false)
	if err := h.changes.write(h.cfg.Dir); err != nil { // the machine is gone, whatever becomes of its Node
		return err
	}
	client, err := kubernetes.NewForConfig(h.api.loopback)
	if err != nil {
		return err
	}
	err = client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("node %s: %w", name, err)
	}
	return nil
}

// remove ends a node like a loss of power, for good, and deletes what it kept.
func (n *nodes) remove(name string) {
	k := n.get(name)
	if k == nil {
		return
	}
	k.PowerOff()
	k.cancel()
	<-k.done
	k.Discard()
	n.mu.Lock()
	delete(n.all, name)
	n.mu.Unlock()
	if err := os.RemoveAll(k.dir); err != nil {
		n.host.log.Warn("what a node kept can't be deleted", "node", name, "err", err)
	}
}

// validateKitchen refuses what could never become a Node, or not this host's.
func validateKitchen(k lab.Kitchen) error {
	if problems := validation.IsDNS1123Label(k.Name); len(problems) > 0 || k.Name == officeName {
		return fmt.Errorf("%q is no name for a kitchen: %s", k.Name, strings.Join(problems, "; "))
	}
	for what, q := range map[string]string{"cpu": k.CPU, "memory": k.Memory} {
		v, err := resource.ParseQuantity(q)
		if err != nil || v.Sign() <= 0 || v.CmpInt64(1<<50) > 0 {
			return fmt.Errorf("%s %q is no quantity that a node could have", what, q)
		}
	}
	if len(k.Labels)+len(k.Taints) > maxKitchenLabels {
		return fmt.Errorf("more than %d labels and taints", maxKitchenLabels)
	}
	for key, value := range k.Labels {
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			return fmt.Errorf("label %s=%s: %s", key, value, strings.Join(problems, "; "))
		}
		if !kubeletLabel(key) {
			return fmt.Errorf("label %s: NodeRestriction forbids a kubelet to set it", key)
		}
	}
	_, err := parseTaints(k.Taints)
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
	case in("kubelet.kubernetes.io"), in("node.kubernetes.io"):
		return true
	case slices.Contains([]string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable}, key):
		return true
	}
	return !in("kubernetes.io") && !in("k8s.io")
}

// parseTaints reads taints as kubectl taint takes them: key[=value]:Effect.
func parseTaints(in []string) ([]corev1.Taint, error) {
	var out []corev1.Taint
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
