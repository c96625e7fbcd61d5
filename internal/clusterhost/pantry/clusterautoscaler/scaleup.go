package clusterautoscaler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// groupBackoff is how long a group is left alone after the cloud refused it: --initial-node-group-backoff-duration.
const groupBackoff = 5 * time.Minute

// option is what opening machines of a group would give: core/scaleup/orchestrator.
type option struct {
	group *group
	nodes int
	pods  []*corev1.Pod
	waste float64 // of CPU and memory, as shares of what is opened
}

// scaleUp opens machines of one group for Pods that wait. waiting: some get nothing for now.
func (a *autoscaler) scaleUp(ctx context.Context, s *snapshot, now time.Time) (scaled, waiting bool) {
	pods := a.pending(s)
	if len(pods) == 0 {
		return false, false
	}
	var options []option
	reasons := map[types.UID]map[string]int{}
	total := 0
	for _, n := range s.sizes {
		total += n
	}
	for i := range a.o.groups {
		g := &a.o.groups[i]
		room := g.MaxSize - s.sizes[g.Name]
		if a.o.maxNodes > 0 {
			room = min(room, a.o.maxNodes-total)
		}
		skip := ""
		switch {
		case a.backoff[g.Name].After(now):
			skip = "in backoff after failed scale-up"
		case room <= 0:
			skip = "max node group size reached"
		}
		o := a.estimate(s, g, room, pods, skip, reasons)
		if o.nodes > 0 {
			options = append(options, o)
		}
	}
	helped := map[types.UID]bool{}
	for _, o := range options {
		for _, p := range o.pods {
			helped[p.UID] = true
		}
	}
	if len(options) > 0 {
		best := a.choose(options)
		if scaled = a.open(ctx, s, best, now); !scaled {
			return false, true
		}
	}
	for _, p := range pods {
		if !helped[p.UID] {
			waiting = true
			a.tell(p, corev1.EventTypeNormal, "NotTriggerScaleUp", "pod didn't trigger scale-up: "+reasonsMessage(reasons[p.UID]))
		}
	}
	a.forget(pods)
	return scaled, waiting
}

// pending are the Pods that no node has room for, nor one that comes.
func (a *autoscaler) pending(s *snapshot) (out []*corev1.Pod) {
	all, err := a.pods.List(labels.Everything())
	if err != nil {
		return nil
	}
	slices.SortFunc(all, func(x, y *corev1.Pod) int {
		if c := x.CreationTimestamp.Compare(y.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(x.Namespace+"/"+x.Name, y.Namespace+"/"+y.Name)
	})
	for _, p := range all {
		if owner := metav1.GetControllerOf(p); !unschedulable(p) || owner != nil && owner.Kind == "DaemonSet" || p.Status.NominatedNodeName != "" {
			continue
		}
		if !s.put(p, s.places) {
			out = append(out, p)
		}
	}
	return out
}

// estimate packs Pods into new nodes of a group: estimator/binpacking_estimator.go.
func (a *autoscaler) estimate(s *snapshot, g *group, room int, pods []*corev1.Pod, skip string, reasons map[types.UID]map[string]int) option {
	o := option{group: g}
	w := world{places: slices.Clone(s.places), namespaces: s.namespaces}
	var opened []*place
	var free, all [2]float64 // CPU, memory
	for _, p := range pods {
		fresh := a.template(g, a.zoneOf(g, len(opened)), fmt.Sprintf("template-node-for-%s-%d", g.Name, len(opened)))
		why := (&world{places: append(slices.Clone(s.places), fresh), namespaces: s.namespaces}).wrong(p, fresh)
		if why == "" {
			why = skip
		}
		if why != "" {
			if reasons[p.UID] == nil {
				reasons[p.UID] = map[string]int{}
			}
			reasons[p.UID][why]++
			continue
		}
		if w.put(p, opened) {
			o.pods = append(o.pods, p)
			continue
		}
		w.places = append(w.places, fresh)
		if len(opened) < room && w.put(p, []*place{fresh}) {
			opened = append(opened, fresh)
			o.pods = append(o.pods, p)
			continue
		}
		w.places = w.places[:len(w.places)-1]
	}
	o.nodes = len(opened)
	for _, p := range opened {
		for i, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			left, has := p.free[name], p.node.Status.Allocatable[name]
			free[i], all[i] = free[i]+left.AsApproximateFloat64(), all[i]+has.AsApproximateFloat64()
		}
	}
	if o.nodes > 0 {
		o.waste = free[0]/all[0] + free[1]/all[1]
	}
	return o
}

