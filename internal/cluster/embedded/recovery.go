package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kubistro/internal/cluster"
	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// answerWithin is how long a host may take to answer that is asked whether it runs.
const answerWithin = 5 * time.Second

// List finds the clusters of the data folder after a restart of the server.
// What a killed server left half made or half removed is cleared away.
func (d *Driver) List(ctx context.Context) ([]cluster.Found, error) {
	entries, err := os.ReadDir(d.root)
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	found := make([]*cluster.Found, len(entries))
	var g errgroup.Group
	g.SetLimit(16)
	for i, e := range entries {
		g.Go(func() error {
			found[i] = d.inspect(ctx, e.Name())
			return nil
		})
	}
	_ = g.Wait() // inspect has no error
	var out []cluster.Found
	for _, f := range found {
		if f != nil {
			out = append(out, *f)
		}
	}
	return out, ctx.Err()
}

// inspect looks at one entry of the folder; nil when it is no cluster (any more).
func (d *Driver) inspect(ctx context.Context, name string) *cluster.Found {
	if id, ok := strings.CutPrefix(name, ".trash-"); ok && goodID.MatchString(id) {
		if err := os.RemoveAll(filepath.Join(d.root, name)); err != nil {
			d.log.Warn("rest of a deleted cluster stays", "cluster", id, "err", err)
		}
		return nil
	}
	unlock, err := d.lock(name)
	if err != nil {
		return nil // not ours
	}
	defer unlock()
	dir := d.dir(name)
	f := &cluster.Found{ID: name}
	if b, err := os.ReadFile(filepath.Join(dir, controlapi.FileSpec)); err == nil {
		if err := json.Unmarshal(b, &f.Spec); err != nil {
			d.log.Warn("cluster's spec can't be read", "cluster", name, "err", err)
		}
		if fi, err := os.Stat(filepath.Join(dir, controlapi.FileSpec)); err == nil {
			f.Created = fi.ModTime()
		}
	}
	_, err = d.ask(ctx, name)
	f.Running = err == nil
	if !f.Running && !exists(filepath.Join(dir, fileMade)) && ctx.Err() == nil {
		if err := d.remove(name); err != nil {
			d.log.Warn("half made cluster stays", "cluster", name, "err", err)
		}
		return nil
	}
	return f
}

// ask asks the host of a folder for its status.
func (d *Driver) ask(ctx context.Context, id string) (controlapi.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	client := controlapi.New(d.dir(id))
	defer client.Close()
	s, err := client.Status(ctx)
	if err != nil {
		return s, err
	}
	if s.ID != "" && s.ID != id {
		return s, fmt.Errorf("the host in folder %s says it is %s", id, s.ID)
	}
	return s, nil
}

// Adopt takes over a cluster that a former server process left running; one that
// is still starting is waited for.
func (d *Driver) Adopt(ctx context.Context, id string) (cluster.Instance, error) {
	unlock, err := d.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d.forget(id)
	s, err := d.ask(ctx, id)
	if err != nil {
		return nil, lab.Fail(lab.CodeUnavailable, "叢集沒有回應。", "The cluster doesn't answer.").Because(err)
	}
	started := startTime(s.PID)
	h := &host{pid: s.PID, alive: func() bool { return isAlive(s.PID, started) }}
	in, err := d.await(ctx, id, h, nil)
	if err != nil {
		return nil, problem(err)
	}
	return in, nil
}
