package session_test

import (
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
	"kubistro/internal/session"
)

// inMemory is how many sessions the server's metrics say it holds.
func inMemory(t *testing.T, reg *prometheus.Registry) int {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "kubistro_sessions_live" {
			return int(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	t.Fatal("no metric tells how many sessions are live")
	return 0
}

// leaves waits until no session is in memory.
func leaves(t *testing.T, reg *prometheus.Registry) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); inMemory(t, reg) > 0; <-tick.C {
		if time.Now().After(end) {
			t.Fatal("the sleeping session stays in memory")
		}
	}
}

// lookClock is the real one, and tells when a timer of one length has fired.
type lookClock struct {
	clock.RealClock
	length time.Duration
	fired  chan struct{}
}

func (l lookClock) NewTimer(d time.Duration) clock.Timer {
	if d != l.length {
		return l.RealClock.NewTimer(d)
	}
	t := &lookTimer{c: make(chan time.Time, 1)}
	t.Timer = time.AfterFunc(d, func() {
		t.c <- time.Now()
		select {
		case l.fired <- struct{}{}:
		default: // nobody counts
		}
	})
	return t
}

type lookTimer struct {
	*time.Timer
	c chan time.Time
}

func (t *lookTimer) C() <-chan time.Time { return t.c }

func TestSleepingLabLeavesMemoryAndComesBack(t *testing.T) {
	const keep = 53 * time.Millisecond // unlike any other timer's
	looks := lookClock{length: keep, fired: make(chan struct{})}
	reg := prometheus.NewRegistry()
	s := serve(t, t.TempDir(), func(m *cluster.Config, c *session.Config) {
		m.Idle, c.KeepAsleep, c.Metrics, c.Clock = 8*time.Second, keep, reg, looks
	})
	defer s.stop()
	v, _, err := s.Open(t.Context(), me, "restaurant")
	if err != nil {
		t.Fatal(err)
	}
	s.ready(t, v.ID)
	if _, err := s.StartExercise(t.Context(), me, v.ID, "hire"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteFile(t.Context(), me, v.ID, "note.txt", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.KubernetesProxy())
	defer web.Close()
	k, _ := s.outside(t, v.ID, web.URL)
	page, err := s.Events(t.Context(), me, v.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.AppsV1().Deployments("default").Create(t.Context(), grill(2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	asleep := func(e lab.Event) bool { return e.Verb == "state" && e.Reason == string(lab.StateAsleep) }
	until(t, page, func(e lab.Event) bool { return e.Verb == "check" && e.Reason == "done" })
	last := until(t, page, asleep)
	last = last[len(last)-1:]

	// While a page is open, the session stays, however often it is looked at.
	for range 10 {
		select {
		case <-looks.fired:
		case <-time.After(time.Minute):
			t.Fatal("nobody looks at the sleeping session")
		}
		if inMemory(t, reg) != 1 {
			t.Fatal("the session left although a page was open")
		}
	}
	page.Close()
	leaves(t, reg)

	// Visits in the very moment in which it leaves find it all the same.
	var visitors sync.WaitGroup
	for range 4 {
		visitors.Go(func() {
			visit := time.NewTicker(keep)
			defer visit.Stop()
			for range 20 {
				if got, err := s.Get(t.Context(), me, v.ID); err != nil || got.State != lab.StateAsleep {
					t.Errorf("a visit: %s %v", got.State, err)
				}
				<-visit.C
			}
		})
	}
	visitors.Wait()
	leaves(t, reg)

	states, err := s.Exercises(t.Context(), me, v.ID, "1")
	if err != nil || !states[0].Done || !states[0].Started {
		t.Errorf("the exercise of a sleeping session: %+v %v", states, err)
	}
	if _, err := s.Get(t.Context(), somebody, v.ID); lab.AsError(err).Code != lab.CodeNotFound {
		t.Errorf("somebody else's session: %v, want not found", err)
	}
	if page, err = s.Events(t.Context(), me, v.ID, last[0].N); err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	if err := s.Wake(t.Context(), me, v.ID); err != nil {
		t.Fatal(err)
	}
	woke := until(t, page, func(e lab.Event) bool { return e.Verb == "state" && e.Reason == string(lab.StateReady) })
	if woke[0].N != last[0].N+1 || woke[0].Type == lab.EventSnapshot {
		t.Errorf("the record goes on with frame %d (%s), want %d", woke[0].N, woke[0].Type, last[0].N+1)
	}
	if slices.ContainsFunc(woke, asleep) {
		t.Error("the sleep was told again")
	}
	if state, err := s.Check(t.Context(), me, v.ID, "hire"); err != nil || state.Checks[0].Status != lab.CheckMet {
		t.Errorf("the check after the wake: %+v %v", state.Checks, err)
	}
	if data, _, err := s.ReadFile(t.Context(), me, v.ID, "note.txt"); err != nil || string(data) != "mine" {
		t.Errorf("the file after the wake: %q %v", data, err)
	}
}
