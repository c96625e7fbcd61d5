// Package embedded is the driver that runs each cluster as a process of its own
// on this machine: program clusterhost, with the real control plane and simulated
// nodes. It starts, adopts and ends these processes and speaks to their control
// API; it knows nothing of what happens inside them.
//
// The processes are sessions of their own, so that they survive the death of the
// server; their folder DIR/clusters/ID (see clusterhost/controlapi) is all that is
// needed to find them again.
package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// fileMade in a cluster's folder says that it was ready once.
const fileMade = "made"

// Options are what the driver needs.
type Options struct {
	// Dir is the server's data folder.
	Dir string
	// Program is the path of clusterhost.
	Program string
	// Memory is the limit of a cluster's memory in bytes; 0 means 512 MiB.
	Memory int64
	// EtcdQuota is how large a cluster's whiteboard may grow in bytes; 0 means 64 MiB: an object is there some three times in memory, and a host has 512 MiB.
	EtcdQuota int64
	// Orphan is how long a cluster lives on without a server; 0 means 10 minutes.
	Orphan time.Duration
	// StartTimeout is how long a start may take; 0 means 2 minutes.
	StartTimeout time.Duration
	// Beat is how often a running cluster is asked whether it still answers, and how
	// long it may take; one that misses several beats is killed, which its Lost tells. 0 means 5 seconds.
	Beat time.Duration
	// Cgroup is a cgroup v2 folder with the controllers cpu, memory and pids enabled
	// for its children, in which each cluster gets one. Empty: the own one, if that
	// is so prepared; without any, rlimits and GOMEMLIMIT have to do.
	Cgroup string
	Log    *slog.Logger // nil: discarded
}

// Driver implements cluster.Driver, cluster.Adopter and cluster.Sleeper.
type Driver struct {
	opt  Options
	root string // absolute path of DIR/clusters
	log  *slog.Logger
	work sync.WaitGroup

	mu        sync.Mutex
	locks     map[string]*sync.Mutex // one call per cluster at a time
	instances map[string]*instance   // those that run as far as this process knows
}

var (
	_ cluster.Driver  = (*Driver)(nil)
	_ cluster.Adopter = (*Driver)(nil)
	_ cluster.Sleeper = (*Driver)(nil)
)

// New makes the driver. It fails when the program isn't there or the folder
// can't be made; the error is a *lab.Error.
func New(o Options) (*Driver, error) {
	if o.Memory <= 0 {
		o.Memory = 512 << 20
	}
	if o.EtcdQuota <= 0 {
		o.EtcdQuota = 64 << 20
	}
	if o.Orphan <= 0 {
		o.Orphan = 10 * time.Minute
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = 2 * time.Minute
	}
	if o.Beat <= 0 {
		o.Beat = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if fi, err := os.Stat(o.Program); err != nil || fi.IsDir() || fi.Mode()&0o111 == 0 {
		return nil, noProgram(o.Program, err)
	}
	program, err := filepath.Abs(o.Program)
	if err != nil {
		return nil, noProgram(o.Program, err)
	}
	o.Program = program
	root, err := filepath.Abs(filepath.Join(o.Dir, "clusters"))
	if err == nil {
		err = os.MkdirAll(root, 0o700)
	}
	if err != nil {
		return nil, noFolder(o.Dir, err)
	}
	if o.Cgroup == "" {
		o.Cgroup = ownCgroup()
	}
	return &Driver{opt: o, root: root, log: o.Log, locks: map[string]*sync.Mutex{}, instances: map[string]*instance{}}, nil
}

// Close forgets all clusters and waits for the driver's goroutines that don't
// wait for a process of theirs; the clusters run on and can be adopted by another Driver.
func (d *Driver) Close() error {
	d.mu.Lock()
	for id, in := range d.instances {
		in.end()
		delete(d.instances, id)
	}
	d.mu.Unlock()
	d.work.Wait()
	return nil
}

// Name is the driver's name on the command line.
func (d *Driver) Name() string { return "embedded" }

// Capabilities lists what its clusters can do.
func (d *Driver) Capabilities() []cluster.Capability {
	return []cluster.Capability{cluster.CapEvents, cluster.CapAudit, cluster.CapNetwork,
		cluster.CapKitchenPower, cluster.CapKitchens, cluster.CapControlLoops, cluster.CapClock, cluster.CapEtcd}
}

var goodID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

func (d *Driver) dir(id string) string { return filepath.Join(d.root, id) }

// lock makes calls for one cluster wait for each other; the result unlocks. It
// refuses an id that could lead out of the folder.
func (d *Driver) lock(id string) (func(), error) {
	if !goodID.MatchString(id) {
		return nil, lab.Fail(lab.CodeInvalid, "叢集的代號不合法。", "This isn't a cluster's id.").Because(fmt.Errorf("id %q", id))
	}
	d.mu.Lock()
	l := d.locks[id]
	if l == nil {
		l = &sync.Mutex{}
		d.locks[id] = l
	}
	d.mu.Unlock()
	l.Lock()
	return l.Unlock, nil
}

// Create starts a new cluster and returns when it is ready. On error nothing of
// it is left; the error is a *lab.Error whose cause holds the end of the log.
func (d *Driver) Create(ctx context.Context, id string, spec lab.ClusterSpec, progress cluster.Progress) (cluster.Instance, error) {
	unlock, err := d.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	dir := d.dir(id)
	if exists(filepath.Join(dir, fileMade)) {
		return nil, lab.Fail(lab.CodeConflict, "這個叢集已經存在。", "This cluster exists already.").Because(fmt.Errorf("folder %s", dir))
	}
	in, err := d.create(ctx, id, spec, progress)
	if err != nil {
		if rmErr := d.remove(id); rmErr != nil {
			d.log.Error("failed cluster leaves files behind", "cluster", id, "err", rmErr)
		}
		return nil, problem(err)
	}
	return in, nil
}

func (d *Driver) create(ctx context.Context, id string, spec lab.ClusterSpec, progress cluster.Progress) (*instance, error) {
	if err := d.remove(id); err != nil { // of a create that was killed
		return nil, err
	}
	dir := d.dir(id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	b, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, controlapi.FileSpec), append(b, '\n'), 0o600); err != nil {
		return nil, fmt.Errorf("write spec: %w", err)
	}
	return d.start(ctx, id, progress)
}

// Delete ends the cluster and removes all that it kept, processes that nobody
// remembers included; deleting what isn't there is no error.
func (d *Driver) Delete(ctx context.Context, id string) error {
	unlock, err := d.lock(id)
	if err != nil {
		return err
	}
	defer unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.remove(id)
}

// remove kills the cluster's processes and removes its folder.
func (d *Driver) remove(id string) error {
	d.forget(id)
	dir := d.dir(id)
	if err := killHosts(dir); err != nil {
		return err
	}
	// Renamed first, so that a removal which is cut short never looks like a cluster.
	trash := filepath.Join(d.root, ".trash-"+id)
	if err := os.RemoveAll(trash); err != nil {
		return fmt.Errorf("remove folder: %w", err)
	}
	err := os.Rename(dir, trash)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("remove folder: %w", err)
	default:
		if err := os.RemoveAll(trash); err != nil {
			return fmt.Errorf("remove folder: %w", err)
		}
	}
	removeCgroup(d.opt.Cgroup, id)
	return nil
}

// forget ends what this process knows of a running cluster, not the cluster.
func (d *Driver) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in := d.instances[id]; in != nil {
		in.end()
		delete(d.instances, id)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
