package cluster

import (
	"cmp"
	"context"
	"slices"
	"time"

	"kubistro/internal/lab"
)

// enqueue lets a cluster wait for its turn to start.
func (m *Manager) enqueue(c *Cluster, w work) {
	m.lastSeq++
	c.next, c.seq, c.problem, c.stages, c.restartAt = w, m.lastSeq, nil, nil, time.Time{}
	c.setState(lab.StateQueued)
}

// changed lets whatever can start now start, after any change of state.
func (m *Manager) changed() {
	m.schedule(m.clock.Now())
	select {
	case m.kick <- struct{}{}:
	default: // the loop is about to look anyway
	}
}

// loop does what becomes due by time alone.
func (m *Manager) loop(ctx context.Context) {
	for {
		m.mu.Lock()
		now := m.clock.Now()
		m.schedule(now)
		due := m.deadline(now)
		m.mu.Unlock()
		if due.IsZero() {
			select {
			case <-m.kick:
				continue
			case <-ctx.Done():
				return
			}
		}
		t := m.clock.NewTimer(due.Sub(m.clock.Now()))
		if !m.clock.Now().Before(due) { // a fake clock may have been turned in between
			t.Stop()
			continue
		}
		select {
		case <-t.C():
		case <-m.kick:
		case <-ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
	}
}

// schedule does everything that is due at time now.
func (m *Manager) schedule(now time.Time) {
	if !m.running {
		return
	}
	for _, c := range m.clusters {
		m.lookAtIdle(c, now)
	}
	m.startWaiting(now)
	m.makeRoom(now)
	m.refill(now)
	m.numberQueue()
}

// lookAtIdle warns of an idle cluster's sleep, or puts it to sleep.
func (m *Manager) lookAtIdle(c *Cluster, now time.Time) {
	at := c.sleepsAt()
	switch {
	case at.IsZero():
	case !now.Before(at):
		m.log.Info("cluster is idle and goes to sleep", "cluster", c.id)
		m.beginSleep(c)
	case m.cfg.WarnBefore > 0 && !c.warned && !now.Before(at.Add(-m.cfg.WarnBefore)):
		c.warned = true
		c.fire()
	}
}

// waiting lists the clusters that wait to start, the oldest first.
func (m *Manager) waiting() []*Cluster {
	var out []*Cluster
	for _, c := range m.clusters {
		if c.next != workNone && !c.pooled {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *Cluster) int { return cmp.Compare(a.seq, b.seq) })
	return out
}

// startWaiting starts those whose turn it is while there are places.
func (m *Manager) startWaiting(now time.Time) {
	starting, used := 0, 0
	for _, c := range m.clusters {
		if c.slot {
			used++
		}
		if c.op != nil && c.op.kind.starts() && !c.pooled {
			starting++
		}
	}
	full := false
	for _, c := range m.waiting() {
		if c.op != nil || now.Before(c.restartAt) {
			continue // still falling asleep, or between two restarts
		}
		if starting >= m.cfg.Starts {
			return
		}
		// A restart has its place already; the others don't overtake one another.
		if !c.slot {
			if full = full || used >= m.cfg.Max; full {
				continue
			}
			used++
		}
		starting++
		m.beginStart(c, c.next)
	}
}

// makeRoom ends unused and idle clusters as long as others wait for a place.
func (m *Manager) makeRoom(now time.Time) {
	missing := -m.cfg.Max
	var pool, idle []*Cluster
	for _, c := range m.clusters {
		if c.next != workNone && !c.slot {
			missing++
		}
		if c.slot && !c.ending() {
			missing++
		}
		switch {
		case c.pooled && c.state != lab.StateEnded:
			pool = append(pool, c)
		case !c.sleepsAt().IsZero() && now.Sub(c.touched) >= m.cfg.RoomAfter:
			idle = append(idle, c)
		}
	}
	if missing <= 0 || len(m.waiting()) == 0 {
		return
	}
	slices.SortFunc(idle, func(a, b *Cluster) int { return a.touched.Compare(b.touched) })
	for _, c := range pool[:min(missing, len(pool))] {
		m.beginDelete(c)
		missing--
	}
	for _, c := range idle[:min(missing, len(idle))] {
		m.log.Info("idle cluster goes to sleep to make room", "cluster", c.id)
		m.beginSleep(c)
	}
}

// ending reports that its place will be free without more being done.
func (c *Cluster) ending() bool {
	return c.deletion != nil || c.op != nil && c.op.kind == workSleep
}

// numberQueue tells those that wait for a place how many are before them.
func (m *Manager) numberQueue() {
	place := 0
	for _, c := range m.waiting() {
		if c.state != lab.StateQueued {
			continue
		}
		place++
		if c.place != place {
			c.place = place
			c.fire()
		}
	}
}

// deadline is when, after time now, schedule has something to do though nothing
// happens; zero for never.
func (m *Manager) deadline(now time.Time) time.Time {
	var due time.Time
	if !m.running {
		return due
	}
	at := func(t time.Time) {
		if t.After(now) && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	queued := false
	for _, c := range m.clusters {
		queued = queued || c.next != workNone && !c.slot
	}
	for _, c := range m.clusters {
		at(c.restartAt)
		if s := c.sleepsAt(); !s.IsZero() {
			at(s)
			if !c.warned {
				at(s.Add(-m.cfg.WarnBefore))
			}
			if queued {
				at(c.touched.Add(m.cfg.RoomAfter))
			}
		}
	}
	at(m.poolRetryAt)
	return due
}
