package clusterautoscaler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kubistro/internal/clusterhost/cloud"
)

// Bounds of a drain: core/scaledown/actuation/drain.go.
const (
	evictionRetry = 10 * time.Second
	evictionLimit = 2 * time.Minute
	drainPoll     = time.Second
	maxEmptyBulk  = 10
)

// candidate is a node that could be closed.
type candidate struct {
	node  *corev1.Node
	moves []*corev1.Pod // Pods that go elsewhere
	used  float64
}

// scaleDown finds what isn't needed, marks it, and closes what hasn't been for long
// enough. It returns when there may be more to do.
func (a *autoscaler) scaleDown(ctx context.Context, s *snapshot, now time.Time) (next time.Time) {
	if !a.o.scaleDown {
		return time.Time{}
	}
	found := a.candidates(s)
	fresh := map[string]time.Time{}
	for _, c := range found {
		if since, known := a.unneeded[c.node.Name]; known {
			fresh[c.node.Name] = since
		} else {
			fresh[c.node.Name] = now
			a.logf("%s was unneeded for 0s, utilization %.4f", c.node.Name, c.used)
		}
	}
	a.unneeded = fresh
	for name := range s.byNode {
		if s.grouped[name] != "" && !a.goes(name) {
			_, candidate := fresh[name]
			a.mark(ctx, s.byNode[name].node, taintCandidate, corev1.TaintEffectPreferNoSchedule, candidate)
		}
	}
	a.mu.Lock()
	cooled := latest(a.lastAdd.Add(a.o.afterAdd()), a.lastDelete.Add(a.o.afterDelete()), a.lastFail.Add(a.o.afterFailure))
	draining := len(a.deleting) > 0
	a.mu.Unlock()
	left := map[string]int{}
	for _, g := range a.o.groups {
		left[g.Name] = s.sizes[g.Name] - g.MinSize
	}
	empty := 0
	for _, c := range found {
		due := latest(a.unneeded[c.node.Name].Add(a.o.unneeded()), cooled)
		group := s.grouped[c.node.Name]
		switch {
		case left[group] <= 0:
		case now.Before(due):
			next = earliest(next, due)
		case len(c.moves) == 0 && empty < maxEmptyBulk:
			empty++
			left[group]--
			a.note(corev1.EventTypeNormal, "ScaleDownEmpty", "Scale-down: removing empty node %q", c.node.Name)
			a.close(ctx, c)
		case len(c.moves) > 0 && !draining && empty == 0:
			draining = true
			left[group]--
			var names []string
			for _, p := range c.moves {
				names = append(names, p.Name)
			}
			a.note(corev1.EventTypeNormal, "ScaleDown", "Scale-down: removing node %s, utilization: %.4f, pods to reschedule: %s", c.node.Name, c.used, strings.Join(names, ","))
			a.close(ctx, c)
		}
	}
	return next
}

func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// candidates are nodes whose Pods have room elsewhere, one after the other: core/scaledown/planner.
func (a *autoscaler) candidates(s *snapshot) (out []candidate) {
	w := s.world
	for _, name := range slices.Sorted(maps.Keys(s.byNode)) {
		p := s.byNode[name]
		group := a.group(s.grouped[name])
		if group == nil || a.goes(name) || s.sizes[group.Name] <= group.MinSize || p.node.Annotations[scaleDownDisabled] == "true" || p.node.DeletionTimestamp != nil {
			continue
		}
		c := candidate{node: p.node, used: utilization(p)}
		if c.used >= a.o.threshold {
			continue
		}
		blocked := false
		for _, pod := range p.pods {
			switch {
			case a.blocks(pod) != "":
				blocked = true
			case !stays(pod) && pod.DeletionTimestamp == nil && pod.Spec.NodeName == name:
				c.moves = append(c.moves, pod)
			case !stays(pod) && pod.Spec.NodeName == "": // one that waits and would go here
				blocked = true
			}
		}
		if blocked {
			continue
		}
		if after, ok := without(w, p, c.moves); ok {
			w = after
			out = append(out, c)
		}
	}
	return out
}

