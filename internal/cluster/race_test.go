package cluster_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/clustertest"
	"kubistro/internal/lab"
)

// TestManyAtOnce lets learners do all that they can at the same time, on a
// driver that is slow, fails and crashes, and looks at the rules that must always hold.
func TestManyAtOnce(t *testing.T) {
	const places, learners, steps = 5, 12, 60
	driver := &hostile{limit: places, t: t, running: map[string]bool{}}
	driver.Memory = clustertest.NewMemory(driver.act)
	t.Cleanup(driver.Close)
	m := cluster.NewManager(cluster.Config{Driver: driver.Memory, Dir: t.TempDir(), Spec: lab.DefaultClusterSpec(), Warm: 2, Max: places,
		Starts: 3, Idle: 20 * time.Millisecond, WarnBefore: 5 * time.Millisecond, RoomAfter: 5 * time.Millisecond})
	if err := m.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var owners sync.Map
	var wg sync.WaitGroup
	for range learners {
		wg.Go(func() { learn(t, m, driver.Memory, &owners, steps) })
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		t.Error(err)
	}
	if got := driver.Running(); len(got) != 0 {
		t.Errorf("running after Close: %v", got)
	}
}

// learn is one learner who claims, works, waits and deletes at random.
func learn(t *testing.T, m *cluster.Manager, d *clustertest.Memory, owners *sync.Map, steps int) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	var c *cluster.Cluster
	for range steps {
		if c == nil {
			var err error
			if c, err = m.Claim(ctx, lab.DefaultClusterSpec()); err != nil {
				t.Error(err)
				return
			}
			if _, taken := owners.LoadOrStore(c.ID(), true); taken {
				t.Errorf("cluster %s was given twice", c.ID())
			}
		}
		switch rand.IntN(8) {
		case 0:
			if err := m.Delete(ctx, c.ID()); err == nil {
				c = nil
			}
		case 1:
			d.Crash(c.ID())
		case 2:
			c.Touch()
			c.Wake()
		case 3:
			c.Retry()
		default:
			waitAndLook(t, ctx, c)
		}
	}
}

// waitAndLook waits for the instance; failures must have a reason for people.
func waitAndLook(t *testing.T, ctx context.Context, c *cluster.Cluster) {
	inst, err := c.Instance(ctx)
	if err != nil {
		var e *lab.Error
		if !errors.As(err, &e) || len(e.Text.Missing()) > 0 || ctx.Err() != nil {
			t.Errorf("instance of %s: %v (%+v)", c.ID(), err, c.Status())
		}
		return
	}
	if inst.ID() != c.ID() {
		t.Errorf("instance %s of cluster %s", inst.ID(), c.ID())
	}
	c.Touch()
}

// hostile is a slow driver that fails at times, and counts.
type hostile struct {
	*clustertest.Memory
	t       *testing.T
	limit   int
	mu      sync.Mutex
	running map[string]bool // as the Manager must think
}

func (h *hostile) act(ctx context.Context, call, id string) error {
	select { // the time that things take
	case <-time.After(time.Duration(rand.IntN(3)) * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	fails := rand.IntN(6) == 0
	switch call {
	case clustertest.CallCreate, clustertest.CallWake:
		if h.running[id] && call == clustertest.CallCreate {
			h.t.Errorf("cluster %s is created twice", id)
		}
		if n := len(h.Running()); n >= h.limit {
			h.t.Errorf("%d clusters run when another starts, %d may", n, h.limit)
		}
		if fails {
			return errors.New("bad luck")
		}
		h.running[id] = true
	case clustertest.CallDelete:
		delete(h.running, id)
	}
	return nil
}
