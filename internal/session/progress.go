package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"kubistro/internal/checker"
	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/store"
)

// How often checks run.
const (
	debounce     = 75 * time.Millisecond // after a change, so that one look sees a burst as a whole
	retryUnknown = 2 * time.Second       // while something couldn't be looked at
	repeatSlow   = 5 * time.Second       // for what no watch tells (answers to requests), while somebody looks on
)

// everything marks all checks as due.
const everything = "*"

// progress keeps the results of a session's checks up to date and pushes them.
type progress struct {
	l *live

	mu     sync.Mutex
	rows   map[string]store.Exercise // what the store has
	states map[string]*standing
	dirty  map[string]bool
	wake   chan struct{}
	guests map[string]*guests // by exercise
	// caughtUp are the exercises whose solution has led to the cluster's present state.
	caughtUp map[string]bool

	starting sync.Mutex // one start state is set up at a time
}

// standing is the newest look at an exercise.
type standing struct {
	mu      sync.Mutex // one look at a time
	results []lab.CheckResult
	told    string // the state that was last pushed
}

func newProgress(ctx context.Context, l *live) (*progress, error) {
	rows, err := l.s.Store.Exercises(ctx, l.learner, l.opened.ID)
	if err != nil {
		return nil, fmt.Errorf("session: progress: %w", err)
	}
	return &progress{l: l, rows: rows, states: map[string]*standing{}, guests: map[string]*guests{}, caughtUp: map[string]bool{}, dirty: map[string]bool{}, wake: make(chan struct{}, 1)}, nil
}

// changed notes that something of this kind changed. It never blocks.
func (p *progress) changed(kind string) {
	p.mu.Lock()
	p.dirty[kind] = true
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// connected notes that the cluster came or went.
func (p *progress) connected() { p.changed(everything) }

// row is what is kept of an exercise.
func (p *progress) row(id string) store.Exercise {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows[id]
}

func (p *progress) update(ctx context.Context, id string, change func(*store.Exercise) error) (store.Exercise, error) {
	row, err := p.l.s.Store.UpdateExercise(context.WithoutCancel(ctx), p.l.learner, p.l.opened.ID, id, change)
	if err != nil {
		return row, fmt.Errorf("session: progress of %s: %w", id, err)
	}
	p.mu.Lock()
	p.rows[id] = row
	p.mu.Unlock()
	return row, nil
}

func (p *progress) standing(id string) *standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.states[id]
	if s == nil {
		s = &standing{}
		p.states[id] = s
	}
	return s
}

// run looks again after each change until ctx ends.
func (p *progress) run(ctx context.Context) {
	clk := p.l.s.Clock
	slow := clk.NewTicker(repeatSlow)
	defer slow.Stop()
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-retry:
			retry = nil
			p.changed(everything)
			continue
		case <-slow.C():
			if p.l.record.Subscribers() > 0 && p.l.ready() != nil {
				p.changed("EndpointSlice")
			}
			continue
		case <-p.wake:
		}
		select {
		case <-clk.After(debounce):
		case <-ctx.Done():
			return
		}
		if p.lookAtDue(ctx) && retry == nil {
			retry = clk.After(retryUnknown)
		}
	}
}

// lookAtDue looks at the started exercises that the changes since last time
// can matter to, and reports whether something couldn't be looked at although
// the cluster is there.
func (p *progress) lookAtDue(ctx context.Context) (again bool) {
	p.mu.Lock()
	dirty := p.dirty
	p.dirty = map[string]bool{}
	p.mu.Unlock()
	for _, e := range p.exercises("") {
		row := p.row(e.ID)
		if !row.StartedIn(p.l.id) || !due(e, dirty) {
			continue
		}
		state, err := p.look(ctx, e, false)
		if err != nil && ctx.Err() == nil {
			p.l.log.Warn("checks not looked at", "exercise", e.ID, "error", err)
		}
		for _, c := range state.Checks {
			again = again || c.Status == lab.CheckUnknown && p.l.ready() != nil
		}
	}
	return again
}

func due(e *course.Exercise, dirty map[string]bool) bool {
	if dirty[everything] {
		return true
	}
	for _, c := range e.Checks {
		for _, kind := range c.Watches() {
			if dirty[kind] {
				return true
			}
		}
	}
	return false
}

// exercises of a level; "" for all.
func (p *progress) exercises(level string) []*course.Exercise {
	var out []*course.Exercise
	for _, l := range p.l.course().Levels {
		if level == "" || l.ID == level {
			out = append(out, l.Exercises...)
		}
	}
	return out
}

