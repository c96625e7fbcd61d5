package cluster

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"kubistro/internal/lab"
)

// Start recovers after a restart: clusters in known are adopted where they run
// and kept asleep where they don't; unused clusters of the pool are taken back
// into it; all others are deleted. Then it fills the pool in the background.
// It returns quickly, with an error when the driver can't list its clusters.
func (m *Manager) Start(ctx context.Context, known []string) error {
	found, err := m.cfg.Driver.List(ctx)
	if err != nil {
		return fmt.Errorf("find clusters of a former run: %w", err)
	}
	isKnown := make(map[string]bool, len(known))
	for _, id := range known {
		isKnown[id] = true
	}
	// Nobody else uses the Manager yet, so that files may be looked at under the mutex.
	m.mu.Lock()
	defer m.mu.Unlock()
	var strays []string
	pooled := 0
	for _, f := range found {
		switch {
		case isKnown[f.ID]:
			m.recoverKnown(f)
		case f.Running && m.adopter != nil && pooled < m.cfg.Warm && sameSpec(f.Spec, m.cfg.Spec) && m.notes.has(f.ID):
			pooled++
			c := m.newCluster(f.ID, f.Spec)
			c.pooled = true
			m.beginStart(c, workAdopt)
		default:
			strays = append(strays, f.ID)
		}
	}
	if err := m.notes.keepOnly(func(id string) bool { c := m.clusters[id]; return c != nil && c.pooled }); err != nil {
		m.log.Warn("old notes of pool clusters stay", "err", err)
	}
	m.log.Info("clusters recovered", "known", len(m.clusters)-pooled, "pool", pooled, "strays", len(strays))
	m.work.Go(func() {
		m.deleteStrays(strays)
		m.mu.Lock()
		if m.starts.Err() == nil {
			m.changed()
		}
		m.mu.Unlock()
		m.loop(m.starts)
	})
	m.running = true
	return nil
}

func (m *Manager) recoverKnown(f Found) {
	c := m.newCluster(f.ID, f.Spec)
	c.hasData = true
	if f.Running && m.adopter != nil {
		c.why = whyRestart
		m.beginStart(c, workAdopt)
		return
	}
	c.setState(lab.StateAsleep)
}

// deleteStrays deletes clusters that nobody knows, before the pool needs the memory.
func (m *Manager) deleteStrays(ids []string) {
	var g errgroup.Group
	g.SetLimit(4)
	for _, id := range ids {
		g.Go(func() error {
			m.log.Info("deleting a cluster that belongs to nobody", "cluster", id)
			if err := m.cfg.Driver.Delete(m.ends, id); err != nil {
				m.log.Error("stray cluster can't be deleted", "cluster", id, "err", err)
				return nil // the next start tries again
			}
			if err := m.notes.remove(id); err != nil {
				m.log.Warn("note of a pool cluster stays", "cluster", id, "err", err)
			}
			return nil
		})
	}
	_ = g.Wait() // failures are logged one by one
}
