package cgroup

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestShare looks at the amounts that loads get in 10 s, which no host makes slower.
func TestShare(t *testing.T) {
	type c struct{ weight, limit, load, want int64 } // millicores
	for name, tc := range map[string][]c{
		"alone":                      {{2, 0, 500, 500}},
		"limited":                    {{1024, 200, 1000, 202}}, // the first period's quota is there at once
		"full, by weight":            {{1024, 0, 2000, 1500}, {341, 0, 2000, 500}},
		"full, one wants less":       {{1024, 0, 200, 200}, {102, 0, 4000, 1800}},
		"requests starve the others": {{2048, 0, 4000, 1998}, {2, 0, 1000, 2}},
		"a limit leaves the rest":    {{1024, 500, 2000, 505}, {2, 0, 4000, 1495}},
	} {
		t.Run(name, func(t *testing.T) {
			fake := clocktesting.NewFakeClock(time.Unix(0, 0))
			node := NewNode(fake, 2000, 0)
			defer node.Close()
			var gs []*Group
			for _, x := range tc {
				g := node.Child(Limits{Weight: x.weight, CPU: x.limit})
				stop := g.Load(x.load)
				defer stop()
				gs = append(gs, g)
			}
			for range 10_000 { // in steps: the machine's own look at a used-up quota comes in time
				fake.Step(time.Millisecond)
				node.m.mu.Lock()
				node.m.advance()
				node.m.schedule()
				node.m.mu.Unlock()
			}
			for i, x := range tc {
				used, _ := gs[i].Read()
				if got := float64(used) / 1e7; math.Abs(got-float64(x.want)) > 6 {
					t.Errorf("container %d used %.1f millicores, want about %d", i, got, x.want)
				}
			}
		})
	}
}

func TestWorkIsThrottled(t *testing.T) {
	node := NewNode(clock.RealClock{}, 4000, 0)
	defer node.Close()
	free, limited := node.Child(Limits{}), node.Child(Limits{CPU: 200})
	took := func(g *Group) time.Duration {
		begin := time.Now()
		if err := g.Work(t.Context(), 60*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	if d := took(free); d < 59*time.Millisecond {
		t.Errorf("60 ms of work took %v", d)
	}
	if d := took(limited); d < 190*time.Millisecond { // 25 ms at once, the rest at a fifth of a core
		t.Errorf("60 ms of work at 200m took %v", d)
	}
	s := limited.CPUStat()
	if s.Usage < 59*time.Millisecond || s.Periods < 2 || s.Throttled < 2 || s.ThrottledTime < 100*time.Millisecond {
		t.Errorf("%+v", s)
	}
	if s := free.CPUStat(); s.Throttled != 0 || s.Usage < 59*time.Millisecond {
		t.Errorf("without a quota: %+v", s)
	}
}

func TestWorkEnds(t *testing.T) {
	node := NewNode(clock.RealClock{}, 1000, 0)
	defer node.Close()
	g := node.Child(Limits{CPU: 10})
	ctx, cancel := context.WithCancel(t.Context())
	ends := func(ctx context.Context) chan error {
		c := make(chan error, 1)
		go func() { c <- g.Work(ctx, time.Hour) }()
		return c
	}
	cancelled, closed := ends(ctx), ends(context.Background())
	for waiting := 0; waiting < 2; runtime.Gosched() { // until both are at work
		node.m.mu.Lock()
		waiting = node.m.waiting
		node.m.mu.Unlock()
	}
	cancel()
	if err := <-cancelled; err != context.Canceled {
		t.Errorf("cancelled work: %v", err)
	}
	g.Close()
	if err := <-closed; err != ErrClosed {
		t.Errorf("work of a group that ends: %v", err)
	}
	if err := g.Work(t.Context(), time.Second); err != ErrClosed {
		t.Errorf("work after the end: %v", err)
	}
}

func TestMemory(t *testing.T) {
	node := NewNode(clock.RealClock{}, 1000, 1000)
	defer node.Close()
	a, b := node.Child(Limits{Memory: 600}), node.Child(Limits{})
	var ooms, system int
	a.OnOOM(func() { ooms++ })
	node.OnOOM(func() { system++ })
	a.AddMemory(600)
	b.AddMemory(400)
	if ooms+system != 0 {
		t.Fatal("out of memory at the limit")
	}
	b.AddMemory(1)
	if ooms != 0 || system != 1 {
		t.Errorf("container %d, system %d times out of memory, want the system once", ooms, system)
	}
	a.AddMemory(1)
	if ooms != 1 || system != 1 {
		t.Errorf("container %d, system %d times out of memory, want both once", ooms, system)
	}
	a.Close()
	a.AddMemory(-601) // of a program that ends afterwards
	if node.Memory() != 401 || a.Memory() != 0 {
		t.Errorf("after the end of a container the node holds %d", node.Memory())
	}
}

func TestPids(t *testing.T) {
	node := NewNode(clock.RealClock{}, 1000, 0)
	defer node.Close()
	pod := node.Child(Limits{Pids: 2})
	a, b := pod.Child(Limits{}), pod.Child(Limits{})
	if !a.Fork() || !b.Fork() || a.Fork() || b.Fork() {
		t.Error("a Pod's limit of 2 isn't kept")
	}
	if node.Pids() != 2 || a.Pids() != 1 {
		t.Errorf("node %d, container %d processes", node.Pids(), a.Pids())
	}
	b.Exit()
	if !a.Fork() || node.Pids() != 2 {
		t.Error("the place of a process that ended isn't free")
	}
}
