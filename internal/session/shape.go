package session

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"kubistro/internal/cluster"
	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/session/stream"
)

// shape is the shape that the session's cluster was given last, whatever the learner made of it since.
func (l *live) shape() lab.ClusterSpec {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spec
}

// shaped notes that the session's cluster, which is c, has a shape.
func (l *live) shaped(ctx context.Context, c *cluster.Cluster, spec lab.ClusterSpec) error {
	if err := l.s.Store.SetCluster(ctx, l.id, c.ID(), spec); err != nil {
		return fmt.Errorf("session: note the cluster: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spec = spec
	return nil
}

// reshape gives the cluster the shape that a level wants: kitchens are opened and closed, the clock is
// set, everybody comes to work. It does nothing when the cluster was given that shape already. What can't
// be changed in a running cluster takes a fresh one.
func (l *live) reshape(ctx context.Context, r *running, level *course.Level) (*running, error) {
	want := level.Shape()
	if equality.Semantic.DeepEqual(l.shape(), want) {
		return r, nil
	}
	l.feed.Lab(lab.Event{Verb: "shape", Object: lab.ObjectRef{Kind: "Level", Name: level.ID}, Text: &lab.Text{
		ZhTW: "照這一關的需要準備廚房和時鐘。", En: "The kitchens and the clock are made ready for this level.",
	}})
	_, movable := r.instance.(cluster.KitchenOperator)
	if r.cluster.Spec().WithoutLoadBalancers != want.WithoutLoadBalancers || !movable && !equality.Semantic.DeepEqual(l.shape().Kitchens, want.Kitchens) {
		return l.replace(ctx, want)
	}
	if err := putBack(ctx, r.instance, want, func(string) bool { return true }); err != nil {
		if ctx.Err() != nil {
			return nil, errNoCluster.Because(err)
		}
		l.log.Warn("cluster can't be given another shape; replacing it", "level", level.ID, "error", err)
		return l.replace(ctx, want)
	}
	return r, l.shaped(ctx, r.cluster, want)
}

// sendHome sends the control loops home that an exercise begins without.
func (r *running) sendHome(ctx context.Context, e *course.Exercise) error {
	if len(e.Home) == 0 {
		return nil
	}
	op, ok := r.instance.(cluster.LoopOperator)
	if !ok {
		return errUnable
	}
	for _, name := range e.Home {
		if err := op.SetLoop(ctx, name, true); err != nil {
			return fmt.Errorf("session: start state: %w", err)
		}
	}
	return nil
}

// absent tells in the record which control loops an exercise begins without.
func (l *live) absent(e *course.Exercise) {
	for _, name := range e.Home {
		l.feed.Outside(lab.Event{Actor: stream.ActorLab, Verb: stream.VerbLoop, Object: lab.ObjectRef{Kind: stream.KindLoop, Name: name}, Reason: stream.ReasonHome,
			Text: &lab.Text{ZhTW: name + " 今天休假。", En: name + " has a day off."}})
	}
}
