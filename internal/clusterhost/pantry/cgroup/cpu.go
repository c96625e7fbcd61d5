package cgroup

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// The CPU's time is shared as the kernel's fair scheduler shares it, but as a
// fluid: between two changes (work begins, ends, a quota is used up) each task
// has a constant speed, so that a busy node needs no ticks at all.
const (
	// Period is that of CPU quotas: cfs_period_us of the kubelet's default.
	Period = 100 * time.Millisecond
	// minWeight is what a group without a request has: kuberuntime, MinShares.
	minWeight = 2
	// atLeast is the shortest time between two looks, and the work that is too
	// little to wait for where nobody else wants the CPU.
	atLeast = 500 * time.Microsecond
	// spent is the part of a quota below which it counts as used up.
	spent = 0.01
	// catchUp bounds the changes that are made good after a long time without a look.
	catchUp = 10_000
)

// cpuState is a group's part of the machine; speeds are in cores, amounts in core-seconds.
type cpuState struct {
	children []*Group
	tasks    []*task
	tokens   float64 // what is left of the quota
	charged  int64   // how much of direct has been taken from tokens
	used     float64
	demand   float64
	want     float64 // the demand without the quota
	rate     float64
	active   float64 // seconds with work
	held     float64 // seconds in which the quota held work back
	lost     float64 // seconds that it lost by that
}

// task is a thread with work.
type task struct {
	cap  float64 // the most it can use: a core, or what a load asks for
	left float64 // core-seconds; +Inf for a load
	rate float64
	done chan struct{}
	cut  bool // the group ended before the work
}

// machine is a node's CPUs.
type machine struct {
	clock clock.Clock
	epoch time.Time
	root  *Group

	mu      sync.Mutex
	last    time.Time // everything is accounted until then
	waiting int       // tasks that end
	next    time.Time // when something changes by itself; zero: never
	running bool
	kick    chan struct{}
}

func (l Limits) quota() float64 { return float64(l.CPU) / 1000 }
func (l Limits) burst() float64 { return l.quota() * Period.Seconds() }

// throttled says that the quota is used up and more is wanted.
func (g *Group) throttled() bool {
	l := g.Limits()
	return g != g.m.root && l.CPU > 0 && g.cpu.want > l.quota() && g.cpu.tokens <= spent*l.burst()
}

// advance accounts the time since the last look, change by change: a look that
// comes late gives nobody more than an early one.
func (m *machine) advance() {
	now := m.clock.Now()
	for n := 0; n < catchUp && !m.next.IsZero() && !m.next.After(now); n++ {
		m.step(m.next)
		m.plan()
	}
	m.step(now)
}

func (m *machine) step(to time.Time) {
	if dt := to.Sub(m.last).Seconds(); dt > 0 {
		m.root.advance(dt)
		m.last = to
	}
}

func (g *Group) advance(dt float64) {
	c := &g.cpu
	if g != g.m.root {
		l := g.Limits()
		direct := g.direct.Load()
		c.tokens += (l.quota()-c.rate)*dt - float64(direct-c.charged)/float64(time.Second)
		c.tokens = min(max(c.tokens, 0), l.burst())
		c.charged = direct
	}
	c.used += c.rate * dt
	if c.want > 0 {
		c.active += dt
		if q := g.Limits().quota(); q > 0 && g != g.m.root && c.demand < c.want {
			c.held += dt
			c.lost += dt * (1 - q/c.want)
		}
	}
	for _, t := range c.tasks {
		if t.left -= t.rate * dt; t.left < 1e-7 {
			close(t.done)
			g.m.waiting--
		}
	}
	c.tasks = slices.DeleteFunc(c.tasks, func(t *task) bool { return t.left < 1e-7 })
	for _, k := range c.children {
		k.advance(dt)
	}
}

// plan gives every task its speed and finds out when that changes.
func (m *machine) plan() {
	m.root.ask()
	m.root.grant(m.root.Limits().quota())
	next := math.Inf(1)
	m.root.soonest(&next)
	m.next = time.Time{}
	if math.IsInf(next, 1) && m.waiting == 0 {
		return
	}
	m.next = m.last.Add(max(time.Duration(min(next, 3600)*float64(time.Second)), atLeast))
}

// schedule plans, and has a goroutine look when something changes by itself.
func (m *machine) schedule() {
	m.plan()
	if !m.running && !m.next.IsZero() {
		m.running = true
		go m.run()
		return
	}
	m.poke() // or lets it end
}

