package cluster

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"kubistro/internal/lab"
)

// The values of lab.Status.Why.
const (
	whyCreate  = "create"
	whyWake    = "wake"
	whyRestart = "restart"
	whyReset   = "reset"
)

// Cluster is one learner's cluster through all states of its life. All methods
// are safe for concurrent use; none but Instance waits for anything.
type Cluster struct {
	m    *Manager
	id   string
	spec lab.ClusterSpec

	// The rest is guarded by m.mu.

	state   lab.State
	why     string
	since   time.Time
	stages  []lab.Stage
	problem *lab.Error
	changes chan struct{}

	inst        Instance // while ready
	stopWatch   context.CancelFunc
	op          *operation // what the driver does with it now
	deletion    *deletion
	deleteFails int
	next        work   // what it waits to start
	seq         uint64 // its turn among those that wait
	place       int    // in the queue, from 1
	slot        bool   // it counts as running
	pooled      bool   // no learner has it yet
	hasData     bool   // it was ready once: waking brings it back
	touched     time.Time
	warned      bool
	crashes     []time.Time // the recent ones
	restartAt   time.Time   // the wait before a restart
}

func newID() string { return "c-" + strings.ToLower(rand.Text()[:12]) }

// newCluster adds a cluster, whose life begins with enqueue or an adoption.
func (m *Manager) newCluster(id string, spec lab.ClusterSpec) *Cluster {
	now := m.clock.Now()
	c := &Cluster{m: m, id: id, spec: spec, state: lab.StateQueued, why: whyCreate, since: now, touched: now, changes: make(chan struct{})}
	m.clusters[id] = c
	return c
}

// ID is the cluster's final name.
func (c *Cluster) ID() string { return c.id }

// Spec is the cluster's shape.
func (c *Cluster) Spec() lab.ClusterSpec { return c.spec }

// Status tells where the cluster is in its life.
func (c *Cluster) Status() lab.Status {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	s := lab.Status{State: c.state, Why: c.why, Since: c.since, Stages: slices.Clone(c.stages), SleepsAt: c.sleepsAt()}
	if c.state == lab.StateQueued {
		s.Queue = c.place
	}
	if c.state == lab.StateFailed && c.problem != nil {
		text := c.problem.Text
		s.Problem = &text
	}
	now := c.m.clock.Now()
	for i := range s.Stages {
		if st := &s.Stages[i]; !st.Done {
			st.Millis = max(0, now.Sub(st.Started).Milliseconds())
			if s.Stage == "" { // some stages run side by side
				s.Stage = st.Name
			}
		}
	}
	return s
}

// sleepsAt is when it will be put to sleep; zero when it won't.
func (c *Cluster) sleepsAt() time.Time {
	if c.state != lab.StateReady || c.pooled || c.m.cfg.Idle <= 0 || c.m.sleeper == nil {
		return time.Time{}
	}
	return c.touched.Add(c.m.cfg.Idle)
}

// SleepsSoon reports that Status().SleepsAt is nearer than Config.WarnBefore.
func (c *Cluster) SleepsSoon() bool {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.warned && c.state == lab.StateReady
}

// Changes is closed at the next change of Status. Get the channel, read Status, then wait.
// Activity alone moves SleepsAt without closing it, unless a warning is taken back.
func (c *Cluster) Changes() <-chan struct{} {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.changes
}

// Instance waits until the cluster is ready and returns its running instance;
// a sleeping one is woken. When it failed or was deleted the error is a
// *lab.Error with the reason for people. After a crash or a sleep ask again.
func (c *Cluster) Instance(ctx context.Context) (Instance, error) {
	for {
		inst, changes, err := c.look()
		if inst != nil || err != nil {
			return inst, err
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return nil, unavailable(ctx.Err())
		}
	}
}

// Running returns the instance of a ready cluster; it neither waits nor wakes.
func (c *Cluster) Running() (Instance, bool) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.inst, c.inst != nil && c.state == lab.StateReady
}

// look is one look of Instance: the instance, or what to wait for, or why not.
func (c *Cluster) look() (Instance, <-chan struct{}, error) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	switch {
	case c.state == lab.StateReady && c.inst != nil:
		return c.inst, nil, nil
	case c.state == lab.StateEnded:
		return nil, nil, gone()
	case c.state == lab.StateFailed:
		return nil, nil, c.problem
	case !c.m.running:
		return nil, nil, closed()
	case c.state == lab.StateAsleep:
		c.wake(whyWake)
	}
	return nil, c.changes, nil
}

// Touch notes activity of the learner: the idle time starts anew. It wakes nothing.
func (c *Cluster) Touch() {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.touched = c.m.clock.Now()
	if c.warned {
		c.warned = false
		c.fire()
		c.m.changed()
	}
}

// Wake starts a sleeping cluster in the background; in other states it does nothing.
func (c *Cluster) Wake() {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.state == lab.StateAsleep && c.m.running {
		c.wake(whyWake)
	}
}

// Retry starts a failed cluster anew in the background; in other states it does nothing.
func (c *Cluster) Retry() {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.state != lab.StateFailed || !c.m.running {
		return
	}
	c.crashes = nil
	if c.hasData {
		c.wake(c.why)
		return
	}
	c.m.enqueue(c, workCreate)
	c.m.changed()
}

// wake lets a cluster that has data wait for its start.
func (c *Cluster) wake(why string) {
	c.why = why
	c.m.enqueue(c, workWake)
	c.m.changed()
}

// setState enters a state.
func (c *Cluster) setState(s lab.State) {
	if c.state != s {
		c.state, c.since = s, c.m.clock.Now()
	}
	c.warned = false
	c.fire()
}

// fire tells everybody who waits on Changes.
func (c *Cluster) fire() {
	close(c.changes)
	c.changes = make(chan struct{})
}
