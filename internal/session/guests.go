package session

import (
	"context"
	"slices"
	"sync"
	"time"

	"kubistro/internal/checker"
	"kubistro/internal/course"
)

const (
	// visitsAtOnce bounds the requests of one stream of guests that wait for an answer.
	visitsAtOnce = 10
	// guestsStay is how long guests go on coming when neither a page is open nor anybody checks.
	guestsStay = time.Minute
)

// guests are the steady guests of one exercise. They come from its start until it is done,
// while the cluster is awake and somebody follows the exercise.
type guests struct {
	specs map[string]checker.GuestSpec
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu     sync.Mutex
	visits map[string][]checker.Visit
	wanted time.Time // when somebody last asked
}

// guestsOf returns the guests of a started exercise and lets them begin to come; nil when it has none.
func (p *progress) guestsOf(e *course.Exercise) *guests {
	if len(e.Guests) == 0 {
		return nil
	}
	row := p.row(e.ID)
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.guests[e.ID]
	if g != nil || !row.StartedIn(p.l.id) || !row.DoneAt.IsZero() && len(row.Met) == len(e.Checks) || p.l.ctx.Err() != nil {
		return g
	}
	ctx, cancel := context.WithCancel(p.l.ctx)
	g = &guests{specs: e.Guests, stop: cancel, visits: map[string][]checker.Visit{}, wanted: p.l.s.Clock.Now()}
	p.guests[e.ID] = g
	for name, spec := range e.Guests {
		g.wg.Go(func() { p.come(ctx, g, name, spec) })
	}
	return g
}

// dismissGuests ends the guests of an exercise and forgets their visits; "" for all.
func (p *progress) dismissGuests(exercise string) {
	p.mu.Lock()
	var gone []*guests
	for id, g := range p.guests {
		if exercise == "" || id == exercise {
			gone = append(gone, g)
			delete(p.guests, id)
		}
	}
	p.mu.Unlock()
	for _, g := range gone {
		g.stop()
		g.wg.Wait()
	}
}

// come makes the visits of one stream until ctx ends.
func (p *progress) come(ctx context.Context, g *guests, name string, spec checker.GuestSpec) {
	tick := time.NewTicker(time.Second / time.Duration(spec.Rate))
	defer tick.Stop()
	room := make(chan struct{}, visitsAtOnce)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		r := p.l.ready()
		if r == nil || !p.followed(g) {
			continue
		}
		select {
		case room <- struct{}{}:
		default:
			continue // the former ones still wait: more would only wait longer
		}
		wg.Go(func() {
			defer func() { <-room }()
			w := &world{l: p.l, r: r}
			at := p.l.s.Clock.Now()
			v, err := w.Request(ctx, spec.Request)
			if err == nil {
				v.Headers = nil
				g.keep(name, checker.Visit{Response: v, At: at}, at.Add(-spec.Keep))
			}
		})
	}
}

// followed reports whether somebody still wants the visits.
func (p *progress) followed(g *guests) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return p.l.record.Subscribers() > 0 || p.l.s.Clock.Since(g.wanted) < guestsStay
}

// visitBody is how much of an answer is kept.
const visitBody = 200

func (g *guests) keep(name string, v checker.Visit, since time.Time) {
	if len(v.Body) > visitBody {
		v.Body = v.Body[:visitBody]
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.visits[name]
	at, _ := slices.BinarySearchFunc(list, v, func(a, b checker.Visit) int { return a.At.Compare(b.At) })
	list = slices.Insert(list, at, v) // the slow ones come back late
	old := 0
	for old < len(list) && list[old].At.Before(since) {
		old++
	}
	g.visits[name] = slices.Delete(list, 0, old)
}

// Visits is part of checker.Cluster.
func (w *world) Visits(_ context.Context, name string) ([]checker.Visit, error) {
	if w.guests == nil || w.r == nil {
		return nil, errNoCluster
	}
	w.guests.mu.Lock()
	defer w.guests.mu.Unlock()
	w.guests.wanted = w.l.s.Clock.Now()
	return slices.Clone(w.guests.visits[name]), nil
}
