package embedded

import (
	"context"
	"fmt"
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// shutdownWithin is how long a host may take to stop gracefully before it is killed.
const shutdownWithin = 10 * time.Second

// Sleep stops a cluster so that its state is kept and its memory freed. A host
// that doesn't stop in time, or before ctx ends, is killed: what etcd has stays.
// A cluster that doesn't run is asleep already.
func (d *Driver) Sleep(ctx context.Context, id string) error {
	unlock, err := d.lock(id)
	if err != nil {
		return err
	}
	defer unlock()
	d.forget(id)
	dir := d.dir(id)
	if !exists(dir) {
		return missing(id)
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownWithin)
	defer cancel()
	client := controlapi.New(dir)
	defer client.Close()
	running := hostsOf(dir)
	if err := client.Shutdown(ctx); err == nil {
		if waitGone(ctx, running) == nil {
			return nil
		}
		d.log.Warn("cluster host doesn't stop in time and is killed", "cluster", id)
	}
	return killHosts(dir)
}

// Wake starts a sleeping or crashed cluster again. On error its process is gone
// and its state is kept.
func (d *Driver) Wake(ctx context.Context, id string, progress cluster.Progress) (cluster.Instance, error) {
	unlock, err := d.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d.forget(id)
	dir := d.dir(id)
	if !exists(dir) {
		return nil, missing(id)
	}
	if err := killHosts(dir); err != nil { // one that hangs, or that nobody remembers
		return nil, problem(err)
	}
	in, err := d.start(ctx, id, progress)
	if err != nil {
		return nil, problem(err)
	}
	return in, nil
}

func missing(id string) error {
	return lab.Fail(lab.CodeNotFound, "這個叢集的資料已經不在了。", "This cluster's data is gone.").Because(fmt.Errorf("no folder of cluster %s", id))
}
