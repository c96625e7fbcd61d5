package storetest

import (
	"sync"
	"testing"
	"time"

	"kubistro/internal/lab"
	"kubistro/internal/quiz"
	"kubistro/internal/store"
)

func answered(correct bool, when time.Time) func(quiz.Memory) quiz.Memory {
	return func(m quiz.Memory) quiz.Memory { return m.After(correct, when) }
}

func testPractice(t *testing.T, s *store.Store) {
	ctx := t.Context()
	_, err := s.Remember(ctx, "ann", "restaurant", "q1", answered(false, at))
	wantCode(t, err, lab.CodeNotFound)
	must(s.SeeLearner(ctx, "ann", at))(t)
	must(s.SeeLearner(ctx, "bob", at))(t)

	missed := quiz.Memory{Course: "restaurant", Question: "q2", Due: at.Add(quiz.Steps[0]), Answered: 1, Missed: 1, At: at}
	wantEqual(t, must(s.Remember(ctx, "ann", "restaurant", "q2", answered(false, at)))(t), missed)
	known := quiz.Memory{Course: "restaurant", Question: "q1", Correct: true, Answered: 1, At: at}
	wantEqual(t, must(s.Remember(ctx, "ann", "restaurant", "q1", answered(true, at)))(t), known)
	other := known
	other.Course, other.Question = "compose", "q2"
	wantEqual(t, must(s.Remember(ctx, "ann", "compose", "q2", answered(true, at)))(t), other)
	must(s.Remember(ctx, "bob", "restaurant", "q1", answered(true, at)))(t)
	wantEqual(t, must(s.Memories(ctx, "ann"))(t), []quiz.Memory{other, known, missed})

	later := missed.Due
	missed = missed.After(true, later)
	wantEqual(t, must(s.Remember(ctx, "ann", "restaurant", "q2", answered(true, later)))(t), missed)
	wantEqual(t, must(s.Memories(ctx, "ann"))(t), []quiz.Memory{other, known, missed})
}

// testPracticeAtOnce answers one question from many sides: none is lost.
func testPracticeAtOnce(t *testing.T, s *store.Store) {
	ctx := t.Context()
	must(s.SeeLearner(ctx, "ann", at))(t)
	const writers = 8
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			_, err := s.Remember(ctx, "ann", "restaurant", "q1", func(m quiz.Memory) quiz.Memory {
				m.Answered++
				return m
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := must(s.Memories(ctx, "ann"))(t); len(got) != 1 || got[0].Answered != writers {
		t.Errorf("%+v after %d answers at once", got, writers)
	}
}
