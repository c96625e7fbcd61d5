package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"kubistro/internal/lab"
	"kubistro/internal/store"
)

func testAnswers(t *testing.T, s *store.Store) {
	ctx := t.Context()
	a := store.Answer{Learner: "ann", Course: "restaurant", Level: "1", Question: "q2", Answer: json.RawMessage(`["b","c"]`), At: at}
	_, err := s.SaveAnswer(ctx, a)
	wantCode(t, err, lab.CodeNotFound)
	must(s.SeeLearner(ctx, "ann", at))(t)

	want := a
	want.Attempts = 1
	wantEqual(t, must(s.SaveAnswer(ctx, a))(t), want)
	a.Answer, a.Correct, a.At = json.RawMessage(`["b"]`), true, at.Add(time.Minute)
	want = a
	want.Attempts = 2
	wantEqual(t, must(s.SaveAnswer(ctx, a))(t), want)

	earlier, next := a, a
	earlier.Question, next.Level, next.Question = "q1", "2", "q1"
	earlier, next = must(s.SaveAnswer(ctx, earlier))(t), must(s.SaveAnswer(ctx, next))(t)
	wantEqual(t, must(s.Answers(ctx, "ann", "restaurant", "1"))(t), []store.Answer{earlier, want})
	wantEqual(t, must(s.Answers(ctx, "ann", "restaurant", ""))(t), []store.Answer{earlier, want, next})
	wantEqual(t, len(must(s.Answers(ctx, "bob", "restaurant", ""))(t)), 0)

	bad := a
	bad.Answer = json.RawMessage(`["b"`)
	_, err = s.SaveAnswer(ctx, bad)
	wantCode(t, err, lab.CodeInvalid)

	ok(t, s.ClearAnswers(ctx, "ann", "restaurant", "1"))
	wantEqual(t, must(s.Answers(ctx, "ann", "restaurant", ""))(t), []store.Answer{next})
}
