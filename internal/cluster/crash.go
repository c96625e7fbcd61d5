package cluster

import (
	"context"
	"slices"
	"time"

	"kubistro/internal/lab"
)

// Crashes within crashWindow of each other count together; at the maxCrashes-th
// the cluster is given up until the learner asks for another try.
const (
	maxCrashes  = 3
	crashWindow = 5 * time.Minute
)

// restartDelay is how long to wait before the restart after so many crashes.
func restartDelay(crashes int) time.Duration {
	if crashes <= 1 {
		return 0
	}
	return 2 * time.Second << min(crashes-2, 5)
}

// watch waits in the background for the instance to be lost.
func (m *Manager) watch(c *Cluster, inst Instance) {
	ctx, cancel := context.WithCancel(context.Background())
	c.stopWatch = cancel
	m.work.Go(func() {
		defer cancel()
		select {
		case <-ctx.Done():
			return
		case <-inst.Lost():
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if c.inst != inst || !m.running {
			return
		}
		m.log.Warn("cluster has ended by itself", "cluster", c.id, "pool", c.pooled)
		m.crashed(c, nil)
		m.changed()
	})
}

// crashed restarts a cluster that has ended by itself, or whose restart failed
// with a problem.
func (m *Manager) crashed(c *Cluster, problem *lab.Error) {
	m.metrics.crashes.Inc()
	c.inst = nil
	if c.pooled {
		m.poolStartFailed(c)
		return
	}
	now := m.clock.Now()
	c.crashes = append(slices.DeleteFunc(c.crashes, func(t time.Time) bool { return now.Sub(t) > crashWindow }), now)
	c.why = whyRestart
	switch {
	case m.sleeper == nil:
		c.hasData = false
		m.fail(c, lostForGood())
	case len(c.crashes) >= maxCrashes && problem != nil:
		m.fail(c, problem)
	case len(c.crashes) >= maxCrashes:
		m.fail(c, crashesAgain())
	default:
		// It keeps its place, and its turn comes before those who wait for one.
		c.next, c.seq, c.stages = workWake, 0, nil
		c.restartAt = now.Add(restartDelay(len(c.crashes)))
		c.setState(lab.StateProvisioning)
	}
}
