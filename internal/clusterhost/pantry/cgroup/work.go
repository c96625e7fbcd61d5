package cgroup

import (
	"context"
	"errors"
	"math"
	"time"

	"k8s.io/utils/clock"
)

// ErrClosed is the end of a group in the middle of its work.
var ErrClosed = errors.New("cgroup: the group has ended")

// AddCPU counts so many nanoseconds of CPU time without waiting for them: for
// what is too small to matter. They are taken from the quota all the same.
func (g *Group) AddCPU(nanos int64) { g.direct.Add(nanos) }

// Work uses d of CPU time on one thread and returns when that is done: after d on
// an idle node, later where the quota is used up or neighbours have their share.
// The error is ctx's, or ErrClosed.
func (g *Group) Work(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	if g.m == nil {
		g.AddCPU(int64(d))
		if g.kernel != nil {
			return g.kernel.Work(ctx, d)
		}
		return sleep(ctx, clock.RealClock{}, d)
	}
	m := g.m
	m.mu.Lock()
	m.advance()
	held := g.heldBack()
	if !held && d <= 2*atLeast && m.root.cpu.want+1 <= m.root.Limits().quota() {
		m.mu.Unlock()
		g.AddCPU(int64(d))
		return ctx.Err()
	}
	var not time.Time // a thread that comes while its group is throttled waits for the next period
	if held {
		not = m.boundary(m.last)
	}
	t := &task{cap: 1, left: d.Seconds(), done: make(chan struct{})}
	ok := m.add(g, t)
	m.mu.Unlock()
	if !ok {
		return ErrClosed
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		m.drop(g, t)
		return ctx.Err()
	}
	if t.cut {
		return ErrClosed
	}
	return sleep(ctx, m.clock, not.Sub(m.clock.Now()))
}

// heldBack says that the group, or one that it is in, is throttled or has no quota left.
func (g *Group) heldBack() bool {
	for p := g; p != g.m.root; p = p.parent {
		if l := p.Limits(); p.throttled() || l.CPU > 0 && p.cpu.tokens <= spent*l.burst() {
			return true
		}
	}
	return false
}

// Load is CPU use that goes on until stop is called: so many millicores are wanted,
// by as many threads as that takes; the group gets what quota and neighbours leave.
func (g *Group) Load(millicores int64) (stop func()) {
	if g.kernel != nil && millicores > 0 {
		return g.kernel.Load(millicores)
	}
	if g.m == nil || millicores <= 0 {
		return func() {}
	}
	m := g.m
	t := &task{cap: float64(millicores) / 1000, left: math.Inf(1), done: make(chan struct{})}
	m.mu.Lock()
	m.advance()
	m.add(g, t)
	m.mu.Unlock()
	return func() { m.drop(g, t) }
}

// CPUStat is what cpu.stat shows.
type CPUStat struct {
	Usage              time.Duration
	Periods, Throttled int64 // periods with work, and those in which the quota held it back
	ThrottledTime      time.Duration
}

// CPUStat counts periods and throttling so far.
func (g *Group) CPUStat() CPUStat {
	used, _ := g.Read()
	s := CPUStat{Usage: time.Duration(used)}
	if g.m == nil {
		return s
	}
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	if g.Limits().CPU > 0 {
		p := Period.Seconds()
		s.Periods, s.Throttled = int64(math.Ceil(g.cpu.active/p)), int64(math.Ceil(g.cpu.held/p))
		s.ThrottledTime = time.Duration(g.cpu.lost * float64(time.Second))
	}
	return s
}