// without is the world when a place has gone and its Pods have moved.
func without(w world, gone *place, moves []*corev1.Pod) (world, bool) {
	after := world{namespaces: w.namespaces}
	for _, p := range w.places {
		if p.node.Name == gone.node.Name {
			continue
		}
		after.places = append(after.places, &place{node: p.node, pods: slices.Clone(p.pods), free: p.free.DeepCopy()})
	}
	for _, pod := range moves {
		if !after.put(pod, after.places) {
			return w, false
		}
	}
	return after, true
}

// utilization is the larger share of CPU and memory that is requested: simulator/utilization/info.go.
func utilization(p *place) (most float64) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		has := p.node.Status.Allocatable[name]
		if all := has.AsApproximateFloat64(); all > 0 {
			left := p.free[name]
			most = max(most, 1-left.AsApproximateFloat64()/all)
		}
	}
	return most
}

// close drains a node and gives its machine back, beside the loop.
func (a *autoscaler) close(ctx context.Context, c candidate) {
	name := c.node.Name
	a.mu.Lock()
	a.deleting[name] = true
	a.mu.Unlock()
	delete(a.unneeded, name)
	id := ""
	for _, i := range a.instances {
		if i.Node == name {
			id = i.ID
		}
	}
	a.wg.Go(func() {
		err := a.remove(ctx, c, id)
		a.mu.Lock()
		delete(a.deleting, name)
		if err == nil {
			a.lastDelete = a.env.Clock.Now()
		} else {
			a.lastFail = a.env.Clock.Now()
		}
		a.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			a.logf("Failed to scale down %s: %v", name, err)
			a.events.Eventf(c.node, corev1.EventTypeWarning, "ScaleDownFailed", "failed to delete the node: %v", err)
			a.mark(ctx, c.node, taintDeleted, corev1.TaintEffectNoSchedule, false)
		}
		a.poke()
	})
}

func (a *autoscaler) goes(node string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.deleting[node]
}

// remove taints, drains and terminates.
func (a *autoscaler) remove(ctx context.Context, c candidate, id string) error {
	if err := a.mark(ctx, c.node, taintDeleted, corev1.TaintEffectNoSchedule, true); err != nil {
		a.events.Eventf(c.node, corev1.EventTypeWarning, "ScaleDownFailed", "failed to mark the node as toBeDeleted/unschedulable: %v", err)
		return err
	}
	a.events.Event(c.node, corev1.EventTypeNormal, "ScaleDown", "marked the node as toBeDeleted/unschedulable")
	begin := a.env.Clock.Now()
	for _, p := range c.moves {
		a.events.Event(p, corev1.EventTypeNormal, "ScaleDown", "deleting pod for node scale down")
		for {
			err := a.client.PolicyV1().Evictions(p.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}})
			if err == nil || apierrors.IsNotFound(err) {
				break
			}
			if a.env.Clock.Since(begin) > evictionLimit || !a.sleep(ctx, evictionRetry) {
				return fmt.Errorf("failed to evict pod %s/%s: %w", p.Namespace, p.Name, err)
			}
		}
	}
	for {
		left, err := a.left(c.node.Name)
		if err != nil {
			return err
		}
		if left == "" {
			break
		}
		if a.env.Clock.Since(begin) > a.o.graceful || !a.sleep(ctx, drainPoll) {
			return fmt.Errorf("pod %s is still on the node", left)
		}
	}
	if err := a.machines.Terminate(ctx, id); err != nil && !cloud.IsNotFound(err) {
		return err
	}
	a.logf("Scale-down: node %s removed", c.node.Name)
	a.events.Event(c.node, corev1.EventTypeNormal, "ScaleDown", "node removed by cluster autoscaler")
	return nil
}

// left names a Pod that a node waits for.
func (a *autoscaler) left(node string) (string, error) {
	all, err := a.pods.List(labels.Everything())
	for _, p := range all {
		if p.Spec.NodeName == node && !stays(p) {
			return p.Namespace + "/" + p.Name, nil
		}
	}
	return "", err
}
