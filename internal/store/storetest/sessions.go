package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"kubistro/internal/lab"
	"kubistro/internal/store"
)

func testLearners(t *testing.T, s *store.Store) {
	ctx := t.Context()
	_, err := s.Learner(ctx, "ann")
	wantCode(t, err, lab.CodeNotFound)
	wantCode(t, s.SetLang(ctx, "ann", lab.En), lab.CodeNotFound)

	want := store.Learner{ID: "ann", Created: at, LastSeen: at}
	wantEqual(t, must(s.SeeLearner(ctx, "ann", at))(t), want)
	want.LastSeen = at.Add(time.Hour)
	wantEqual(t, must(s.SeeLearner(ctx, "ann", want.LastSeen))(t), want)
	wantEqual(t, must(s.SeeLearner(ctx, "ann", at))(t), want) // a late writer doesn't turn the clock back

	ok(t, s.SetLang(ctx, "ann", lab.ZhTW))
	want.Lang = lab.ZhTW
	wantEqual(t, must(s.Learner(ctx, "ann"))(t), want)
	ok(t, s.Ping(ctx))
}

func testSessions(t *testing.T, s *store.Store) {
	ctx := t.Context()
	stranger := store.Session{ID: "x", Learner: "nobody", Course: "restaurant", Created: at}
	wantCode(t, s.CreateSession(ctx, stranger), lab.CodeNotFound)

	first := newSession(t, s, "ann", "s1")
	wantEqual(t, must(s.Session(ctx, "s1"))(t), first)
	wantEqual(t, must(s.RunningSession(ctx, "ann", "restaurant"))(t), first)

	twice := first
	twice.ID = "s2"
	wantCode(t, s.CreateSession(ctx, twice), lab.CodeConflict)

	other := newSession(t, s, "bob", "s3")
	wantEqual(t, must(s.RunningSessions(ctx))(t), []store.Session{first, other})

	first.Cluster, first.Spec = "new", lab.ClusterSpec{Kitchens: first.Spec.Kitchens[:1]}
	ok(t, s.SetCluster(ctx, "s1", first.Cluster, first.Spec))
	wantEqual(t, must(s.Session(ctx, "s1"))(t), first)
	wantCode(t, s.SetCluster(ctx, "s9", "c", first.Spec), lab.CodeNotFound)
	_, err := s.Session(ctx, "s9")
	wantCode(t, err, lab.CodeNotFound)
	_, err = s.RunningSession(ctx, "ann", "another course")
	wantCode(t, err, lab.CodeNotFound)
}

func testEnd(t *testing.T, s *store.Store) {
	ctx := t.Context()
	first := newSession(t, s, "ann", "s1")
	other := newSession(t, s, "bob", "s2")
	secret := must(s.NewToken(ctx, store.Token{Session: "s1", Learner: "ann", Created: at, Expires: at.Add(time.Hour)}))(t)
	for _, id := range []string{"s1", "s2"} {
		ok(t, s.AppendEvents(ctx, id, events(1, 3)))
		ok(t, s.AddHistory(ctx, id, "kubectl get pods"))
	}
	must(s.UpdateExercise(ctx, "ann", "restaurant", "soup", func(e *store.Exercise) error { e.Hints = 2; return nil }))(t)

	wantCode(t, s.EndSession(ctx, "s9", at), lab.CodeNotFound)
	first.Ended = at.Add(time.Minute)
	ok(t, s.EndSession(ctx, "s1", first.Ended))
	ok(t, s.EndSession(ctx, "s1", at.Add(time.Hour)))
	wantEqual(t, must(s.Session(ctx, "s1"))(t), first)

	_, err := s.RunningSession(ctx, "ann", "restaurant")
	wantCode(t, err, lab.CodeNotFound)
	_, err = s.Token(ctx, secret, at)
	wantCode(t, err, lab.CodeNotFound)
	wantCode(t, s.AppendEvents(ctx, "s1", events(4, 1)), lab.CodeNotFound)
	wantCode(t, s.AddHistory(ctx, "s1", "ls"), lab.CodeNotFound)
	wantEqual(t, len(must(s.Events(ctx, "s1", 0, 10))(t)), 0)
	wantEqual(t, len(must(s.History(ctx, "s1"))(t)), 0)
	wantEqual(t, must(s.Exercises(ctx, "ann", "restaurant"))(t)["soup"].Hints, 2) // progress stays

	// The other one is untouched, and the learner can start anew.
	wantEqual(t, must(s.RunningSessions(ctx))(t), []store.Session{other})
	wantEqual(t, len(must(s.Events(ctx, "s2", 0, 10))(t)), 3)
	again := first
	again.ID, again.Created, again.Ended = "s3", at.Add(2*time.Hour), time.Time{}
	ok(t, s.CreateSession(ctx, again))
	wantEqual(t, must(s.LearnerSessions(ctx, "ann"))(t), []store.Session{again, first})
}