// zoneOf is where the n-th of further machines would go.
func (a *autoscaler) zoneOf(g *group, n int) string {
	first := slices.Index(g.Zones, a.zone(g))
	return g.Zones[(first+n)%len(g.Zones)]
}

// choose is the expander: expander/waste, mostpods, random.
func (a *autoscaler) choose(all []option) option {
	rank := func(option) float64 { return 0 }
	switch a.o.expander {
	case "least-waste":
		rank = func(o option) float64 { return o.waste }
	case "most-pods":
		rank = func(o option) float64 { return -float64(len(o.pods)) }
	}
	best := all[:1:1]
	for _, o := range all[1:] {
		switch d := rank(o) - rank(best[0]); {
		case d < 0:
			best = []option{o}
		case d == 0:
			best = append(best, o)
		}
	}
	return best[rand.IntN(len(best))]
}

// open orders the machines and says so.
func (a *autoscaler) open(ctx context.Context, s *snapshot, o option, now time.Time) bool {
	g, from := o.group, s.sizes[o.group.Name]
	to := from + o.nodes
	a.logf("Final scale-up plan: [{%s %d->%d (max: %d)}]", g.Name, from, to, g.MaxSize)
	a.note(corev1.EventTypeNormal, "ScaledUpGroup", "Scale-up: setting group %s size to %d instead of %d (max: %d)", g.Name, to, from, g.MaxSize)
	n, err := a.launch(ctx, g, o.nodes)
	if err != nil {
		a.failed(g, err)
	}
	if n == 0 {
		return false
	}
	s.sizes[g.Name], s.coming, a.lastAdd = from+n, s.coming+n, now
	a.note(corev1.EventTypeNormal, "ScaledUpGroup", "Scale-up: group %s size set to %d instead of %d (max: %d)", g.Name, from+n, from, g.MaxSize)
	for _, p := range o.pods {
		a.tell(p, corev1.EventTypeNormal, "TriggeredScaleUp", fmt.Sprintf("pod triggered scale-up: [{%s %d->%d (max: %d)}]", g.Name, from, to, g.MaxSize))
	}
	return true
}

// failed leaves a group alone for a while.
func (a *autoscaler) failed(g *group, err error) {
	a.logf("Failed to increase node group %s size: %v", g.Name, err)
	a.note(corev1.EventTypeWarning, "FailedToScaleUpGroup", "Scale-up failed for group %s: %v", g.Name, err)
	a.backoff[g.Name] = a.env.Clock.Now().Add(groupBackoff)
}

// tell writes an Event of a Pod unless it is what the Pod was told last.
func (a *autoscaler) tell(p *corev1.Pod, kind, reason, message string) {
	if a.told[p.UID] != message {
		a.told[p.UID] = message
		a.events.Event(p, kind, reason, message)
	}
}

// forget drops what was told to Pods that don't wait any more.
func (a *autoscaler) forget(pending []*corev1.Pod) {
	waits := map[types.UID]bool{}
	for _, p := range pending {
		waits[p.UID] = true
	}
	for uid := range a.told {
		if !waits[uid] {
			delete(a.told, uid)
		}
	}
}

// reasonsMessage counts groups by reason: processors/status/eventing_scale_up_processor.go.
func reasonsMessage(reasons map[string]int) string {
	var out []string
	for reason, n := range reasons {
		out = append(out, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
