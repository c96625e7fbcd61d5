// Package clustertest is the conformance suite of cluster drivers (Run), and a
// small driver in memory that passes it (Memory), for tests of what is built on
// drivers. It isn't used outside of tests.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// The calls that a Memory driver's hook is asked about.
const (
	CallCreate = "create"
	CallWake   = "wake"
	CallSleep  = "sleep"
	CallAdopt  = "adopt"
	CallDelete = "delete"
	CallList   = "list"
)

// Memory is a driver whose clusters are a few maps with an API server before
// them: Deployments make Pods, Pods answer HTTP on port 80. What it has of a
// cluster survives Crash and Restart as a process and its files would.
type Memory struct {
	machine *machine
	hook    func(ctx context.Context, call, id string) error
}

// machine is what outlives a server: disks and processes.
type machine struct {
	mu       sync.Mutex
	clusters map[string]*memoryCluster
}

// memoryCluster is a cluster's disk, and its process while it runs.
type memoryCluster struct {
	spec    lab.ClusterSpec
	created time.Time
	disk    *objects
	process *process // nil: asleep or crashed
}

// process is a cluster that runs.
type process struct {
	api   *apiServer
	lost  chan struct{}
	ended chan struct{}
}

var (
	_ cluster.Driver  = (*Memory)(nil)
	_ cluster.Adopter = (*Memory)(nil)
	_ cluster.Sleeper = (*Memory)(nil)
)

// NewMemory makes an empty driver. Before each call does its work, hook (which
// may be nil) decides how long it takes and whether it fails: it may block until
// ctx ends, and its error becomes the call's.
func NewMemory(hook func(ctx context.Context, call, id string) error) *Memory {
	if hook == nil {
		hook = func(context.Context, string, string) error { return nil }
	}
	return &Memory{machine: &machine{clusters: map[string]*memoryCluster{}}, hook: hook}
}

// Restart is the driver of a new server on the same machine; the clusters run on.
func (d *Memory) Restart() *Memory { return d.RestartWith(d.hook) }

// RestartWith is Restart with another hook.
func (d *Memory) RestartWith(hook func(ctx context.Context, call, id string) error) *Memory {
	return &Memory{machine: d.machine, hook: hook}
}

// Crash kills a cluster's process. It reports whether there was one.
func (d *Memory) Crash(id string) bool {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	c := d.machine.clusters[id]
	if c == nil || c.process == nil {
		return false
	}
	close(c.process.lost)
	c.stop()
	return true
}

// Close ends all processes, as switching the machine off does.
func (d *Memory) Close() {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	for _, c := range d.machine.clusters {
		c.stop()
	}
}

// Running lists the clusters that have a process, sorted.
func (d *Memory) Running() []string {
	return d.ids(func(c *memoryCluster) bool { return c.process != nil })
}

// Kept lists the clusters that have a disk, sorted.
func (d *Memory) Kept() []string { return d.ids(func(*memoryCluster) bool { return true }) }

func (d *Memory) ids(want func(*memoryCluster) bool) []string {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	out := []string{}
	for _, id := range slices.Sorted(maps.Keys(d.machine.clusters)) {
		if want(d.machine.clusters[id]) {
			out = append(out, id)
		}
	}
	return out
}

// Name is "memory".
func (d *Memory) Name() string { return "memory" }

// Capabilities lists what its clusters can do.
func (d *Memory) Capabilities() []cluster.Capability {
	return []cluster.Capability{cluster.CapAudit, cluster.CapNetwork}
}

// Create starts a cluster.
func (d *Memory) Create(ctx context.Context, id string, spec lab.ClusterSpec, progress cluster.Progress) (cluster.Instance, error) {
	if err := d.begin(ctx, CallCreate, id, progress); err != nil {
		return nil, err
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	if d.machine.clusters[id] != nil {
		return nil, lab.Fail(lab.CodeConflict, "這個叢集已經存在。", "This cluster exists already.")
	}
	c := &memoryCluster{spec: spec, created: time.Now(), disk: newObjects(spec)}
	d.machine.clusters[id] = c
	return c.run(id), nil
}

// begin reports the stages around what the hook does.
func (d *Memory) begin(ctx context.Context, call, id string, progress cluster.Progress) error {
	stage := lab.Stage{Name: "etcd", Started: time.Now()}
	if progress != nil {
		progress(stage)
	}
	if err := d.hook(ctx, call, id); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if progress != nil {
		stage.Done = true
		progress(stage)
		progress(lab.Stage{Name: "ready", Started: time.Now(), Done: true})
	}
	return nil
}

// Delete ends a cluster and forgets it.
func (d *Memory) Delete(ctx context.Context, id string) error {
	if err := d.hook(ctx, CallDelete, id); err != nil {
		return err
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	if c := d.machine.clusters[id]; c != nil {
		c.stop()
		delete(d.machine.clusters, id)
	}
	return nil
}

// List finds all clusters.
func (d *Memory) List(ctx context.Context) ([]cluster.Found, error) {
	if err := d.hook(ctx, CallList, ""); err != nil {
		return nil, err
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	var out []cluster.Found
	for _, id := range slices.Sorted(maps.Keys(d.machine.clusters)) {
		c := d.machine.clusters[id]
		out = append(out, cluster.Found{ID: id, Spec: c.spec, Running: c.process != nil, Created: c.created})
	}
	return out, nil
}

// Adopt takes over a running cluster.
func (d *Memory) Adopt(ctx context.Context, id string) (cluster.Instance, error) {
	if err := d.hook(ctx, CallAdopt, id); err != nil {
		return nil, err
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	c := d.machine.clusters[id]
	if c == nil || c.process == nil {
		return nil, lab.Fail(lab.CodeUnavailable, "叢集沒有回應。", "The cluster doesn't answer.")
	}
	return &memoryInstance{id: id, process: c.process, disk: c.disk}, nil
}

// Sleep stops a cluster and keeps its disk.
func (d *Memory) Sleep(ctx context.Context, id string) error {
	if err := d.hook(ctx, CallSleep, id); err != nil {
		return err
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	c := d.machine.clusters[id]
	if c == nil {
		return missing(id)
	}
	c.stop()
	return nil
}

// Wake starts a cluster from its disk.
func (d *Memory) Wake(ctx context.Context, id string, progress cluster.Progress) (cluster.Instance, error) {
	if err := d.begin(ctx, CallWake, id, progress); err != nil {
		return nil, err
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	c := d.machine.clusters[id]
	if c == nil {
		return nil, missing(id)
	}
	c.stop()
	return c.run(id), nil
}

func missing(id string) error {
	return lab.Fail(lab.CodeNotFound, "這個叢集的資料已經不在了。", "This cluster's data is gone.").Because(fmt.Errorf("cluster %s", id))
}

func (c *memoryCluster) run(id string) *memoryInstance {
	c.process = &process{api: serveAPI(c.disk), lost: make(chan struct{}), ended: make(chan struct{})}
	return &memoryInstance{id: id, process: c.process, disk: c.disk}
}

func (c *memoryCluster) stop() {
	if c.process != nil {
		close(c.process.ended)
		c.process.api.close()
		c.process = nil
	}
}

var errEnded = errors.New("the cluster has ended")
