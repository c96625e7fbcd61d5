package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kubistro/internal/lab"
)

// work is something slow that the driver does with a cluster.
type work int

const (
	workNone work = iota
	workCreate
	workWake
	workAdopt
	workSleep
)

// starts reports that the work costs what a start costs.
func (w work) starts() bool { return w == workCreate || w == workWake }

// operation is a work that runs.
type operation struct {
	kind   work
	cancel context.CancelFunc
	done   chan struct{} // closed when its result is in the cluster's state
}

// deletion is the end of a cluster.
type deletion struct {
	done chan struct{}
	err  error // good after done
}

// beginStart starts a cluster in the background: creates, wakes or adopts it.
func (m *Manager) beginStart(c *Cluster, w work) {
	ctx, cancel := context.WithCancel(m.starts)
	op := &operation{kind: w, cancel: cancel, done: make(chan struct{})}
	c.op, c.next, c.slot, c.stages, c.place = op, workNone, true, nil, 0
	c.setState(lab.StateProvisioning)
	begun := m.clock.Now()
	m.work.Go(func() {
		defer close(op.done)
		defer cancel()
		inst, err := m.start(ctx, c, op)
		if err == nil {
			m.metrics.started(op.kind, m.clock.Since(begun))
		}
		m.startEnded(c, inst, err)
	})
}

func (m *Manager) start(ctx context.Context, c *Cluster, op *operation) (Instance, error) {
	progress := func(s lab.Stage) { m.progress(c, op, s) }
	switch op.kind {
	case workAdopt:
		return m.adopter.Adopt(ctx, c.id)
	case workWake:
		return m.sleeper.Wake(ctx, c.id, progress)
	default:
		if m.sleeper == nil { // what is left of a crashed one can't be woken
			if err := m.cfg.Driver.Delete(ctx, c.id); err != nil {
				return nil, fmt.Errorf("delete remains: %w", err)
			}
		}
		return m.cfg.Driver.Create(ctx, c.id, c.spec, progress)
	}
}

// progress notes a stage of the start that op is.
func (m *Manager) progress(c *Cluster, op *operation, s lab.Stage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.op != op || c.state != lab.StateProvisioning {
		return
	}
	for i := range c.stages {
		if c.stages[i].Name == s.Name {
			if c.stages[i] != s {
				c.stages[i] = s
				c.fire()
			}
			return
		}
	}
	c.stages = append(c.stages, s)
	c.fire()
}

// startEnded takes the result of a start.
func (m *Manager) startEnded(c *Cluster, inst Instance, err error) {
	m.mu.Lock()
	note := err == nil && c.pooled
	m.mu.Unlock()
	if note {
		// Before anybody can claim it, so that a claim finds the note to remove.
		if err := m.notes.add(c.id); err != nil {
			m.log.Warn("pool cluster won't outlive the server", "cluster", c.id, "err", err)
		}
	}
	m.mu.Lock()
	kind := c.op.kind
	c.op = nil
	switch {
	case c.state == lab.StateEnded: // its deletion waits for this moment
	case err == nil:
		m.becomeReady(c, inst)
	case m.starts.Err() != nil: // Close has cancelled it
		c.slot = false
		if c.pooled {
			delete(m.clusters, c.id)
		} else if c.hasData {
			c.setState(lab.StateAsleep)
		}
	default:
		m.startFailed(c, kind, err)
	}
	claimed := note && !c.pooled
	m.changed()
	m.mu.Unlock()
	if claimed {
		if err := m.notes.remove(c.id); err != nil {
			m.log.Error("pool cluster can't be marked as used; deleting it", "cluster", c.id, "err", err)
			m.deleteBehind(c)
		}
	}
}

func (m *Manager) becomeReady(c *Cluster, inst Instance) {
	c.inst, c.hasData, c.touched = inst, true, m.clock.Now()
	if c.pooled {
		m.poolFails, m.poolRetryAt = 0, c.touched
	}
	for i := range c.stages {
		c.stages[i].Done = true
	}
	c.setState(lab.StateReady)
	m.watch(c, inst)
	if !m.running {
		m.endForClose(c)
	}
}

// startFailed decides what a failed start leads to.
func (m *Manager) startFailed(c *Cluster, kind work, err error) {
	m.log.Error("cluster can't start", "cluster", c.id, "why", c.why, "pool", c.pooled, "err", err)
	m.metrics.failures.Inc()
	switch {
	case c.pooled:
		m.poolStartFailed(c)
	case kind == workAdopt || c.why == whyRestart:
		m.crashed(c, lab.AsError(err))
	default:
		m.fail(c, lab.AsError(err))
	}
}

// fail gives a cluster up until somebody calls Retry.
func (m *Manager) fail(c *Cluster, problem *lab.Error) {
	c.slot, c.next, c.problem = false, workNone, problem
	c.setState(lab.StateFailed)
}

// beginSleep puts a ready cluster to sleep in the background.
func (m *Manager) beginSleep(c *Cluster) {
	ctx, cancel := context.WithCancel(m.ends)
	op := &operation{kind: workSleep, cancel: cancel, done: make(chan struct{})}
	c.op, c.inst = op, nil
	c.stopWatch()
	c.setState(lab.StateAsleep)
	m.work.Go(func() {
		defer close(op.done)
		defer cancel()
		if err := m.sleep(ctx, c.id); err != nil && !errors.Is(err, context.Canceled) {
			// Waking it ends whatever may be left of it.
			m.log.Error("cluster doesn't fall asleep", "cluster", c.id, "err", err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		c.op, c.slot = nil, c.deletion != nil
		m.changed()
	})
}

func (m *Manager) sleep(ctx context.Context, id string) error {
	select {
	case m.sleeps <- struct{}{}:
		defer func() { <-m.sleeps }()
		return m.sleeper.Sleep(ctx, id)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deleteLater tries a failed deletion again, after a while that grows.
func (m *Manager) deleteLater(c *Cluster) {
	wait := min(5*time.Second<<min(c.deleteFails, 10), 5*time.Minute)
	c.deleteFails++
	m.work.Go(func() {
		t := m.clock.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C():
		case <-m.starts.Done(): // the next server's start clears it away
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.running && m.clusters[c.id] == c {
			m.beginDelete(c)
			m.changed()
		}
	})
}

// beginDelete ends a cluster in the background, once.
func (m *Manager) beginDelete(c *Cluster) *deletion {
	if c.deletion != nil {
		return c.deletion
	}
	d := &deletion{done: make(chan struct{})}
	before := c.op
	c.deletion, c.next, c.inst, c.pooled = d, workNone, nil, false
	if c.stopWatch != nil {
		c.stopWatch()
	}
	if before != nil {
		before.cancel()
	}
	c.setState(lab.StateEnded)
	m.work.Go(func() {
		defer close(d.done)
		if before != nil {
			<-before.done
		}
		d.err = m.cfg.Driver.Delete(m.ends, c.id)
		if d.err != nil {
			m.log.Error("cluster can't be deleted", "cluster", c.id, "err", d.err)
			d.err = fmt.Errorf("delete cluster %s: %w", c.id, d.err)
		} else if err := m.notes.remove(c.id); err != nil {
			m.log.Warn("note of a pool cluster stays", "cluster", c.id, "err", err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		c.slot = false
		if d.err == nil {
			delete(m.clusters, c.id)
		} else {
			c.deletion = nil // Delete may be called again
			m.deleteLater(c)
		}
		m.changed()
	})
	return d
}
