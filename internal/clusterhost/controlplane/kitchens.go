package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/clusterhost/loops"
	"kubistro/internal/clusterhost/noderules"
	"kubistro/internal/lab"
)

// Bounds of the kitchens that can be added.
const (
	maxKitchens    = 40
	kitchenTimeout = time.Minute // until it is Ready
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
		if err := noderules.Validate(k); err != nil {
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
	h.changes.setHome(loops.Kubelet+name, false)
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
