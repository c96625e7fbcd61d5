package quiz

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestARightAnswerNeverComesBack(t *testing.T) {
	m := Memory{}.After(true, start)
	if want := (Memory{Correct: true, Answered: 1, At: start}); m != want {
		t.Error(cmp.Diff(want, m))
	}
	if m.DueAt(start.AddDate(10, 0, 0)) {
		t.Error("it is due")
	}
}

func TestAMissedQuestionComesBackLaterAndLater(t *testing.T) {
	now := start
	m := Memory{}.After(false, now)
	for i, days := range []int{1, 3, 7, 21} {
		due := now.Add(time.Duration(days) * 24 * time.Hour)
		if !m.Due.Equal(due) {
			t.Fatalf("pause %d: due %v, want %v", i, m.Due, due)
		}
		if m.DueAt(due.Add(-time.Nanosecond)) || !m.DueAt(due) {
			t.Fatalf("pause %d: not due exactly at %v", i, due)
		}
		now = due.Add(time.Hour)
		m = m.After(true, now)
	}
	if want := (Memory{Correct: true, Answered: 5, Missed: 1, At: now}); m != want {
		t.Error(cmp.Diff(want, m))
	}
}

func TestAWrongAnswerGoesBackToTheFirstPause(t *testing.T) {
	m := Memory{}.After(false, start)
	m = m.After(true, m.Due)
	if m.Step != 1 {
		t.Fatalf("step %d after a right answer", m.Step)
	}
	for name, at := range map[string]time.Time{"when due": m.Due, "too early": m.At.Add(time.Minute)} {
		n := m.After(false, at)
		want := Memory{Step: 0, Due: at.Add(24 * time.Hour), Answered: 3, Missed: 2, At: at}
		if n != want {
			t.Errorf("%s: %s", name, cmp.Diff(want, n))
		}
	}
}

func TestARightAnswerTooEarlyMovesNothing(t *testing.T) {
	m := Memory{}.After(false, start)
	n := m.After(true, start.Add(time.Minute))
	if !n.Due.Equal(m.Due) || n.Step != 0 || !n.Correct {
		t.Errorf("%+v", n)
	}
}

func TestAnAnswerCountsOnce(t *testing.T) {
	m := Memory{}.After(false, start)
	for name, at := range map[string]time.Time{"sent twice": start, "older": start.Add(-time.Hour)} {
		if n := m.After(true, at); n != m {
			t.Errorf("%s: %s", name, cmp.Diff(m, n))
		}
	}
}