func testExercises(t *testing.T, s *store.Store) {
	ctx := t.Context()
	must(s.SeeLearner(ctx, "ann", at))(t)
	wantEqual(t, must(s.Exercises(ctx, "ann", "restaurant"))(t), map[string]store.Exercise{})

	want := store.Exercise{Learner: "ann", Course: "restaurant", Exercise: "soup", Session: "s1", StartedAt: at, StartEvent: 41,
		DoneAt: at.Add(time.Minute), Hints: 1, Solved: true, Met: []string{"a", "b"}, Typed: map[string]string{"node": "廚房 kitchen-2"}}
	wantEqual(t, must(s.UpdateExercise(ctx, "ann", "restaurant", "soup", func(e *store.Exercise) error {
		*e = want
		e.Learner, e.Course, e.Exercise = "", "", "" // the store knows them
		return nil
	}))(t), want)
	wantEqual(t, must(s.Exercises(ctx, "ann", "restaurant"))(t), map[string]store.Exercise{"soup": want})
	wantEqual(t, []bool{want.StartedIn("s1"), want.StartedIn("s2")}, []bool{true, false})

	want.Hints = 2
	got := must(s.UpdateExercise(ctx, "ann", "restaurant", "soup", func(e *store.Exercise) error {
		e.Hints++
		e.DoneAt = time.Time{} // done stays done
		return nil
	}))(t)
	wantEqual(t, got, want)

	refuse := errors.New("no")
	if _, err := s.UpdateExercise(ctx, "ann", "restaurant", "soup", func(e *store.Exercise) error { e.Hints = 9; return refuse }); !errors.Is(err, refuse) {
		t.Errorf("error = %v, want the one of change", err)
	}
	wantEqual(t, must(s.Exercises(ctx, "ann", "restaurant"))(t)["soup"], want)
	_, err := s.UpdateExercise(ctx, "nobody", "restaurant", "soup", func(*store.Exercise) error { return nil })
	wantCode(t, err, lab.CodeNotFound)
}

func testExerciseRace(t *testing.T, s *store.Store) {
	ctx := t.Context()
	must(s.SeeLearner(ctx, "ann", at))(t)
	const n = 40
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if _, err := s.UpdateExercise(ctx, "ann", "restaurant", "soup", func(e *store.Exercise) error { e.Hints++; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantEqual(t, must(s.Exercises(ctx, "ann", "restaurant"))(t)["soup"].Hints, n)
}

func testTokens(t *testing.T, s *store.Store) {
	ctx := t.Context()
	newSession(t, s, "ann", "s1")
	want := store.Token{Session: "s1", Learner: "ann", Created: at, Expires: at.Add(time.Hour)}
	a, b := must(s.NewToken(ctx, want))(t), must(s.NewToken(ctx, want))(t)
	if a == b || len(a) < 40 {
		t.Errorf("secrets %q and %q aren't long and different", a, b)
	}
	wantEqual(t, must(s.Token(ctx, a, at))(t), want)
	for name, secret := range map[string]string{"unknown": a + "x", "empty": ""} {
		_, err := s.Token(ctx, secret, at)
		if err == nil {
			t.Errorf("%s secret was accepted", name)
		}
	}
	_, err := s.Token(ctx, a, want.Expires)
	wantCode(t, err, lab.CodeNotFound)
	ok(t, s.RevokeTokens(ctx, "s1"))
	for _, secret := range []string{a, b} {
		_, err := s.Token(ctx, secret, at)
		wantCode(t, err, lab.CodeNotFound)
	}
	_, err = s.NewToken(ctx, store.Token{Session: "s9", Learner: "ann", Created: at, Expires: at})
	wantCode(t, err, lab.CodeNotFound)
}

func testHistory(t *testing.T, s *store.Store) {
	ctx := t.Context()
	newSession(t, s, "ann", "s1")
	var lines []string
	for i := range store.HistoryKept + 20 {
		lines = append(lines, fmt.Sprintf("echo %d", i))
	}
	ok(t, s.AddHistory(ctx, "s1", lines[:10]...))
	ok(t, s.AddHistory(ctx, "s1"))
	wantEqual(t, must(s.History(ctx, "s1"))(t), lines[:10])
	ok(t, s.AddHistory(ctx, "s1", lines[10:]...))
	wantEqual(t, must(s.History(ctx, "s1"))(t), lines[20:])
	wantCode(t, s.AddHistory(ctx, "s9", "ls"), lab.CodeNotFound)
}
