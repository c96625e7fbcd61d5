package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
	"kubistro/internal/session/cleanup"
)

// cleanInPlace makes the cluster look new, in a shape: what was done to it from outside is undone, and
// what was done in it. An error says that a fresh cluster is needed.
func (l *live) cleanInPlace(ctx context.Context, r *running, shape lab.ClusterSpec) error {
	select {
	case <-r.settled:
	case <-ctx.Done():
		return errors.New("the cluster doesn't answer")
	}
	born := r.cluster.Spec()
	if born.WithoutLoadBalancers != shape.WithoutLoadBalancers {
		return errors.New("load balancers come and go with a cluster only")
	}
	// What was written about a node since is undone for those that the new cluster had; others are opened anew.
	own := func(node string) bool {
		k, wanted := kitchenOf(shape, node)
		was, had := kitchenOf(born, node)
		return !wanted && !had || wanted && had && sameKitchen(k, was)
	}
	if err := putBack(ctx, r.instance, shape, own); err != nil {
		return err
	}
	encrypted, err := writePlainly(ctx, r.instance)
	if err != nil {
		return err
	}
	if err := cleanup.Restore(ctx, r.config, l.baseline(r.cluster.ID()), own, l.log); err != nil {
		return err
	}
	return r.decrypt(ctx, encrypted)
}

func kitchenOf(spec lab.ClusterSpec, name string) (lab.Kitchen, bool) {
	for _, k := range spec.Kitchens {
		if k.Name == name {
			return k, true
		}
	}
	return lab.Kitchen{}, false
}

// putBack undoes what was done to a cluster from outside: the clock is the spec's,
// everybody is at work, and all kitchens of the spec and no others are there and connected. A
// kitchen that keep doesn't name is closed and opened anew.
func putBack(ctx context.Context, inst cluster.Instance, spec lab.ClusterSpec, keep func(kitchen string) bool) error {
	if op, ok := inst.(cluster.ClockSetter); ok {
		c, err := op.Clock(ctx)
		if err == nil && c.Speed != max(1, spec.Speed) {
			err = op.SetClock(ctx, max(1, spec.Speed))
		}
		if err != nil {
			return err
		}
	}
	if op, ok := inst.(cluster.LoopOperator); ok {
		list, err := op.Loops(ctx)
		if err != nil {
			return err
		}
		for _, x := range list {
			if x.Home {
				if err := op.SetLoop(ctx, x.Name, false); err != nil {
					return err
				}
			}
		}
	}
	if op, ok := inst.(cluster.KitchenOperator); ok {
		return putKitchensBack(ctx, op, spec, keep)
	}
	return nil
}

func putKitchensBack(ctx context.Context, op cluster.KitchenOperator, spec lab.ClusterSpec, keep func(kitchen string) bool) error {
	list, err := op.Kitchens(ctx)
	if err != nil {
		return err
	}
	missing := map[string]lab.Kitchen{}
	for _, k := range spec.Kitchens {
		missing[k.Name] = k
	}
	for _, k := range list {
		want, wanted := missing[k.Name]
		if !wanted || !sameKitchen(k.Kitchen, want) || !keep(k.Name) {
			if err := op.RemoveKitchen(ctx, k.Name); err != nil {
				return err
			}
			continue
		}
		delete(missing, k.Name)
		if !k.Power {
			err = op.SetPower(ctx, k.Name, true)
		}
		if err == nil && !k.Cable {
			err = op.SetCable(ctx, k.Name, true)
		}
		if err != nil {
			return err
		}
	}
	for _, k := range spec.Kitchens {
		if _, open := missing[k.Name]; !open {
			continue
		}
		if err := op.AddKitchen(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func sameKitchen(a, b lab.Kitchen) bool {
	return a.CPU == b.CPU && a.Memory == b.Memory && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Resources, b.Resources) && slices.Equal(a.Taints, b.Taints)
}

// writePlainly ends encryption at rest for what is written from now on, and names the
// resources that may still be stored encrypted.
func writePlainly(ctx context.Context, inst cluster.Instance) ([]string, error) {
	op, ok := inst.(cluster.StorageOperator)
	if !ok {
		return nil, nil
	}
	now, err := op.Encryption(ctx)
	if err != nil || now.Config == "" {
		return nil, err
	}
	c, err := readEncryption(now.Config)
	if err != nil {
		return nil, err
	}
	var resources []string
	for _, r := range c.Resources {
		resources = append(resources, r.Resources...)
	}
	off, err := changedEncryption(now, lab.EncryptionChange{})
	if err != nil {
		return nil, err
	}
	return resources, op.SetEncryption(ctx, off)
}

// decrypt writes every object of the resources again, and then forgets the keys.
func (r *running) decrypt(ctx context.Context, resources []string) error {
	if len(resources) == 0 {
		return nil
	}
	for _, name := range resources {
		if strings.Contains(name, "*") {
			return fmt.Errorf("everything may be encrypted (%s)", name)
		}
		gvr, err := r.mapper.ResourceFor(schema.ParseGroupResource(name).WithVersion(""))
		if err != nil {
			return fmt.Errorf("encrypted resource %s: %w", name, err)
		}
		list, err := r.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("encrypted resource %s: %w", name, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			// An update that changes nothing is written all the same when what is stored is encrypted otherwise.
			if _, err := r.dynamic.Resource(gvr).Namespace(o.GetNamespace()).Update(ctx, o, metav1.UpdateOptions{}); err != nil {
				return fmt.Errorf("write %s %s again: %w", name, o.GetName(), err)
			}
		}
	}
	op, ok := r.instance.(cluster.StorageOperator)
	if !ok {
		return nil
	}
	return op.SetEncryption(ctx, lab.Encryption{})
}
