package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"kubistro/internal/lab"
)

// Where a claimed cluster came from, for the metrics.
const (
	fromPool     = "pool"
	fromStarting = "starting" // one that was being started for the pool
	fromCold     = "cold"
)

func sameSpec(a, b lab.ClusterSpec) bool { return equality.Semantic.DeepEqual(a, b) }

// takeFromPool takes a cluster of the shape out of the pool: a ready one, else
// the one that has been starting for longest. Nil when none fits.
func (m *Manager) takeFromPool(spec lab.ClusterSpec) *Cluster {
	var best *Cluster
	better := func(c *Cluster) bool {
		ready, bestReady := c.state == lab.StateReady, best.state == lab.StateReady
		if ready != bestReady {
			return ready
		}
		return c.since.Before(best.since)
	}
	for _, c := range m.clusters {
		if c.pooled && sameSpec(c.spec, spec) && (best == nil || better(c)) {
			best = c
		}
	}
	if best != nil {
		best.pooled, best.touched = false, m.clock.Now()
	}
	return best
}

// refill starts clusters for the pool when no learner needs the machine for a start.
func (m *Manager) refill(now time.Time) {
	if now.Before(m.poolRetryAt) {
		return
	}
	used, pooled, starting := 0, 0, 0
	for _, c := range m.clusters {
		if c.slot {
			used++
		}
		if c.pooled {
			pooled++
		}
		if c.next != workNone || c.op != nil && c.op.kind.starts() {
			if !c.pooled {
				return
			}
			starting++
		}
	}
	for ; pooled < m.cfg.Warm && used < m.cfg.Max && starting < max(1, m.cfg.Starts/2); pooled++ {
		c := m.newCluster(newID(), m.cfg.Spec)
		c.pooled = true
		m.beginStart(c, workCreate)
		used++
		starting++
	}
}

// poolStartFailed throws a failed pool cluster away and waits longer each time.
func (m *Manager) poolStartFailed(c *Cluster) {
	m.poolFails++
	m.poolRetryAt = m.clock.Now().Add(min(time.Second<<min(m.poolFails-1, 20), 5*time.Minute))
	m.beginDelete(c)
}

// notes are files that name the unused clusters of the pool. A cluster without
// one is never handed to a learner after a restart: somebody may have used it.
type notes struct{ dir string }

func (n notes) path(id string) string { return filepath.Join(n.dir, "pool", id) }

func (n notes) add(id string) error {
	if n.dir == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(n.dir, "pool"), 0o700); err != nil {
		return fmt.Errorf("note pool cluster: %w", err)
	}
	if err := os.WriteFile(n.path(id), nil, 0o600); err != nil {
		return fmt.Errorf("note pool cluster: %w", err)
	}
	return nil
}

func (n notes) remove(id string) error {
	if n.dir == "" {
		return nil
	}
	if err := os.Remove(n.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove note of pool cluster: %w", err)
	}
	return nil
}

// keepOnly removes the notes of clusters that keep doesn't name.
func (n notes) keepOnly(keep func(id string) bool) error {
	if n.dir == "" {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(n.dir, "pool"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list notes of pool clusters: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !keep(e.Name()) {
			errs = append(errs, n.remove(e.Name()))
		}
	}
	return errors.Join(errs...)
}

func (n notes) has(id string) bool {
	if n.dir == "" {
		return false
	}
	_, err := os.Stat(n.path(id))
	return err == nil
}
