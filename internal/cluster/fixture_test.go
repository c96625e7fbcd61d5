package cluster_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/clustertest"
	"kubistro/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen soon.
const patience = 10 * time.Second

// script is a hook of the Memory driver that a test steers.
type script struct {
	mu    sync.Mutex
	fail  map[string]error         // by call
	gates map[string]chan struct{} // by call: it waits until the channel is closed
	calls map[string]int           // by call: how many have begun
	dead  bool                     // the server was killed: nothing reaches the driver
}

var errKilled = errors.New("the server was killed")

func newScript() *script {
	return &script{fail: map[string]error{}, gates: map[string]chan struct{}{}, calls: map[string]int{}}
}

func (s *script) hook(ctx context.Context, call, _ string) error {
	s.mu.Lock()
	s.calls[call]++
	gate, err, dead := s.gates[call], s.fail[call], s.dead
	s.mu.Unlock()
	if dead {
		return errKilled
	}
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// hold makes all further calls of a kind wait until the result is called.
func (s *script) hold(call string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gates[call] = gate
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.gates, call)
		close(gate)
	})
}

// failWith makes further calls of a kind fail; nil makes them work again.
func (s *script) failWith(call string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[call] = err
}

func (s *script) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func (s *script) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

// fixture is a Manager over the Memory driver.
type fixture struct {
	*script
	t       *testing.T
	m       *cluster.Manager
	driver  *clustertest.Memory
	clock   *clocktesting.FakeClock
	metrics *prometheus.Registry
	cfg     cluster.Config
}

// newFixture starts a Manager that changes may configure; it is closed at the end of the test.
func newFixture(t *testing.T, changes ...func(*cluster.Config)) *fixture {
	s := newScript()
	return startFixture(t, s, clustertest.NewMemory(s.hook), nil, changes...)
}

func startFixture(t *testing.T, s *script, d *clustertest.Memory, known []string, changes ...func(*cluster.Config)) *fixture {
	f := &fixture{script: s, t: t, driver: d, clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), metrics: prometheus.NewRegistry()}
	f.cfg = cluster.Config{Driver: f.driver, Spec: lab.DefaultClusterSpec(), Max: 10, Starts: 4, Idle: 30 * time.Minute, WarnBefore: 2 * time.Minute,
		Clock: f.clock, Metrics: f.metrics}
	for _, change := range changes {
		change(&f.cfg)
	}
	f.m = cluster.NewManager(f.cfg)
	if err := f.m.Start(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	t.Cleanup(f.close)
	return f
}

func (f *fixture) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f.m.Close(ctx); err != nil {
		f.t.Error(err)
	}
}

func (f *fixture) claim() *cluster.Cluster {
	f.t.Helper()
	c, err := f.m.Claim(f.t.Context(), lab.DefaultClusterSpec())
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// ready claims a cluster and waits until it is ready.
func (f *fixture) ready() *cluster.Cluster {
	f.t.Helper()
	c := f.claim()
	f.await(c, lab.StateReady)
	return c
}

// await waits until the cluster is in a state, and returns its status then.
func (f *fixture) await(c *cluster.Cluster, want lab.State) lab.Status {
	f.t.Helper()
	return f.awaitThat(c, string(want), func(s lab.Status) bool { return s.State == want })
}

func (f *fixture) awaitThat(c *cluster.Cluster, what string, ok func(lab.Status) bool) lab.Status {
	f.t.Helper()
	timeout := time.After(patience)
	for {
		changes := c.Changes()
		s := c.Status()
		if ok(s) {
			return s
		}
		select {
		case <-changes:
		case <-timeout:
			f.t.Fatalf("cluster %s isn't %s but %+v", c.ID(), what, s)
		}
	}
}

// eventually waits for what no channel tells.
func (f *fixture) eventually(what string, ok func() bool) {
	f.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			f.t.Fatalf("never: %s", what)
		}
	}
}

// awaitPool waits until so many unused clusters are ready.
func (f *fixture) awaitPool(n float64) {
	f.t.Helper()
	f.eventually("pool is ready", func() bool { return f.metric("kubistro_cluster_pool", "true") == n })
}

// metric is the value of a gauge or counter; label is the value of its only label, if it has one.
func (f *fixture) metric(name, label string) float64 {
	f.t.Helper()
	families, err := f.metrics.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, fam := range families {
		if fam.GetName() != name {
			continue
		}
		for _, m := range fam.GetMetric() {
			if len(m.GetLabel()) > 0 && m.GetLabel()[0].GetValue() != label {
				continue
			}
			if h := m.GetHistogram(); h != nil {
				return float64(h.GetSampleCount())
			}
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return 0
}
