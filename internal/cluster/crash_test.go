package cluster_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/clustertest"
	"kubistro/internal/lab"
)

func crash(t *testing.T, f *fixture, c *cluster.Cluster) {
	t.Helper()
	if !f.driver.Crash(c.ID()) {
		t.Fatalf("cluster %s doesn't run", c.ID())
	}
}

func TestCrashIsRestartedWithItsObjects(t *testing.T) {
	f := newFixture(t)
	c := f.ready()
	inst, err := c.Instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release := f.hold(clustertest.CallWake)
	defer release()
	crash(t, f, c)
	s := f.await(c, lab.StateProvisioning)
	if s.Why != "restart" {
		t.Errorf("status = %+v", s)
	}
	release()
	f.await(c, lab.StateReady)
	again, err := c.Instance(t.Context())
	if err != nil || again == inst {
		t.Fatalf("instance = %v, %v", again, err)
	}
	api, err := kubernetes.NewForConfig(again.REST())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.CoreV1().Nodes().Get(t.Context(), "kitchen-1", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if got := f.metric("kubistro_cluster_crashes_total", ""); got != 1 {
		t.Errorf("crashes = %v", got)
	}
}

func TestCrashesInARowFailUntilRetried(t *testing.T) {
	f := newFixture(t)
	c := f.ready()
	crash(t, f, c)
	f.eventually("restarted at once", func() bool { return f.metric("kubistro_cluster_wakes_total", "") == 1 })
	f.await(c, lab.StateReady)

	crash(t, f, c)
	f.eventually("crash was noticed", func() bool { return f.metric("kubistro_cluster_crashes_total", "") == 2 })
	if s := c.Status(); s.State != lab.StateProvisioning || f.count(clustertest.CallWake) != 1 {
		t.Errorf("status = %+v, want a wait before the second restart", s)
	}
	f.clock.Step(2 * time.Second)
	f.await(c, lab.StateReady)

	crash(t, f, c)
	s := f.await(c, lab.StateFailed)
	if s.Problem == nil || len(s.Problem.Missing()) > 0 {
		t.Errorf("status = %+v, want a reason", s)
	}
	_, err := c.Instance(t.Context())
	wantCode(t, err, lab.CodeUnavailable)

	c.Retry()
	f.await(c, lab.StateReady)
	crash(t, f, c) // the count starts anew
	f.eventually("restarted", func() bool { return f.metric("kubistro_cluster_wakes_total", "") == 4 })
	f.await(c, lab.StateReady)
}

func TestCrashesFarApartDontCount(t *testing.T) {
	f := newFixture(t, func(c *cluster.Config) { c.Idle = 0 })
	c := f.ready()
	for i := range 5 {
		crash(t, f, c)
		f.eventually("restarted", func() bool { return f.metric("kubistro_cluster_wakes_total", "") == float64(i+1) })
		f.await(c, lab.StateReady)
		f.clock.Step(6 * time.Minute)
	}
}

func TestRestartThatFailsIsTriedAgain(t *testing.T) {
	f := newFixture(t)
	c := f.ready()
	why := lab.Fail(lab.CodeUnavailable, "記憶體不足", "Out of memory")
	f.failWith(clustertest.CallWake, why)
	crash(t, f, c)
	f.eventually("restart failed", func() bool { return f.metric("kubistro_cluster_crashes_total", "") == 2 })
	f.clock.Step(2 * time.Second)
	if s := f.await(c, lab.StateFailed); s.Problem == nil || *s.Problem != why.Text {
		t.Errorf("status = %+v, want the reason of the restart", s)
	}
	f.failWith(clustertest.CallWake, nil)
	c.Retry()
	f.await(c, lab.StateReady)
}

func TestFailedWakeKeepsTheData(t *testing.T) {
	f := newFixture(t)
	c := f.ready()
	f.clock.Step(f.cfg.Idle)
	f.await(c, lab.StateAsleep)
	f.failWith(clustertest.CallWake, errors.New("boom"))
	c.Wake()
	if s := f.await(c, lab.StateFailed); s.Problem == nil || s.Why != "wake" {
		t.Errorf("status = %+v", s)
	}
	f.failWith(clustertest.CallWake, nil)
	c.Retry()
	f.await(c, lab.StateReady)
	if n := f.count(clustertest.CallCreate); n != 1 {
		t.Errorf("%d creates, want the first one only", n)
	}
}

func TestCrashedKeepsItsPlace(t *testing.T) {
	f := newFixture(t, most(1))
	a := f.ready()
	b := f.claim()
	crash(t, f, a)
	f.eventually("restarted", func() bool { return f.metric("kubistro_cluster_wakes_total", "") == 1 })
	f.await(a, lab.StateReady)
	if s := b.Status(); s.State != lab.StateQueued || s.Queue != 1 {
		t.Errorf("status = %+v", s)
	}
}
