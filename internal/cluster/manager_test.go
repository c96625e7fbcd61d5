package cluster_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/clustertest"
	"kubistro/internal/lab"
)

func wantCode(t *testing.T, err error, code lab.Code) {
	t.Helper()
	var e *lab.Error
	if !errors.As(err, &e) || e.Code != code || len(e.Text.Missing()) > 0 {
		t.Errorf("error = %v, want code %s with a text", err, code)
	}
}

func TestStagesAreReported(t *testing.T) {
	f := newFixture(t)
	release := f.hold(clustertest.CallCreate)
	defer release()
	c := f.claim()
	s := f.awaitThat(c, "in stage etcd", func(s lab.Status) bool { return s.Stage == "etcd" })
	if s.State != lab.StateProvisioning || s.Why != "create" || len(s.Stages) != 1 {
		t.Errorf("status = %+v", s)
	}
	release()
	s = f.await(c, lab.StateReady)
	if len(s.Stages) != 2 || !s.Stages[0].Done || s.Stage != "" {
		t.Errorf("status = %+v, want all stages done", s)
	}
}

func TestQueueServesTheOldestFirst(t *testing.T) {
	f := newFixture(t, most(2))
	a, b := f.ready(), f.ready()
	c, d := f.claim(), f.claim()
	places := func() []int { return []int{c.Status().Queue, d.Status().Queue} }
	if s := c.Status(); s.State != lab.StateQueued || !cmp.Equal(places(), []int{1, 2}) {
		t.Errorf("status = %+v, places %v", s, places())
	}
	if err := f.m.Delete(t.Context(), a.ID()); err != nil {
		t.Fatal(err)
	}
	f.await(c, lab.StateReady)
	if !cmp.Equal(places(), []int{0, 1}) || d.Status().State != lab.StateQueued {
		t.Errorf("places %v, second is %s", places(), d.Status().State)
	}
	if err := f.m.Delete(t.Context(), b.ID()); err != nil {
		t.Fatal(err)
	}
	f.await(d, lab.StateReady)
	if n := len(f.driver.Running()); n != 2 {
		t.Errorf("%d run, want 2", n)
	}
}

func TestIdleClustersMakeRoomForTheQueue(t *testing.T) {
	f := newFixture(t, most(2), func(c *cluster.Config) { c.RoomAfter = 5 * time.Minute })
	a, b := f.ready(), f.ready()
	f.clock.Step(4 * time.Minute)
	a.Touch()
	c := f.claim()
	if s := c.Status(); s.State != lab.StateQueued {
		t.Errorf("status = %+v: b isn't idle for long enough", s)
	}
	f.clock.Step(time.Minute)
	f.await(c, lab.StateReady)
	if a.Status().State != lab.StateReady || b.Status().State != lab.StateAsleep {
		t.Errorf("a is %s, b is %s; want the one idle for longest asleep", a.Status().State, b.Status().State)
	}
}

func TestPoolMakesRoomForAWake(t *testing.T) {
	f := newFixture(t, most(1))
	a := f.ready()
	f.clock.Step(f.cfg.Idle)
	f.await(a, lab.StateAsleep)
	f.close()
	// The same machine with a pool that takes the only place.
	f = startFixture(t, f.script, f.driver.Restart(), []string{a.ID()}, most(1), warm(1))
	f.awaitPool(1)
	a, err := f.m.Open(t.Context(), a.ID(), lab.DefaultClusterSpec())
	if err != nil {
		t.Fatal(err)
	}
	a.Wake()
	f.await(a, lab.StateReady)
	if got := f.driver.Running(); !cmp.Equal(got, []string{a.ID()}) {
		t.Errorf("running = %v", got)
	}
}

