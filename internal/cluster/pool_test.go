package cluster_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/clustertest"
	"kubistro/internal/lab"
)

func warm(n int) func(*cluster.Config) { return func(c *cluster.Config) { c.Warm = n } }
func most(n int) func(*cluster.Config) { return func(c *cluster.Config) { c.Max = n } }

func TestClaimFromPoolIsReadyAtOnce(t *testing.T) {
	f := newFixture(t, warm(1))
	f.awaitPool(1)
	f.clock.Step(time.Hour) // longer than Idle: the pool doesn't sleep
	release := f.hold(clustertest.CallCreate)
	defer release()

	c := f.claim()
	s := c.Status()
	if s.State != lab.StateReady || s.Why != "create" {
		t.Errorf("status = %+v, want ready", s)
	}
	if want := f.clock.Now().Add(f.cfg.Idle); !s.SleepsAt.Equal(want) {
		t.Errorf("sleeps at %v, want %v: time in the pool isn't idle time", s.SleepsAt, want)
	}
	if got := f.metric("kubistro_cluster_claims_total", "pool"); got != 1 {
		t.Errorf("claims from the pool = %v, want 1", got)
	}
	inst, err := c.Instance(t.Context())
	if err != nil || inst.ID() != c.ID() {
		t.Errorf("instance = %v, %v", inst, err)
	}

	release() // the pool fills again behind
	f.awaitPool(1)
	if d := f.claim(); d.ID() == c.ID() || d.Status().State != lab.StateReady {
		t.Errorf("second claim = %s %+v", d.ID(), d.Status())
	}
}

func TestClaimTakesTheOneThatIsStarting(t *testing.T) {
	f := newFixture(t, warm(1))
	release := f.hold(clustertest.CallCreate)
	defer release()
	f.eventually("pool is starting", func() bool {
		return f.metric("kubistro_cluster_pool", "false") == 1 || f.metric("kubistro_cluster_pool", "true") == 1
	})
	if f.metric("kubistro_cluster_pool", "true") == 1 {
		f.claim() // the first one was quicker than hold; the next can't be
		f.eventually("pool is starting", func() bool { return f.metric("kubistro_cluster_pool", "false") == 1 })
	}
	c := f.claim()
	if s := c.Status(); s.State != lab.StateProvisioning || s.Queue != 0 {
		t.Errorf("status = %+v, want provisioning", s)
	}
	release()
	f.await(c, lab.StateReady)
	if got := f.metric("kubistro_cluster_claims_total", "starting"); got != 1 {
		t.Errorf("claims of a starting one = %v, want 1", got)
	}
	f.awaitPool(1)
}

func TestClaimOfAnotherShapeLeavesThePoolAlone(t *testing.T) {
	f := newFixture(t, warm(1))
	f.awaitPool(1)
	spec := lab.ClusterSpec{Kitchens: lab.DefaultClusterSpec().Kitchens[:1]}
	c, err := f.m.Claim(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	f.await(c, lab.StateReady)
	if got := f.metric("kubistro_cluster_pool", "true"); got != 1 || len(c.Spec().Kitchens) != 1 {
		t.Errorf("pool = %v, spec %v", got, c.Spec())
	}
}

func TestPoolWaitsForLearners(t *testing.T) {
	f := newFixture(t, warm(2), func(c *cluster.Config) { c.Starts = 2 })
	f.awaitPool(2)
	f.claim()
	release := f.hold(clustertest.CallCreate)
	defer release()
	f.claim() // the pool is empty now, or its refill was taken
	other, err := f.m.Claim(t.Context(), lab.ClusterSpec{})
	if err != nil {
		t.Fatal(err)
	}
	f.eventually("learner's cluster starts", func() bool { return other.Status().State == lab.StateProvisioning })
	if got := f.metric("kubistro_cluster_pool", "false"); got > 1 {
		t.Errorf("%v pool clusters start beside a learner's, want at most the one that had begun", got)
	}
	release()
	f.await(other, lab.StateReady)
	f.awaitPool(2)
}

func TestPoolBacksOffWhenStartsFail(t *testing.T) {
	f := newFixture(t, func(c *cluster.Config) { c.Warm = 0 })
	f.close()
	s := newScript()
	s.failWith(clustertest.CallCreate, errors.New("no space left on device"))
	f = startFixture(t, s, clustertest.NewMemory(s.hook), nil, warm(1))
	f.eventually("first try", func() bool { return f.metric("kubistro_cluster_start_failures_total", "") == 1 })
	f.eventually("nothing is left", func() bool { return f.metric("kubistro_cluster_pool", "false") == 0 })
	if n := f.count(clustertest.CallCreate); n != 1 {
		t.Errorf("%d tries at once, want 1", n)
	}
	f.clock.Step(time.Second)
	f.eventually("second try", func() bool { return f.metric("kubistro_cluster_start_failures_total", "") == 2 })
	f.clock.Step(time.Second) // not yet: the wait has doubled
	f.failWith(clustertest.CallCreate, nil)
	f.eventually("the failed one is away", func() bool { return f.metric("kubistro_cluster_pool", "false") == 0 })
	f.clock.Step(time.Second)
	f.awaitPool(1)
}

func TestCrashInThePoolIsReplaced(t *testing.T) {
	f := newFixture(t, warm(1))
	f.awaitPool(1)
	first := f.driver.Running()[0]
	f.driver.Crash(first)
	f.eventually("crashed one is away", func() bool { return !slices.Contains(f.driver.Kept(), first) })
	f.clock.Step(time.Second)
	f.awaitPool(1)
	if c := f.claim(); c.ID() == first || c.Status().State != lab.StateReady {
		t.Errorf("claimed %s %+v after %s crashed", c.ID(), c.Status(), first)
	}
}
