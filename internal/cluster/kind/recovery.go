package kind

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// nodeSuffix is what kind puts behind a cluster's name.
var nodeSuffix = regexp.MustCompile(`-(control-plane|worker)[0-9]*$`)

// List finds the clusters of the data folder after a restart of the server. What a
// killed server left half made or half removed is cleared away.
func (d *Driver) List(ctx context.Context) ([]cluster.Found, error) {
	ids, err := d.known(ctx)
	if err != nil {
		return nil, problem(err)
	}
	var out []cluster.Found
	for _, id := range ids {
		f, err := d.inspect(ctx, id)
		if err != nil {
			return nil, problem(err)
		}
		if f != nil {
			out = append(out, *f)
		}
	}
	return out, ctx.Err()
}

// Inventory lists the clusters without touching any, for people who look while a
// server runs: also those that are half made, which have no Created.
func (d *Driver) Inventory(ctx context.Context) ([]cluster.Found, error) {
	ids, err := d.known(ctx)
	if err != nil {
		return nil, problem(err)
	}
	var out []cluster.Found
	for _, id := range ids {
		f := cluster.Found{ID: id}
		if r, err := d.readRecord(id); err == nil && r != nil && r.Made {
			f.Spec, f.Created = r.Spec, r.Created
		}
		if f.Running, err = running(ctx, d.engine, d.prefix+id+"-control-plane"); err != nil {
			return nil, problem(err)
		}
		out = append(out, f)
	}
	return out, nil
}

// known lists the ids that have a record or containers.
func (d *Driver) known(ctx context.Context) ([]string, error) {
	var ids []string
	entries, err := os.ReadDir(d.root)
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && goodID.MatchString(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	out, err := d.engine.run(ctx, nil, "ps", "-a", "--filter", "label="+labelCluster, "--format", "{{.Names}}")
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(out) {
		id, ours := strings.CutPrefix(nodeSuffix.ReplaceAllString(name, ""), d.prefix)
		if ours && goodID.MatchString(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// inspect looks at one cluster; nil when it is none (any more).
func (d *Driver) inspect(ctx context.Context, id string) (*cluster.Found, error) {
	unlock, err := d.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r, err := d.readRecord(id)
	if err != nil {
		d.log.Warn("cluster's record can't be read", "cluster", id, "err", err)
	}
	if r == nil || !r.Made {
		if err := d.remove(ctx, id); err != nil {
			d.log.Warn("half made cluster stays", "cluster", id, "err", err)
		}
		return nil, nil
	}
	up, err := running(ctx, d.engine, r.office())
	if err != nil {
		return nil, err
	}
	return &cluster.Found{ID: id, Spec: r.Spec, Running: up, Created: r.Created}, nil
}

// Adopt takes over a cluster that a former server process left running.
func (d *Driver) Adopt(ctx context.Context, id string) (cluster.Instance, error) {
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
	if !r.Made {
		return nil, missing(id)
	}
	if up, err := running(ctx, d.engine, r.office()); err != nil || !up {
		return nil, lab.Fail(lab.CodeUnavailable, "叢集沒有回應。", "The cluster doesn't answer.").Because(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.opt.StartTimeout, errTooSlow)
	defer cancel()
	in, err := d.begin(ctx, id, r)
	if err != nil {
		return nil, problem(&startError{stage: stageReady, err: err})
	}
	return in, nil
}