func TestSleepAfterIdleWithAWarning(t *testing.T) {
	f := newFixture(t)
	c := f.ready()
	changes := c.Changes()
	f.clock.Step(28*time.Minute - time.Second)
	if c.SleepsSoon() {
		t.Error("warned too early")
	}
	f.clock.Step(time.Second)
	<-changes
	if s := c.Status(); !c.SleepsSoon() || s.State != lab.StateReady || s.SleepsAt.Sub(f.clock.Now()) != 2*time.Minute {
		t.Errorf("status = %+v, want a warning", s)
	}

	changes = c.Changes()
	c.Touch()
	<-changes // the warning is taken back
	if c.SleepsSoon() {
		t.Error("still warned after activity")
	}
	f.clock.Step(29 * time.Minute)
	f.awaitThat(c, "warned", func(lab.Status) bool { return c.SleepsSoon() })
	f.clock.Step(time.Minute)
	s := f.await(c, lab.StateAsleep)
	if !s.SleepsAt.IsZero() {
		t.Errorf("status = %+v", s)
	}
	f.eventually("process has ended", func() bool { return len(f.driver.Running()) == 0 })
	if inst, ok := c.Running(); ok || inst != nil {
		t.Errorf("running = %v, %v", inst, ok)
	}
	c.Touch() // wakes nothing
	if s := c.Status(); s.State != lab.StateAsleep {
		t.Errorf("status = %+v after Touch", s)
	}

	release := f.hold(clustertest.CallWake)
	defer release()
	c.Wake()
	s = f.awaitThat(c, "in stage etcd", func(s lab.Status) bool { return s.Stage == "etcd" })
	if s.State != lab.StateProvisioning || s.Why != "wake" {
		t.Errorf("status = %+v", s)
	}
	release()
	if s := f.await(c, lab.StateReady); !s.SleepsAt.Equal(f.clock.Now().Add(f.cfg.Idle)) {
		t.Errorf("status = %+v, want a new idle time", s)
	}
	if got := f.metric("kubistro_cluster_wakes_total", ""); got != 1 {
		t.Errorf("wakes = %v", got)
	}
}

func TestWakeWhileFallingAsleep(t *testing.T) {
	f := newFixture(t, most(1))
	c := f.ready()
	before, err := c.Instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release := f.hold(clustertest.CallSleep)
	defer release()
	f.clock.Step(f.cfg.Idle)
	f.await(c, lab.StateAsleep)
	c.Wake()
	if s := c.Status(); s.State != lab.StateQueued || f.count(clustertest.CallWake) != 0 {
		t.Errorf("status = %+v, %d wakes while the sleep goes on", s, f.count(clustertest.CallWake))
	}
	release()
	after, err := c.Instance(t.Context())
	if err != nil || after == before {
		t.Errorf("instance = %v, %v, before %v", after, err, before)
	}
}