func (m *machine) poke() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// run waits for the changes that come by themselves, and ends when there are none.
func (m *machine) run() {
	for {
		m.mu.Lock()
		if m.next.IsZero() {
			m.running = false
			m.mu.Unlock()
			return
		}
		wait := m.next.Sub(m.clock.Now())
		if wait <= 0 {
			m.advance()
			m.schedule()
			m.mu.Unlock()
			continue
		}
		m.mu.Unlock()
		t := m.clock.NewTimer(wait)
		select {
		case <-t.C():
		case <-m.kick:
		}
		t.Stop()
	}
}

// ask sums up what is wanted.
func (g *Group) ask() {
	c := &g.cpu
	c.want = 0
	for _, t := range c.tasks {
		c.want += t.cap
	}
	for _, k := range c.children {
		k.ask()
		c.want += k.cpu.demand
	}
	c.demand = c.want
	if g.throttled() {
		c.demand = g.Limits().quota()
	}
}

// grant shares what the group gets among its tasks and the groups in it, by
// weight; what one doesn't want goes to the others.
func (g *Group) grant(amount float64) {
	c := &g.cpu
	c.rate = min(amount, c.demand)
	claims := make([]claim, 0, len(c.tasks)+len(c.children))
	for _, t := range c.tasks {
		claims = append(claims, claim{weight: 1024, want: t.cap, task: t})
	}
	for _, k := range c.children {
		if k.cpu.demand > 0 {
			claims = append(claims, claim{weight: float64(max(k.Limits().Weight, minWeight)), want: k.cpu.demand, group: k})
		} else if k.cpu.rate > 0 {
			k.grant(0)
		}
	}
	share(claims, c.rate)
	for i := range claims {
		if cl := &claims[i]; cl.task != nil {
			cl.task.rate = cl.got
		} else {
			cl.group.grant(cl.got)
		}
	}
}

// claim is one that wants a part.
type claim struct {
	weight, want, got float64
	task              *task
	group             *Group
}

// share fills the claims: those that want less than their part of the weight
// first, so that the rest is shared anew.
func share(claims []claim, amount float64) {
	slices.SortFunc(claims, func(a, b claim) int {
		switch x, y := a.want/a.weight, b.want/b.weight; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	weights := 0.0
	for i := range claims {
		weights += claims[i].weight
	}
	for i := range claims {
		c := &claims[i]
		c.got = min(c.want, amount*c.weight/weights)
		amount -= c.got
		weights -= c.weight
	}
}

// soonest finds the seconds until a task is done or a quota used up.
func (g *Group) soonest(next *float64) {
	c := &g.cpu
	for _, t := range c.tasks {
		if t.rate > 0 {
			*next = min(*next, t.left/t.rate)
		}
	}
	if l := g.Limits(); g != g.m.root && l.CPU > 0 && c.rate > l.quota()+1e-9 {
		*next = min(*next, c.tokens/(c.rate-l.quota()))
	}
	for _, k := range c.children {
		if k.cpu.demand > 0 {
			k.soonest(next)
		}
	}
}

// remove cuts off a group that ends.
func (m *machine) remove(g *Group) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	for _, t := range g.cpu.tasks {
		if !math.IsInf(t.left, 1) {
			m.waiting--
		}
		t.cut = true
		close(t.done)
	}
	g.cpu.tasks, g.cpu.rate, g.cpu.want, g.cpu.demand = nil, 0, 0, 0
	if p := g.parent; p != nil {
		p.cpu.children = slices.DeleteFunc(p.cpu.children, func(k *Group) bool { return k == g })
	}
	m.schedule()
}

// drop takes a task out before its end.
func (m *machine) drop(g *Group, t *task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	if i := slices.Index(g.cpu.tasks, t); i >= 0 {
		g.cpu.tasks = slices.Delete(g.cpu.tasks, i, i+1)
		if !math.IsInf(t.left, 1) {
			m.waiting--
		}
	}
	m.schedule()
}

// add puts a task in; false: the group has ended.
func (m *machine) add(g *Group, t *task) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	if !math.IsInf(t.left, 1) {
		m.waiting++
	}
	g.cpu.tasks = append(g.cpu.tasks, t)
	m.schedule()
	return true
}

// boundary is the end of the period that now lies in.
func (m *machine) boundary(now time.Time) time.Time {
	return now.Add(Period - now.Sub(m.epoch)%Period)
}

// sleep waits on the machine's clock.
func sleep(ctx context.Context, c clock.Clock, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
