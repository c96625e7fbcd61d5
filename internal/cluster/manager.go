package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kubistro/internal/lab"
)

// Config is what a Manager needs.
type Config struct {
	Driver Driver
	// Dir is where the Manager keeps its own notes (which clusters are unused pool clusters).
	Dir string
	// Spec is the shape of the pool's clusters.
	Spec lab.ClusterSpec
	// Warm is how many unused clusters are kept ready.
	Warm int
	// Max is how many may run at once, the pool included; 0 derives it from the machine's memory.
	Max int
	// Idle is how long a cluster may go without Touch before it is put to sleep; 0 never.
	Idle time.Duration
	// WarnBefore is how long before that SleepsSoon turns true and Changes fires.
	WarnBefore time.Duration
	Clock      clock.WithTicker      // nil: the real one
	Log        *slog.Logger          // nil: discarded
	Metrics    prometheus.Registerer // nil: none
}

// Manager owns all clusters of a server. All methods are safe for concurrent use.
type Manager struct{}

// NewManager makes a Manager; nothing runs before Start.
func NewManager(c Config) *Manager { panic("being built") }

// Start recovers after a restart: clusters in known are adopted where they run
// and kept asleep where they don't; unused clusters of the pool are taken back
// into it; all others are deleted. Then it fills the pool in the background.
// It returns quickly, with an error when the driver can't list its clusters.
func (m *Manager) Start(ctx context.Context, known []string) error { panic("being built") }

// DriverName is the driver's name on the command line.
func (m *Manager) DriverName() string { panic("being built") }

// Capabilities lists what the driver's clusters can do.
func (m *Manager) Capabilities() []Capability { panic("being built") }

// Claim gives a cluster of the given shape, at once: a ready one from the pool
// if one fits, else one that is being provisioned or waits in the queue. Its ID
// is final. Idle time counts from here.
func (m *Manager) Claim(ctx context.Context, spec lab.ClusterSpec) (*Cluster, error) {
	panic("being built")
}

// Replace is Claim for a reset of the whole cluster: the new one has Why
// "reset", and cluster id (which may be unknown) is deleted behind.
func (m *Manager) Replace(ctx context.Context, id string, spec lab.ClusterSpec) (*Cluster, error) {
	panic("being built")
}

// Open finds a cluster of a former life of the server (or of this one): running
// or asleep. Its data gone: CodeNotFound.
func (m *Manager) Open(ctx context.Context, id string, spec lab.ClusterSpec) (*Cluster, error) {
	panic("being built")
}

// Delete ends a cluster and removes all that it kept. Deleting what isn't there is no error.
func (m *Manager) Delete(ctx context.Context, id string) error { panic("being built") }

// Close puts running clusters to sleep, deletes the pool, and waits for all of
// it and for the Manager's goroutines. When ctx ends first the clusters are left
// as they are; the next Start recovers them.
func (m *Manager) Close(ctx context.Context) error { panic("being built") }

// Cluster is one learner's cluster through all states of its life. All methods
// are safe for concurrent use; none but Instance waits for anything.
type Cluster struct{}

// ID is the cluster's final name.
func (c *Cluster) ID() string { panic("being built") }

// Spec is the cluster's shape.
func (c *Cluster) Spec() lab.ClusterSpec { panic("being built") }

// Status tells where the cluster is in its life.
func (c *Cluster) Status() lab.Status { panic("being built") }

// SleepsSoon reports that Status().SleepsAt is nearer than Config.WarnBefore.
func (c *Cluster) SleepsSoon() bool { panic("being built") }

// Changes is closed at the next change of Status. Get the channel, read Status, then wait.
func (c *Cluster) Changes() <-chan struct{} { panic("being built") }

// Instance waits until the cluster is ready and returns its running instance;
// a sleeping one is woken. When it failed or was deleted the error is a
// *lab.Error with the reason for people. After a crash or a sleep ask again.
func (c *Cluster) Instance(ctx context.Context) (Instance, error) { panic("being built") }

// Touch notes activity of the learner: the idle time starts anew. It wakes nothing.
func (c *Cluster) Touch() { panic("being built") }

// Wake starts a sleeping cluster in the background; in other states it does nothing.
func (c *Cluster) Wake() { panic("being built") }

// Retry starts a failed cluster anew in the background; in other states it does nothing.
func (c *Cluster) Retry() { panic("being built") }
