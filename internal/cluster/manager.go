package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kubistro/internal/lab"
)

// Config is what a Manager needs.
type Config struct {
	Driver Driver
	// Dir is where the Manager keeps its own notes (which clusters are unused pool
	// clusters). Empty: a pool doesn't outlive the server.
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
	// RoomAfter is how long a cluster must have been idle to be put to sleep
	// early when others wait for a place; 0 means 5 minutes. Idle is the upper bound.
	RoomAfter time.Duration
	// Starts is how many clusters may start at once; 0 derives it from the
	// machine's cores. The pool is refilled with half of them, and waits for learners.
	Starts  int
	Clock   clock.WithTicker      // nil: the real one
	Log     *slog.Logger          // nil: discarded
	Metrics prometheus.Registerer // nil: none
}

// withDefaults fills what was left open.
func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Max <= 0 {
		c.Max = maxFromMemory(totalMemory(), footprint(c.Driver, c.Spec))
	}
	if c.Starts <= 0 {
		c.Starts = max(2, runtime.NumCPU()/2)
	}
	if c.RoomAfter <= 0 {
		c.RoomAfter = 5 * time.Minute
	}
	if c.Idle > 0 {
		c.RoomAfter = min(c.RoomAfter, c.Idle)
	}
	c.Warm = min(c.Warm, c.Max)
	return c
}

// Manager owns all clusters of a server. All methods are safe for concurrent use.
//
// One mutex guards all state; nothing slow happens under it. Whatever changes
// state calls changed, which lets waiting clusters start. Slow work (calls of the
// driver) runs in goroutines, at most one per cluster at a time.
type Manager struct {
	cfg     Config
	clock   clock.WithTicker
	log     *slog.Logger
	notes   notes
	metrics *metrics

	starts      context.Context // of creating and waking; ends when Close begins
	stopStarts  context.CancelFunc
	ends        context.Context // of sleeping and deleting; ends when Close gives up
	stopEnds    context.CancelFunc
	work        sync.WaitGroup
	kick        chan struct{} // the loop is to look at its deadline again
	sleeps      chan struct{} // bounds how many fall asleep at once, so that each stops gracefully in time
	sleeper     Sleeper       // nil where the driver can't
	adopter     Adopter       // nil where the driver can't
	mu          sync.Mutex
	running     bool // between Start and Close
	clusters    map[string]*Cluster
	lastSeq     uint64
	poolFails   int       // failed starts for the pool in a row
	poolRetryAt time.Time // the pool isn't filled before
}

// NewManager makes a Manager; nothing runs before Start.
func NewManager(c Config) *Manager {
	c = c.withDefaults()
	m := &Manager{
		cfg: c, clock: c.Clock, log: c.Log, notes: notes{dir: c.Dir},
		kick: make(chan struct{}, 1), sleeps: make(chan struct{}, 2*c.Starts), clusters: map[string]*Cluster{},
	}
	m.sleeper, _ = c.Driver.(Sleeper)
	m.adopter, _ = c.Driver.(Adopter)
	m.starts, m.stopStarts = context.WithCancel(context.Background())
	m.ends, m.stopEnds = context.WithCancel(context.Background())
	m.metrics = newMetrics(c.Metrics, m)
	return m
}

// DriverName is the driver's name on the command line.
func (m *Manager) DriverName() string { return m.cfg.Driver.Name() }

// Capabilities lists what the driver's clusters can do.
func (m *Manager) Capabilities() []Capability { return m.cfg.Driver.Capabilities() }

// Claim gives a cluster of the given shape, at once: a ready one from the pool
// if one fits, else one that is being provisioned or waits in the queue. Its ID
// is final. Idle time counts from here.
func (m *Manager) Claim(ctx context.Context, spec lab.ClusterSpec) (*Cluster, error) {
	return m.claim(ctx, spec, whyCreate)
}

// Replace is Claim for a reset of the whole cluster: the new one has Why
// "reset", and cluster id (which may be unknown) is deleted behind.
func (m *Manager) Replace(ctx context.Context, id string, spec lab.ClusterSpec) (*Cluster, error) {
	c, err := m.claim(ctx, spec, whyReset)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.clusters[id]; old != nil && old != c && m.running {
		m.beginDelete(old)
		m.changed()
	}
	return c, nil
}

func (m *Manager) claim(ctx context.Context, spec lab.ClusterSpec, why string) (*Cluster, error) {
	if err := ctx.Err(); err != nil {
		return nil, unavailable(err)
	}
	for {
		m.mu.Lock()
		if !m.running {
			m.mu.Unlock()
			return nil, closed()
		}
		c, from := m.takeFromPool(spec), fromPool
		switch {
		case c == nil:
			c, from = m.newCluster(newID(), spec), fromCold
			c.why = why
			m.enqueue(c, workCreate)
		case c.op != nil:
			from = fromStarting
		}
		c.why = why
		c.fire()
		m.changed()
		m.mu.Unlock()
		if from == fromPool {
			// From here on a restarted server must not take it for an unused one.
			if err := m.notes.remove(c.id); err != nil {
				m.log.Error("pool cluster can't be marked as used; taking another", "cluster", c.id, "err", err)
				m.deleteBehind(c)
				continue
			}
		}
		m.metrics.claims.WithLabelValues(from).Inc()
		return c, nil
	}
}

// deleteBehind deletes a cluster in the background.
func (m *Manager) deleteBehind(c *Cluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running {
		m.beginDelete(c)
		m.changed()
	}
}

// Open finds a cluster of a former life of the server (or of this one): running
// or asleep. Its data gone: CodeNotFound.
func (m *Manager) Open(_ context.Context, id string, _ lab.ClusterSpec) (*Cluster, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clusters[id]
	if c == nil || c.pooled || c.state == lab.StateEnded {
		return nil, gone()
	}
	return c, nil
}

// Delete ends a cluster and removes all that it kept. Deleting what isn't there
// is no error. When ctx ends first, the work goes on in the background.
func (m *Manager) Delete(ctx context.Context, id string) error {
	m.mu.Lock()
	c := m.clusters[id]
	if c != nil && !m.running {
		m.mu.Unlock()
		return closed()
	}
	if c == nil {
		m.mu.Unlock()
		if err := m.cfg.Driver.Delete(ctx, id); err != nil {
			return fmt.Errorf("delete cluster %s: %w", id, err)
		}
		return nil
	}
	d := m.beginDelete(c)
	m.changed()
	m.mu.Unlock()
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
}

// Close puts running clusters to sleep, deletes the pool, and waits for all of
// it and for the Manager's goroutines. When ctx ends first the clusters are left
// as they are; the next Start recovers them.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	m.running = false
	m.stopStarts()
	for _, c := range m.clusters {
		m.endForClose(c)
		c.fire()
	}
	m.mu.Unlock()
	done := make(chan struct{})
	go func() {
		m.work.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("close clusters: %w", ctx.Err())
	}
	m.stopEnds()
	<-done // calls of the driver return when their context ends
	m.metrics.unregister()
	return err
}

// endForClose puts a ready cluster to sleep, or deletes one of the pool.
func (m *Manager) endForClose(c *Cluster) {
	switch {
	case c.pooled && c.state == lab.StateReady:
		m.beginDelete(c)
	case c.state == lab.StateReady && m.sleeper != nil:
		m.beginSleep(c)
	case c.stopWatch != nil:
		c.stopWatch()
	}
}
