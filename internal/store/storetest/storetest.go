// Package storetest is the conformance suite of the store: every database that
// it can run on must pass it.
package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/lab"
	"kubistro/internal/store"
)

// Run tests a database. Open gives an empty one, and closes it when its test ends.
func Run(t *testing.T, open func(t *testing.T) *store.Store) {
	for _, tc := range []struct {
		name string
		test func(*testing.T, *store.Store)
	}{
		{"learners", testLearners},
		{"sessions", testSessions},
		{"a session's end", testEnd},
		{"exercises", testExercises},
		{"exercise updates at once", testExerciseRace},
		{"quiz answers", testAnswers},
		{"practice", testPractice},
		{"practice at once", testPracticeAtOnce},
		{"events", testEvents},
		{"events are pruned", testPrune},
		{"event writers and readers at once", testEventsConcurrently},
		{"tokens", testTokens},
		{"terminal history", testHistory},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, open(t)) })
	}
}

// at is a fixed time with nanoseconds, which must survive the database.
var at = time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code lab.Code) {
	t.Helper()
	var e *lab.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error = %v, want code %s", err, code)
	}
	if m := e.Text.Missing(); len(m) > 0 {
		t.Errorf("error %v has no text in %v", err, m)
	}
}

func wantEqual(t *testing.T, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// newSession adds a learner and a running session of that learner.
func newSession(t *testing.T, s *store.Store, learner, id string) store.Session {
	t.Helper()
	must(s.SeeLearner(t.Context(), lab.LearnerID(learner), at))(t)
	v := store.Session{ID: id, Learner: lab.LearnerID(learner), Course: "restaurant", Cluster: "c-" + id,
		Spec: lab.DefaultClusterSpec(), Created: at}
	ok(t, s.CreateSession(t.Context(), v))
	return v
}
