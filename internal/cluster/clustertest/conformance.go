package clustertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// Setup is what the suite needs of a driver. Each setup has a data folder of its own.
type Setup struct {
	// Open gives the driver. Called again it gives the driver of a restarted server
	// over the same data, while clusters run on; the former one isn't used any more.
	Open func(t *testing.T) cluster.Driver
	// Crash ends a cluster's process from outside, as kill -9 does.
	Crash func(t *testing.T, id string)
	// Remains lists what the machine still has of a cluster: processes, files.
	Remains func(t *testing.T, id string) []string
	// Annex is the kitchen that is added; empty means one of 4 CPUs and 4 GiB. A driver whose nodes are
	// real can't have one that is larger than the machine.
	Annex lab.Kitchen
	// Within is how long each start, and each thing that a cluster does, may take.
	Within time.Duration
}

// Run tests a driver. Subtests for optional abilities run where the driver has them.
func Run(t *testing.T, setup func(t *testing.T) Setup) {
	t.Run("a cluster's life", func(t *testing.T) { testLife(t, setup(t)) })
	t.Run("two at once", func(t *testing.T) { testTwo(t, setup(t)) })
	t.Run("cancelled create leaves nothing", func(t *testing.T) { testCancel(t, setup(t)) })
	t.Run("what isn't there", func(t *testing.T) { testMissing(t, setup(t)) })
}

// life is a cluster on its way through the tests of its life, in order.
type life struct {
	Setup
	driver cluster.Driver
	id     string
	inst   cluster.Instance
}

func testLife(t *testing.T, s Setup) {
	l := &life{Setup: s, driver: s.Open(t), id: "life"}
	sleeper, sleeps := l.driver.(cluster.Sleeper)
	_, adopts := l.driver.(cluster.Adopter)
	for _, tc := range []struct {
		name string
		when bool
		test func(*testing.T, *life)
	}{
		{"create reports stages and ends ready", true, testCreate},
		{"create again is a conflict", true, testCreateTwice},
		{"nodes and default ServiceAccount", true, testNodes},
		{"a Deployment becomes ready", true, testDeployment},
		{"audit names who did it", has(l.driver, cluster.CapAudit), testAudit},
		{"dial tells refused from silence", has(l.driver, cluster.CapNetwork), testDial},
		{"raw connection to the API", true, testDialAPI},
		{"the clock shows both figures", has(l.driver, cluster.CapClock), testClock},
		{"a kitchen without power or cable is lost", has(l.driver, cluster.CapKitchenPower) && has(l.driver, cluster.CapClock), testLostKitchen},
		{"kitchens come and go", has(l.driver, cluster.CapKitchens), testKitchens},
		{"a control loop goes home and comes back", has(l.driver, cluster.CapControlLoops), testLoops},
		{"etcd shows what is stored, plainly and encrypted", has(l.driver, cluster.CapEtcd), testStorage},
		{"usage", true, testUsage},
		{"sleep and wake keep objects", sleeps, func(t *testing.T, l *life) { testSleep(t, l, sleeper) }},
		{"a crash is noticed and waking mends it", sleeps, testCrash},
		{"a restarted server adopts it", adopts, testAdopt},
		{"an adopted one's crash is noticed", adopts && sleeps, testCrash},
		{"a restarted server finds a sleeping one", sleeps, testFindSleeping},
		{"delete leaves nothing", true, testDelete},
	} {
		if !tc.when {
			continue
		}
		if !t.Run(tc.name, func(t *testing.T) { tc.test(t, l) }) {
			break // the next ones need it
		}
	}
	if err := l.driver.Delete(context.WithoutCancel(t.Context()), l.id); err != nil {
		t.Error(err)
	}
}

func has(d cluster.Driver, c cluster.Capability) bool { return slices.Contains(d.Capabilities(), c) }

// stages records a start's progress.
type stages struct {
	mu   sync.Mutex
	list []lab.Stage
}

func (s *stages) progress(x lab.Stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, x)
}

// check looks whether the stages make sense: each begins before it ends, all end, "ready" is the last.
func (s *stages) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	done := map[string]bool{}
	for _, x := range s.list {
		done[x.Name] = x.Done
		if x.Name == "" || x.Started.IsZero() || x.Millis < 0 {
			t.Errorf("odd stage %+v", x)
		}
	}
	for name, ok := range done {
		if !ok {
			t.Errorf("stage %s never ended", name)
		}
	}
	if len(done) < 2 || s.list[len(s.list)-1].Name != "ready" {
		t.Errorf("stages = %+v, want several, ready as the last", s.list)
	}
}

func testCreate(t *testing.T, l *life) {
	ctx, cancel := context.WithTimeout(t.Context(), l.Within)
	defer cancel()
	var seen stages
	inst, err := l.driver.Create(ctx, l.id, lab.DefaultClusterSpec(), seen.progress)
	if err != nil {
		t.Fatal(err)
	}
	l.inst = inst
	seen.check(t)
	if inst.ID() != l.id {
		t.Errorf("id = %s", inst.ID())
	}
	notLost(t, inst)
}

