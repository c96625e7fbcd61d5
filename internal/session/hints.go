package session

import (
	"context"
	"slices"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

// fit says how a hint suits what is wrong now.
type fit int

const (
	always fit = iota // it has no condition
	now               // its condition holds
	notNow            // it doesn't, or nobody could look
)

// fittingHints looks at the conditions of an exercise's hints.
func (p *progress) fittingHints(ctx context.Context, e *course.Exercise) []fit {
	row := p.row(e.ID)
	w := &world{l: p.l, r: p.l.ready(), live: true, since: row.StartEvent, begun: row.StartedAt, typed: row.Typed, guests: p.guestsOf(e)}
	fits := make([]fit, len(e.Hints))
	for i, h := range e.Hints {
		if h.When == nil || slices.Contains(row.OpenHints(), i) {
			continue
		}
		fits[i] = notNow
		if h.When.Run(ctx, w).Status == lab.CheckMet {
			fits[i] = now
		}
	}
	return fits
}

// nextHint is the first unopened hint whose condition holds now, else the next
// one without a condition, else, so that nobody is left without help, the next of all.
func nextHint(n int, opened []int, fits []fit) (int, bool) {
	for _, want := range []fit{now, always, notNow} {
		for i := range n {
			if fits[i] == want && !slices.Contains(opened, i) {
				return i, true
			}
		}
	}
	return 0, false
}
