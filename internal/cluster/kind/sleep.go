package kind

import (
	"context"
	"slices"

	"kubistro/internal/cluster"
)

// stopSeconds is how long a node may take to shut down before it is killed.
const stopSeconds = "10"

// Sleep stops the cluster's containers; their file systems stay.
// A cluster that doesn't run is asleep already.
func (d *Driver) Sleep(ctx context.Context, id string) error {
	unlock, err := d.lock(id)
	if err != nil {
		return err
	}
	defer unlock()
	d.forget(id)
	if _, err := d.recordOf(id); err != nil {
		return err
	}
	return problem(d.stop(ctx, id))
}

func (d *Driver) stop(ctx context.Context, id string) error {
	names, err := containers(ctx, d.engine, d.prefix+id)
	if err != nil || len(names) == 0 {
		return err
	}
	_, err = d.engine.run(ctx, nil, append([]string{"stop", "-t", stopSeconds}, names...)...)
	return err
}

// Wake starts a sleeping or crashed cluster again. On error its containers are
// stopped and its state is kept.
func (d *Driver) Wake(ctx context.Context, id string, progress cluster.Progress) (cluster.Instance, error) {
	unlock, err := d.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d.forget(id)
	r, err := d.recordOf(id)
	if err != nil {
		return nil, err
	}
	s := &stages{progress: progress}
	in, err := d.wake(ctx, id, r, s)
	if err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
		defer cancel()
		if stopErr := d.stop(clean, id); stopErr != nil {
			d.log.Error("cluster that can't wake doesn't stop", "cluster", id, "err", stopErr)
		}
		return nil, problem(&startError{stage: s.name(), err: err})
	}
	s.end()
	return in, nil
}

func (d *Driver) wake(ctx context.Context, id string, r *record, s *stages) (*instance, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.opt.StartTimeout, errTooSlow)
	defer cancel()
	s.begin(stageNodes)
	// The office first, and always in the same order, so that the nodes get their addresses
	// again; where they don't, kind's entrypoint mends what names the old one.
	names := []string{r.office()}
	for _, k := range r.kitchens() {
		if !slices.Contains(r.Changes.Off, k) {
			names = append(names, r.Nodes[k])
		}
	}
	for _, name := range names {
		if _, err := d.engine.run(ctx, nil, "start", name); err != nil {
			return nil, err
		}
	}
	if err := d.filter(ctx, r); err != nil { // before the first Pod runs again
		return nil, err
	}
	for node := range r.Nodes {
		if slices.Contains(r.Changes.Off, node) {
			continue
		}
		if err := d.restore(ctx, r, node); err != nil {
			return nil, err
		}
	}
	s.begin(stageReady)
	return d.begin(ctx, id, r)
}