func testCreateTwice(t *testing.T, l *life) {
	_, err := l.driver.Create(t.Context(), l.id, lab.DefaultClusterSpec(), nil)
	wantCode(t, err, lab.CodeConflict)
}

func testUsage(t *testing.T, l *life) {
	u, err := l.inst.Usage(t.Context())
	if err != nil || u.PSSBytes <= 0 || u.CPU <= 0 || u.DiskBytes <= 0 {
		t.Errorf("usage = %+v, %v", u, err)
	}
}

func testSleep(t *testing.T, l *life, sleeper cluster.Sleeper) {
	putNote(t, l.inst, "before-sleep")
	if err := sleeper.Sleep(t.Context(), l.id); err != nil {
		t.Fatal(err)
	}
	notLost(t, l.inst)
	wantEnded(t, l.inst)
	if err := sleeper.Sleep(t.Context(), l.id); err != nil {
		t.Errorf("sleep of a sleeping one: %v", err)
	}
	before := l.inst
	l.wake(t)
	wantNote(t, l.inst, "before-sleep")
	awaitDeployment(t, l.inst, l.Within)
	wantEnded(t, before) // an old instance doesn't come to life again
}

// wake wakes the cluster and checks its stages.
func (l *life) wake(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), l.Within)
	defer cancel()
	var seen stages
	inst, err := l.driver.(cluster.Sleeper).Wake(ctx, l.id, seen.progress)
	if err != nil {
		t.Fatal(err)
	}
	l.inst = inst
	seen.check(t)
}

func testCrash(t *testing.T, l *life) {
	putNote(t, l.inst, "before-crash")
	begun := time.Now()
	l.Crash(t, l.id)
	select {
	case <-l.inst.Lost():
	case <-time.After(l.Within):
		t.Fatal("nobody noticed the crash")
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("the crash was noticed after %v", took)
	}
	wantEnded(t, l.inst)
	l.wake(t)
	wantNote(t, l.inst, "before-crash")
	deleteNote(t, l.inst, "before-crash")
	awaitDeployment(t, l.inst, l.Within)
}

func testAdopt(t *testing.T, l *life) {
	putNote(t, l.inst, "before-restart")
	l.driver = l.Open(t)
	found := l.find(t)
	if !found.Running {
		t.Errorf("found = %+v, want it running", found)
	}
	inst, err := l.driver.(cluster.Adopter).Adopt(t.Context(), l.id)
	if err != nil {
		t.Fatal(err)
	}
	l.inst = inst
	notLost(t, inst)
	wantNote(t, inst, "before-restart")
}

func testFindSleeping(t *testing.T, l *life) {
	if err := l.driver.(cluster.Sleeper).Sleep(t.Context(), l.id); err != nil {
		t.Fatal(err)
	}
	l.driver = l.Open(t)
	if found := l.find(t); found.Running {
		t.Errorf("found = %+v, want it asleep", found)
	}
	l.wake(t)
}

// find finds the cluster in the driver's list.
func (l *life) find(t *testing.T) cluster.Found {
	t.Helper()
	list, err := l.driver.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("list = %+v, %v, want one", list, err)
	}
	if list[0].ID != l.id || !cmp.Equal(list[0].Spec, lab.DefaultClusterSpec()) || list[0].Created.IsZero() {
		t.Errorf("found = %+v", list[0])
	}
	return list[0]
}

func testDelete(t *testing.T, l *life) {
	if err := l.driver.Delete(t.Context(), l.id); err != nil {
		t.Fatal(err)
	}
	notLost(t, l.inst)
	wantEnded(t, l.inst)
	wantNothing(t, l.Setup, l.driver, l.id)
	if err := l.driver.Delete(t.Context(), l.id); err != nil {
		t.Errorf("second delete: %v", err)
	}
}

func wantNothing(t *testing.T, s Setup, d cluster.Driver, id string) {
	t.Helper()
	if left := s.Remains(t, id); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	list, err := d.List(t.Context())
	if err != nil || slices.ContainsFunc(list, func(f cluster.Found) bool { return f.ID == id }) {
		t.Errorf("list = %+v, %v", list, err)
	}
}

func notLost(t *testing.T, inst cluster.Instance) {
	t.Helper()
	select {
	case <-inst.Lost():
		t.Error("the cluster is lost")
	default:
	}
}

// wantEnded looks that an instance of the past reaches nothing.
func wantEnded(t *testing.T, inst cluster.Instance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if conn, err := inst.DialAPI(ctx); err == nil {
		_ = conn.Close() // it shouldn't be there at all
		t.Error("the API of an ended cluster can be dialled")
	}
	if _, err := inst.Usage(ctx); err == nil {
		t.Error("an ended cluster has usage")
	}
}

func wantCode(t *testing.T, err error, code lab.Code) {
	t.Helper()
	var e *lab.Error
	if !errors.As(err, &e) || e.Code != code || len(e.Text.Missing()) > 0 {
		t.Errorf("error = %v, want code %s with a text", err, code)
	}
}