func TestInstanceWakesAndGivesUpWithItsContext(t *testing.T) {
	f := newFixture(t)
	c := f.ready()
	f.clock.Step(f.cfg.Idle)
	f.await(c, lab.StateAsleep)
	release := f.hold(clustertest.CallWake)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Instance(ctx)
	wantCode(t, err, lab.CodeUnavailable)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	release()
	if _, err := c.Instance(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFailedCreateCanBeTriedAgain(t *testing.T) {
	f := newFixture(t)
	why := lab.Fail(lab.CodeUnavailable, "磁碟滿了", "The disk is full")
	f.failWith(clustertest.CallCreate, why)
	c := f.claim()
	s := f.await(c, lab.StateFailed)
	if s.Problem == nil || *s.Problem != why.Text {
		t.Errorf("status = %+v, want the driver's reason", s)
	}
	if _, err := c.Instance(t.Context()); !errors.Is(err, why) {
		t.Errorf("error = %v, want the driver's", err)
	}
	if got := f.driver.Kept(); len(got) != 0 {
		t.Errorf("kept = %v", got)
	}
	c.Wake() // isn't for this
	if s := c.Status(); s.State != lab.StateFailed {
		t.Errorf("status = %+v", s)
	}
	f.failWith(clustertest.CallCreate, nil)
	c.Retry()
	if s := f.await(c, lab.StateReady); s.Problem != nil {
		t.Errorf("status = %+v", s)
	}
}

func TestFailureFreesItsPlace(t *testing.T) {
	f := newFixture(t, most(1))
	release := f.hold(clustertest.CallCreate)
	defer release()
	f.failWith(clustertest.CallCreate, errors.New("boom"))
	a := f.claim()
	f.eventually("a has begun", func() bool { return f.count(clustertest.CallCreate) == 1 })
	b := f.claim()
	if s := b.Status(); s.State != lab.StateQueued {
		t.Errorf("status = %+v", s)
	}
	f.failWith(clustertest.CallCreate, nil)
	release() // a has been told to fail already
	f.await(a, lab.StateFailed)
	f.await(b, lab.StateReady)
}

func TestDeleteInEveryState(t *testing.T) {
	for _, tc := range []struct {
		name  string
		reach func(f *fixture) *cluster.Cluster
	}{
		{"ready", (*fixture).ready},
		{"provisioning", func(f *fixture) *cluster.Cluster {
			f.t.Cleanup(f.hold(clustertest.CallCreate))
			c := f.claim()
			f.eventually("create has begun", func() bool { return f.count(clustertest.CallCreate) == 1 })
			return c
		}},
		{"queued", func(f *fixture) *cluster.Cluster {
			f.ready()
			return f.claim()
		}},
		{"asleep", func(f *fixture) *cluster.Cluster {
			c := f.ready()
			f.clock.Step(f.cfg.Idle)
			f.await(c, lab.StateAsleep)
			return c
		}},
		{"falling asleep", func(f *fixture) *cluster.Cluster {
			c := f.ready()
			f.t.Cleanup(f.hold(clustertest.CallSleep))
			f.clock.Step(f.cfg.Idle)
			f.await(c, lab.StateAsleep)
			return c
		}},
		{"failed", func(f *fixture) *cluster.Cluster {
			f.failWith(clustertest.CallCreate, errors.New("boom"))
			c := f.claim()
			f.await(c, lab.StateFailed)
			return c
		}},
		{"between restarts", func(f *fixture) *cluster.Cluster {
			c := f.ready()
			f.failWith(clustertest.CallWake, errors.New("boom"))
			f.driver.Crash(c.ID())
			f.eventually("restart failed", func() bool { return f.metric("kubistro_cluster_crashes_total", "") == 2 })
			return c
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, most(1))
			c := tc.reach(f)
			if err := f.m.Delete(t.Context(), c.ID()); err != nil {
				t.Fatal(err)
			}
			f.await(c, lab.StateEnded)
			for _, id := range f.driver.Kept() {
				if id == c.ID() {
					t.Error("it is still there")
				}
			}
			_, err := c.Instance(t.Context())
			wantCode(t, err, lab.CodeNotFound)
			_, err = f.m.Open(t.Context(), c.ID(), c.Spec())
			wantCode(t, err, lab.CodeNotFound)
			if err := f.m.Delete(t.Context(), c.ID()); err != nil {
				t.Errorf("second delete: %v", err)
			}
			c.Wake()
			c.Retry()
			c.Touch()
			if s := c.Status(); s.State != lab.StateEnded {
				t.Errorf("status = %+v", s)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	f := newFixture(t, most(1))
	old := f.ready()
	c, err := f.m.Replace(t.Context(), old.ID(), old.Spec())
	if err != nil {
		t.Fatal(err)
	}
	if s := f.await(c, lab.StateReady); s.Why != "reset" {
		t.Errorf("status = %+v", s)
	}
	f.await(old, lab.StateEnded)
	if got := f.driver.Kept(); !cmp.Equal(got, []string{c.ID()}) {
		t.Errorf("kept = %v", got)
	}
}

func TestCloseKeepsLearnersAndDropsThePool(t *testing.T) {
	f := newFixture(t, warm(1))
	c := f.ready()
	f.awaitPool(1)
	release := f.hold(clustertest.CallCreate)
	defer release()
	starting, err := f.m.Claim(t.Context(), lab.ClusterSpec{})
	if err != nil {
		t.Fatal(err)
	}
	f.close()
	if got := f.driver.Running(); len(got) != 0 {
		t.Errorf("running = %v", got)
	}
	if got := f.driver.Kept(); !cmp.Equal(got, []string{c.ID()}) {
		t.Errorf("kept = %v, want the learner's", got)
	}
	for _, x := range []*cluster.Cluster{c, starting} {
		_, err := x.Instance(t.Context())
		wantCode(t, err, lab.CodeUnavailable)
	}
	_, err = f.m.Claim(t.Context(), c.Spec())
	wantCode(t, err, lab.CodeUnavailable)
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	f := newFixture(t)
	c := f.ready()
	release := f.hold(clustertest.CallSleep)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.m.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	release()
	if got := f.driver.Running(); !cmp.Equal(got, []string{c.ID()}) {
		t.Errorf("running = %v, want it left as it was", got)
	}
}

func TestFailedDeletionIsTriedAgain(t *testing.T) {
	f := newFixture(t, most(1))
	c := f.ready()
	f.failWith(clustertest.CallDelete, errors.New("boom"))
	if err := f.m.Delete(t.Context(), c.ID()); err == nil {
		t.Fatal("the failure isn't told")
	}
	f.failWith(clustertest.CallDelete, nil)
	f.eventually("it is deleted after all", func() bool {
		f.clock.Step(5 * time.Second)
		return !slices.Contains(f.driver.Kept(), c.ID())
	})
}
