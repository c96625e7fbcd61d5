package guest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
)

// liveEvery is how often a stream tells how it goes.
const liveEvery = time.Second

// stream makes visits by the plan and shows a line each second and a summary at the end.
func (g *guest) stream(ctx context.Context) int {
	var cancel context.CancelFunc
	outer := ctx
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	tr := g.transport()
	defer tr.CloseIdleConnections()
	starts := make(chan struct{})
	results := make(chan visit)
	var wg sync.WaitGroup
	for range g.plan.atOnce {
		wg.Go(func() {
			for range starts {
				select {
				case results <- g.visit(ctx, tr, 8<<10):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	begin := time.Now()
	wg.Go(func() { defer close(starts); g.schedule(ctx, starts) })
	go func() { wg.Wait(); close(results) }()
	s := newSummary(g.plan.visits)
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	live := newLive(g)
	for open := true; open; {
		var v visit
		select {
		case v, open = <-results:
			if open && v.failure != failCanceled {
				s.add(v)
				live.add(v)
			}
		case now := <-tick.C:
			live.show(now.Sub(begin), s)
		case <-outer.Done():
			cancel()
			for range results { // they end at once
			}
			open = false
		}
	}
	s.elapsed = time.Since(begin)
	live.end()
	code := 0
	if g.plan.json {
		code = s.json(g)
	} else {
		code = s.print(g)
	}
	if outer.Err() != nil {
		return 130
	}
	return code
}

// schedule sends a token for each visit, spread evenly; when all guests are busy the next one comes
// as soon as one is free, and the rate is not made up for.
func (g *guest) schedule(ctx context.Context, starts chan<- struct{}) {
	rate := g.plan.rate
	if rate == 0 {
		rate = maxRate
	}
	gap := time.Duration(float64(time.Second) / rate)
	var end <-chan time.Time
	if g.plan.duration > 0 {
		t := time.NewTimer(g.plan.duration)
		defer t.Stop()
		end = t.C
	}
	most := g.plan.visits
	if most == 0 {
		most = math.MaxInt
	}
	next := time.Now()
	for n := 0; n < min(most, maxVisits); n++ {
		if wait := time.Until(next); wait > 0 {
			t := time.NewTimer(wait)
			select {
			case <-t.C:
			case <-end:
				t.Stop()
				return
			case <-ctx.Done():
				t.Stop()
				return
			}
		} else if wait < -time.Second {
			next = time.Now()
		}
		next = next.Add(gap)
		select {
		case starts <- struct{}{}:
		case <-end:
			return
		case <-ctx.Done():
			return
		}
	}
}

// live is the line that tells each second what came back since the last one.
type live struct {
	g        *guest
	visits   int
	good     int
	bad      map[string]int
	slowest  time.Duration
	anything bool
}

func newLive(g *guest) *live { return &live{g: g, bad: map[string]int{}} }

func (l *live) add(v visit) {
	l.visits++
	if v.bad() {
		l.bad[v.result()]++
	} else {
		l.good++
	}
	l.slowest = max(l.slowest, v.took)
}

func (l *live) show(since time.Duration, s *summary) {
	if l.g.plan.json {
		return
	}
	var bad strings.Builder
	for _, c := range ordered(l.bad) {
		fmt.Fprintf(&bad, "  %s×%d", c.name, c.count)
	}
	line := fmt.Sprintf(l.g.say("%4.0f 秒  上門 %d  好 %d  最慢 %s%s", "%4.0f s  visits %d  good %d  slowest %s%s"),
		since.Seconds(), l.visits, l.good, brief(l.slowest), bad.String())
	if l.g.env.TTY {
		fmt.Fprintf(l.g.env.Out, "\r\x1b[K%s", line)
		if bad.Len() > 0 { // what went wrong stays on the screen
			fmt.Fprintln(l.g.env.Out)
		}
	} else {
		fmt.Fprintln(l.g.env.Out, line)
	}
	l.anything = true
	l.visits, l.good, l.slowest = 0, 0, 0
	clear(l.bad)
}

func (l *live) end() {
	if l.anything && l.g.env.TTY {
		fmt.Fprint(l.g.env.Out, "\r\x1b[K")
	}
}
