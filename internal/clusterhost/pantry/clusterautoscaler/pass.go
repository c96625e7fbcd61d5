package clusterautoscaler

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kubistro/internal/clusterhost/cloud"
)

// tagGroup names a machine's node group.
const tagGroup = "k8s.io/cluster-autoscaler/node-group"

// snapshot is the cluster as a pass sees it.
type snapshot struct {
	world
	byNode  map[string]*place
	grouped map[string]string // node to group
	sizes   map[string]int    // machines of a group that don't go
	coming  int               // of them, those whose node isn't ready
	late    time.Time         // when the first of these has taken too long; zero: none
}

// pass does what there is to do now and returns when there may be more; zero: when something changes.
func (a *autoscaler) pass(ctx context.Context) time.Time {
	now := a.env.Clock.Now()
	retry := now.Add(a.o.scan())
	var err error
	if a.instances, err = a.machines.Instances(ctx); err != nil {
		a.logf("Failed to refresh cloud provider config: %v", err)
		return retry
	}
	a.cleanUp(ctx)
	s, err := a.look(now)
	if err != nil {
		a.logf("Failed to get the state of the cluster: %v", err)
		return retry
	}
	if a.fill(ctx, s) {
		return retry
	}
	scaled, waiting := a.scaleUp(ctx, s, now)
	next := s.late
	if !scaled {
		next = earliest(next, a.scaleDown(ctx, s, now))
	} else {
		next = retry
	}
	if waiting {
		for _, until := range a.backoff {
			if until.After(now) {
				next = earliest(next, until)
			}
		}
	}
	a.report(ctx, s, scaled, now)
	return next
}

// earliest is the first of two times of which zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// look takes the snapshot.
func (a *autoscaler) look(now time.Time) (*snapshot, error) {
	nodes, err := a.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	pods, err := a.pods.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	spaces, err := a.namespaces.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	on := map[string][]*corev1.Pod{}
	for _, p := range pods {
		if p.Spec.NodeName != "" && !terminal(p) {
			on[p.Spec.NodeName] = append(on[p.Spec.NodeName], p)
		}
	}
	s := &snapshot{byNode: map[string]*place{}, grouped: map[string]string{}, sizes: map[string]int{}}
	s.namespaces = map[string]labels.Set{}
	for _, n := range spaces {
		s.namespaces[n.Name] = n.Labels
	}
	slices.SortFunc(nodes, func(x, y *corev1.Node) int { return strings.Compare(x.Name, y.Name) })
	for _, n := range nodes {
		if p := newPlace(n, on[n.Name]); ready(n) {
			s.places, s.byNode[n.Name] = append(s.places, p), p
		}
	}
	for _, i := range a.instances {
		g := a.group(i.Tags[tagGroup])
		if g == nil {
			continue
		}
		s.grouped[i.Node] = g.Name
		if a.goes(i.Node) {
			continue
		}
		s.sizes[g.Name]++
		if s.byNode[i.Node] != nil {
			continue
		}
		s.coming++
		if late := i.Launched.Add(a.o.provision); late.After(now) {
			s.places = append(s.places, a.template(g, i.Zone, i.Node))
			s.late = earliest(s.late, late)
		}
	}
	return s, nil
}

func (a *autoscaler) group(name string) *group {
	for i := range a.o.groups {
		if a.o.groups[i].Name == name {
			return &a.o.groups[i]
		}
	}
	return nil
}

// template is a node as it would be with a new machine of a group: its labels, taints,
// room and the Pods of DaemonSets.
func (a *autoscaler) template(g *group, zone, name string) *place {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH, "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": runtime.GOARCH,
		corev1.LabelInstanceTypeStable: g.InstanceType, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: cloud.Region,
	}}}
	maps.Copy(n.Labels, g.Labels)
	n.Spec.Taints = g.Taints
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(g.typ.CPU), resource.DecimalSI),
		corev1.ResourceMemory:           resource.MustParse(fmt.Sprintf("%dMi", g.typ.AllocatableMiB())),
		corev1.ResourcePods:             *resource.NewQuantity(cloud.MaxPods, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(cloud.DiskMiB<<20, resource.BinarySI),
	}
	if g.typ.GPUs > 0 {
		n.Status.Allocatable["nvidia.com/gpu"] = *resource.NewQuantity(int64(g.typ.GPUs), resource.DecimalSI)
	}
	p := newPlace(n, nil)
	daemons, err := a.daemons.List(labels.Everything())
	if err != nil {
		return p
	}
	for _, d := range daemons {
		pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: d.Spec.Template.Spec}
		pod.Namespace = d.Namespace
		if alone := (&world{places: []*place{p}}); alone.wrong(pod, p) == "" {
			p.add(pod)
		}
	}
	return p
}

// launch orders machines of a group, each in the zone that has the fewest.
func (a *autoscaler) launch(ctx context.Context, g *group, n int) (ordered int, err error) {
	for ordered < n {
		r := cloud.LaunchRequest{
			Type: g.InstanceType, Zone: a.zone(g), CapacityType: g.CapacityType, Labels: g.Labels, Tags: map[string]string{tagGroup: g.Name},
		}
		for _, t := range g.Taints {
			r.Taints = append(r.Taints, t.ToString())
		}
		i, err := a.machines.Launch(ctx, r)
		if err != nil {
			return ordered, err
		}
		a.instances = append(a.instances, i)
		ordered++
	}
	return ordered, nil
}

func (a *autoscaler) zone(g *group) string {
	count := map[string]int{}
	for _, i := range a.instances {
		if i.Tags[tagGroup] == g.Name {
			count[i.Zone]++
		}
	}
	return slices.MinFunc(g.Zones, func(x, y string) int { return count[x] - count[y] })
}

// fill brings groups to their smallest size, which is the cloud's part of a group, and
// gives machines back that never became nodes.
func (a *autoscaler) fill(ctx context.Context, s *snapshot) (changed bool) {
	now := a.env.Clock.Now()
	for _, i := range a.instances {
		if _, err := a.nodes.Get(i.Node); s.grouped[i.Node] == "" || err == nil || now.Before(i.Launched.Add(a.o.provision)) {
			continue
		}
		a.logf("Removing unregistered node %s", i.Node)
		if err := a.machines.Terminate(ctx, i.ID); err != nil && !cloud.IsNotFound(err) {
			a.logf("Failed to remove node %s: %v", i.Node, err)
			continue
		}
		changed = true
	}
	for i := range a.o.groups {
		g := &a.o.groups[i]
		if missing := g.MinSize - s.sizes[g.Name]; missing > 0 && !a.backoff[g.Name].After(now) {
			n, err := a.launch(ctx, g, missing)
			if changed = changed || n > 0; err != nil {
				a.failed(g, err)
			}
		}
	}
	return changed
}

func terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// unschedulable reports that the scheduler has found no room.
func unschedulable(p *corev1.Pod) bool {
	if p.Spec.NodeName != "" || p.DeletionTimestamp != nil || terminal(p) {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

func ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