// look runs an exercise's checks, keeps what they say and pushes it when it is
// news. live: read from the API server in the first place.
func (p *progress) look(ctx context.Context, e *course.Exercise, live bool) (lab.ExerciseState, error) {
	s := p.standing(e.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	row := p.row(e.ID)
	if !row.StartedIn(p.l.id) {
		return p.state(e, row, nil), nil
	}
	w := &world{l: p.l, r: p.l.ready(), live: live, since: row.StartEvent, begun: row.StartedAt, typed: row.Typed, guests: p.guestsOf(e)}
	w.left = w.guests == nil && len(e.Guests) > 0
	if w.r != nil {
		select {
		case <-w.r.settled:
		default:
			w.r = nil
		}
	}
	results := make([]lab.CheckResult, len(e.Checks))
	var wg sync.WaitGroup
	for i, c := range e.Checks {
		wg.Go(func() { results[i] = confirmed(ctx, c, w, slices.Contains(row.Met, c.ID())) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return p.state(e, row, s.results), ctx.Err()
	}
	before := len(row.Met)
	met, all := judge(e, row.Met, results)
	s.results = results
	done := all && row.DoneAt.IsZero()
	if done || !slices.Equal(met, row.Met) {
		var err error
		row, err = p.update(ctx, e.ID, func(x *store.Exercise) error {
			if !x.StartedIn(p.l.id) || !x.StartedAt.Equal(row.StartedAt) {
				return nil // it was reset meanwhile
			}
			x.Met = met
			if all && x.DoneAt.IsZero() {
				x.DoneAt = p.l.s.Clock.Now().UTC()
			}
			return nil
		})
		if err != nil {
			return p.state(e, row, results), err
		}
	}
	if done {
		p.dismissGuests(e.ID)
	}
	state := p.state(e, row, results)
	p.push(s, state, done)
	if len(met) != before && len(met) == len(e.Checks) {
		p.freed(e)
	}
	return state, nil
}

// confirmed runs a check; what the watch cache says is met for the first time
// has to be so on the API server too. What was met by guests who have left stays so.
func confirmed(ctx context.Context, c *checker.Check, w *world, before bool) lab.CheckResult {
	r := c.Run(ctx, w)
	if r.Status == lab.CheckMet && !before && !w.live {
		final := *w
		final.live = true
		r = c.Run(ctx, &final)
	}
	if r.Status == lab.CheckUnknown && before && w.left && w.r != nil {
		return lab.CheckResult{Check: r.Check, Title: r.Title, Status: lab.CheckMet}
	}
	return r
}

// judge lets a check that was met once stay met, unless it must hold; then it
// is marked as a regression. It returns the checks that have been met, in
// order, and whether all are met now.
func judge(e *course.Exercise, before []string, results []lab.CheckResult) (met []string, all bool) {
	all = len(results) > 0
	for i, c := range e.Checks {
		r := &results[i]
		was := slices.Contains(before, c.ID())
		if r.Status != lab.CheckMet && was {
			if c.MustHold() {
				r.Regressed = r.Status == lab.CheckNotMet
			} else {
				*r = lab.CheckResult{Check: r.Check, Title: r.Title, Status: lab.CheckMet}
			}
		}
		if was || r.Status == lab.CheckMet {
			met = append(met, c.ID())
		}
		all = all && r.Status == lab.CheckMet
	}
	return met, all
}

// state puts together what the API shows of an exercise.
func (p *progress) state(e *course.Exercise, row store.Exercise, results []lab.CheckResult) lab.ExerciseState {
	v := lab.ExerciseState{
		Course: p.l.opened.ID, Exercise: e.ID, Started: row.StartedIn(p.l.id), Done: !row.DoneAt.IsZero(), DoneAt: row.DoneAt,
		Hints: row.Hints, Opened: row.OpenHints(), Answers: row.Typed, Solved: row.Solved, Checks: results,
	}
	if v.Started && results != nil {
		return v
	}
	if !v.Started {
		for _, n := range p.waits(e) {
			v.Waits = append(v.Waits, n.ID)
		}
	}
	v.Checks = make([]lab.CheckResult, 0, len(e.Checks))
	for _, c := range e.Checks {
		r := lab.CheckResult{Check: c.ID(), Title: c.Title(), Status: lab.CheckUnknown}
		switch {
		case !v.Started && v.Done:
			r.Status = lab.CheckMet
		case !v.Started:
			r.Message = lab.Text{ZhTW: "這個練習還沒開始。", En: "This exercise hasn't been started."}
		default:
			r.Message = errNoCluster.Text
		}
		v.Checks = append(v.Checks, r)
	}
	return v
}

// push makes a lab event of a state that differs from the last one.
func (p *progress) push(s *standing, state lab.ExerciseState, done bool) {
	body, err := json.Marshal(state)
	if err != nil {
		p.l.log.Error("exercise state not encoded", "error", err)
		return
	}
	if string(body) == s.told {
		return
	}
	s.told = string(body)
	e := lab.Event{Verb: "check", Object: lab.ObjectRef{Kind: "Exercise", Name: state.Exercise}, State: body}
	if done {
		e.Reason = "done"
		e.Text = &lab.Text{ZhTW: "練習完成了！", En: "The exercise is done!"}
	}
	p.l.feed.Lab(e)
}
