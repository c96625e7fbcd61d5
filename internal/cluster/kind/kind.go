// Package kind is the driver that gives each learner a real kind cluster: node
// containers of Docker, Podman or nerdctl, made by sigs.k8s.io/kind, which only
// this package imports. What kind has no call for (stop, start, faults, the audit
// log, connections into the cluster) is done with the runtime's own program, as kind
// itself does, and by the agent in the control plane's container.
//
// It touches neither the user's kubeconfig nor a cluster that isn't its own: kind puts
// no labels of ours on containers, so that a cluster is ours when its name begins
// with the data folder's prefix. Folder DIR/kind/ID holds the record that goes with it.
package kind

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// Options are what the driver needs.
type Options struct {
	// Dir is the server's data folder.
	Dir string
	// Agent is the path of the program kind-agent, for Linux.
	Agent string
	// Image is the node image; empty means kind's default.
	Image string
	// Runtime is docker, podman or nerdctl; empty takes the first that is there.
	Runtime string
	// Internal: this process is in a container on kind's network and reaches nodes by their names.
	Internal bool
	// Archives are OCI or Docker image archives that every node gets.
	Archives []string
	// Trusted: learners are cluster-admins, which makes them root on this machine.
	Trusted bool
	// StartTimeout is how long a start may take, an image that has to be pulled not counted; 0 means 10 minutes.
	StartTimeout time.Duration
	Log          *slog.Logger // nil: discarded
}

// Driver implements cluster.Driver, cluster.Adopter and cluster.Sleeper.
type Driver struct {
	opt    Options
	root   string // absolute path of DIR/kind
	prefix string // what the names of our clusters begin with
	log    *slog.Logger
	engine engine
	maker  maker
	loaded []string // names of the images in Options.Archives
	work   sync.WaitGroup

	mu        sync.Mutex
	locks     map[string]*sync.Mutex // one call per cluster at a time
	instances map[string]*instance   // those that run as far as this process knows
}

var (
	_ cluster.Driver  = (*Driver)(nil)
	_ cluster.Adopter = (*Driver)(nil)
	_ cluster.Sleeper = (*Driver)(nil)
)

// New makes the driver. It fails when there is no container runtime, the agent
// isn't there or the folder can't be used; the error is a *lab.Error.
func New(o Options) (*Driver, error) {
	bin, err := findRuntime(o.Runtime)
	if err != nil {
		return nil, err
	}
	o.Runtime = bin
	e := program{bin}
	return newDriver(o, e, newMaker(bin))
}

func newDriver(o Options, e engine, m maker) (*Driver, error) {
	if o.StartTimeout <= 0 {
		o.StartTimeout = 10 * time.Minute
	}
	if o.Image == "" {
		o.Image = defaultImage
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, path := range append([]string{o.Agent}, o.Archives...) {
		if fi, err := os.Stat(path); err != nil || fi.IsDir() {
			return nil, noFile(path, err)
		}
	}
	var loaded []string
	for _, path := range o.Archives {
		names, err := imagesIn(path)
		if err != nil {
			return nil, noFile(path, err)
		}
		loaded = append(loaded, names...)
	}
	root, err := filepath.Abs(filepath.Join(o.Dir, "kind"))
	if err == nil {
		err = os.MkdirAll(root, 0o700)
	}
	if err != nil {
		return nil, noFolder(o.Dir, err)
	}
	owner, err := ownerOf(root)
	if err != nil {
		return nil, noFolder(o.Dir, err)
	}
	return &Driver{
		opt: o, root: root, prefix: namePrefix + owner + "-", log: o.Log, engine: e, maker: m, loaded: loaded,
		locks: map[string]*sync.Mutex{}, instances: map[string]*instance{},
	}, nil
}

// Close forgets all clusters and waits for the driver's goroutines; the clusters run
// on and can be adopted by another Driver.
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
func (d *Driver) Name() string { return "kind" }

// Capabilities lists what its clusters can do.
func (d *Driver) Capabilities() []cluster.Capability {
	return []cluster.Capability{cluster.CapEvents, cluster.CapAudit, cluster.CapNetwork, cluster.CapRealContainers,
		cluster.CapKitchenPower, cluster.CapKitchens, cluster.CapControlLoops, cluster.CapClock, cluster.CapEtcd}
}

// goodID leaves room for the prefix and kind's suffixes in a host name of 64 characters.
var goodID = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

func (d *Driver) dir(id string) string { return filepath.Join(d.root, id) }

// lock makes calls for one cluster wait for each other; the result unlocks.
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

// Delete ends the cluster and removes all that it kept; deleting what isn't there
// is no error.
func (d *Driver) Delete(ctx context.Context, id string) error {
	unlock, err := d.lock(id)
	if err != nil {
		return err
	}
	defer unlock()
	return d.remove(ctx, id)
}

// remove removes the cluster's containers with their volumes, and its record.
func (d *Driver) remove(ctx context.Context, id string) error {
	d.forget(id)
	if err := removeContainers(ctx, d.engine, d.prefix+id); err != nil {
		return problem(err)
	}
	if err := os.RemoveAll(d.dir(id)); err != nil {
		return fmt.Errorf("remove record: %w", err)
	}
	return nil
}

// forget ends what this process knows of a running cluster, not the cluster.
func (d *Driver) forget(id string) {
	d.mu.Lock()
	in := d.instances[id]
	delete(d.instances, id)
	d.mu.Unlock()
	if in != nil {
		in.end()
	}
}

var errTooSlow = errors.New("start took too long")
