package web

import (
	"context"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

// tally counts what there is to do and what is done.
type tally struct{ done, total int }

func (t tally) percent() int {
	if t.total == 0 {
		return 0
	}
	return t.done * 100 / t.total
}

// courseProgress is a learner's way through a course: exercises done and
// questions answered right, of all that the open levels have.
type courseProgress struct {
	levels  map[string]tally
	done    map[string]bool
	answers map[string]Answer
}

func (p courseProgress) percent() int {
	var all tally
	for _, t := range p.levels {
		all.done += t.done
		all.total += t.total
	}
	return all.percent()
}

// started reports whether the learner has done anything here yet.
func (p courseProgress) started() bool { return len(p.done)+len(p.answers) > 0 }

func (s *Server) progressOf(ctx context.Context, learner lab.LearnerID, c *course.Course) (courseProgress, error) {
	p := courseProgress{levels: map[string]tally{}, answers: map[string]Answer{}}
	var err error
	if p.done, err = s.Store.Done(ctx, learner, c.ID); err != nil {
		return p, err
	}
	answers, err := s.Store.Answers(ctx, learner, c.ID, "")
	if err != nil {
		return p, err
	}
	for _, a := range answers {
		p.answers[a.Question] = a
	}
	for _, l := range c.Levels {
		if l.Coming {
			continue
		}
		var t tally
		for _, e := range l.Exercises {
			t.total++
			if p.done[e.ID] {
				t.done++
			}
		}
		for _, q := range l.Quiz {
			t.total++
			if p.answers[q.ID].Correct {
				t.done++
			}
		}
		p.levels[l.ID] = t
	}
	return p, nil
}
