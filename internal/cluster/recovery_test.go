package cluster_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/clustertest"
	"kubistro/internal/lab"
)

// killServer ends a Manager as kill -9 does: the driver never hears of it. The
// result starts the next server on the same machine.
func killServer(t *testing.T, f *fixture) func(known ...string) *fixture {
	t.Helper()
	f.kill()
	f.close()
	driver, old := f.driver, f.cfg
	return func(known ...string) *fixture {
		s := newScript()
		return startFixture(t, s, driver.RestartWith(s.hook), known, func(c *cluster.Config) {
			c.Dir, c.Warm, c.Max = old.Dir, old.Warm, old.Max
		})
	}
}

func TestRecoveryAfterTheServerWasKilled(t *testing.T) {
	dir := t.TempDir()
	f := newFixture(t, warm(1), func(c *cluster.Config) { c.Dir = dir })
	running, asleep, stray := f.ready(), f.ready(), f.ready()
	f.clock.Step(f.cfg.Idle / 2)
	running.Touch()
	stray.Touch()
	f.clock.Step(f.cfg.Idle / 2)
	f.await(asleep, lab.StateAsleep)
	f.eventually("fell asleep", func() bool { return len(f.driver.Running()) == 3 })
	f.awaitPool(1)
	if err := os.WriteFile(filepath.Join(dir, "pool", "c-of-long-ago"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pooled := slices.DeleteFunc(f.driver.Running(), func(id string) bool { return id == running.ID() || id == stray.ID() })[0]

	f = killServer(t, f)(running.ID(), asleep.ID(), "c-vanished")
	r, err := f.m.Open(t.Context(), running.ID(), running.Spec())
	if err != nil {
		t.Fatal(err)
	}
	f.await(r, lab.StateReady)
	a, err := f.m.Open(t.Context(), asleep.ID(), asleep.Spec())
	if err != nil {
		t.Fatal(err)
	}
	if s := a.Status(); s.State != lab.StateAsleep {
		t.Errorf("status = %+v", s)
	}
	if d := cmp.Diff(asleep.Spec(), a.Spec()); d != "" {
		t.Error(d)
	}
	for _, id := range []string{"c-vanished", stray.ID(), pooled} {
		_, err := f.m.Open(t.Context(), id, lab.DefaultClusterSpec())
		wantCode(t, err, lab.CodeNotFound)
	}
	f.eventually("stray is away", func() bool { return !slices.Contains(f.driver.Kept(), stray.ID()) })
	if c := f.ready(); c.ID() != pooled {
		t.Errorf("claimed %s, want %s of the former pool", c.ID(), pooled)
	}
	a.Wake()
	f.await(a, lab.StateReady)
	if _, err := os.Stat(filepath.Join(dir, "pool", "c-of-long-ago")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stale note: %v", err)
	}
	if n := f.count(clustertest.CallAdopt); n != 2 {
		t.Errorf("%d adoptions, want 2", n)
	}
}

func TestAUsedPoolClusterIsNeverGivenAgain(t *testing.T) {
	dir := t.TempDir()
	f := newFixture(t, warm(1), func(c *cluster.Config) { c.Dir = dir })
	f.awaitPool(1)
	used := f.claim() // and the server dies before anybody wrote down whose it is
	f = killServer(t, f)()
	f.eventually("used one is away", func() bool { return !slices.Contains(f.driver.Kept(), used.ID()) })
	if c := f.ready(); c.ID() == used.ID() {
		t.Error("a cluster was given to a second learner")
	}
}

func TestAdoptionThatFailsRestarts(t *testing.T) {
	f := newFixture(t)
	c := f.ready()
	f.kill()
	f.close()
	s := newScript()
	release := s.hold(clustertest.CallAdopt) // it is listed as running, and gone when adopted
	defer release()
	f = startFixture(t, s, f.driver.RestartWith(s.hook), []string{c.ID()})
	c, err := f.m.Open(t.Context(), c.ID(), c.Spec())
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Status(); s.State != lab.StateProvisioning || s.Why != "restart" {
		t.Errorf("status = %+v", s)
	}
	crash(t, f, c)
	release()
	f.await(c, lab.StateReady)
	if n := f.count(clustertest.CallWake); n != 1 {
		t.Errorf("%d wakes, want 1", n)
	}
}

func TestStartFailsWhenClustersCantBeListed(t *testing.T) {
	s := newScript()
	boom := errors.New("permission denied")
	s.failWith(clustertest.CallList, boom)
	m := cluster.NewManager(cluster.Config{Driver: clustertest.NewMemory(s.hook)})
	if err := m.Start(t.Context(), nil); !errors.Is(err, boom) {
		t.Errorf("error = %v", err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
