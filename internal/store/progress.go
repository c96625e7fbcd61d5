package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"kubistro/internal/lab"
)

// Exercise is a learner's progress in one exercise. It is kept by learner and
// course, so that it survives a new session.
type Exercise struct {
	Learner  lab.LearnerID
	Course   string
	Exercise string
	// Session, StartedAt and StartEvent tell in which session its start state was
	// set up, when, and the number of the last event before that.
	Session    string
	StartedAt  time.Time
	StartEvent uint64
	DoneAt     time.Time         // zero until all checks were met at once; never goes back
	Hints      int               // how many have been opened
	Opened     []int             // which, in that order; empty in rows of old: the first ones
	Solved     bool              // "show me" was used
	Met        []string          // checks that were met at the last look or earlier, for regressions
	Typed      map[string]string // what the learner typed, by check
}

// StartedIn reports whether the start state was set up in this session.
func (e Exercise) StartedIn(session string) bool {
	return session != "" && e.Session == session && !e.StartedAt.IsZero()
}

// OpenHints lists which hints have been opened, in that order.
func (e Exercise) OpenHints() []int {
	out := slices.Clone(e.Opened)
	for i := 0; len(out) < e.Hints; i++ {
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

const exerciseColumns = `learner, course, exercise, session, started_at, start_event, done_at, hints, solved, met, typed, opened`

func scanExercise(r row) (Exercise, error) {
	var e Exercise
	var started, done int64
	var met, typed, opened string
	if err := r.Scan(&e.Learner, &e.Course, &e.Exercise, &e.Session, &started, &e.StartEvent, &done,
		&e.Hints, &e.Solved, &met, &typed, &opened); err != nil {
		return Exercise{}, err
	}
	e.StartedAt, e.DoneAt = fromNanos(started), fromNanos(done)
	if err := json.Unmarshal([]byte(met), &e.Met); err != nil {
		return Exercise{}, fmt.Errorf("met checks of %s: %w", e.Exercise, err)
	}
	if err := json.Unmarshal([]byte(typed), &e.Typed); err != nil {
		return Exercise{}, fmt.Errorf("typed answers of %s: %w", e.Exercise, err)
	}
	if err := json.Unmarshal([]byte(opened), &e.Opened); err != nil {
		return Exercise{}, fmt.Errorf("opened hints of %s: %w", e.Exercise, err)
	}
	return e, nil
}

// Exercises lists the learner's progress in a course, by exercise id; exercises
// never touched are absent.
func (s *Store) Exercises(ctx context.Context, learner lab.LearnerID, course string) (map[string]Exercise, error) {
	rows, err := s.read.QueryContext(ctx,
		`SELECT `+exerciseColumns+` FROM exercises WHERE learner = $1 AND course = $2`, learner, course)
	list, err := collect(rows, err, scanExercise)
	if err != nil {
		return nil, fmt.Errorf("list exercises: %w", err)
	}
	out := make(map[string]Exercise, len(list))
	for _, e := range list {
		out[e.Exercise] = e
	}
	return out, nil
}

// UpdateExercise reads the progress of an exercise (a fresh one when there is
// none), lets change alter it and writes it back, all in one transaction; change
// must not call the Store. It returns what was written. An error from change
// is returned as it is and nothing is written. CodeNotFound for an unknown learner.
func (s *Store) UpdateExercise(ctx context.Context, learner lab.LearnerID, course, exercise string, change func(*Exercise) error) (Exercise, error) {
	var e Exercise
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		var err error
		e, err = scanExercise(tx.QueryRowContext(ctx,
			`SELECT `+exerciseColumns+` FROM exercises WHERE learner = $1 AND course = $2 AND exercise = $3`,
			learner, course, exercise))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("read exercise: %w", err)
		}
		done := e.DoneAt
		if err := change(&e); err != nil {
			return err
		}
		if !done.IsZero() {
			e.DoneAt = done
		}
		e.Learner, e.Course, e.Exercise = learner, course, exercise
		return putExercise(ctx, tx, e)
	})
	if err != nil {
		return Exercise{}, err
	}
	return e, nil
}

func putExercise(ctx context.Context, tx *sql.Tx, e Exercise) error {
	met, err := json.Marshal(e.Met)
	if err != nil {
		return fmt.Errorf("encode met checks: %w", err)
	}
	typed, err := json.Marshal(e.Typed)
	if err != nil {
		return fmt.Errorf("encode typed answers: %w", err)
	}
	opened, err := json.Marshal(e.Opened)
	if err != nil {
		return fmt.Errorf("encode opened hints: %w", err)
	}
	_, err = tx.ExecContext(ctx,
		`INSERT INTO exercises (`+exerciseColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		 ON CONFLICT (learner, course, exercise) DO UPDATE SET
		   session = excluded.session, started_at = excluded.started_at, start_event = excluded.start_event,
		   done_at = excluded.done_at, hints = excluded.hints, solved = excluded.solved,
		   met = excluded.met, typed = excluded.typed, opened = excluded.opened`,
		e.Learner, e.Course, e.Exercise, e.Session, nanos(e.StartedAt), int64(e.StartEvent), nanos(e.DoneAt),
		e.Hints, e.Solved, string(met), string(typed), string(opened))
	switch {
	case isForeignKey(err):
		return noLearner()
	case err != nil:
		return fmt.Errorf("write exercise: %w", err)
	}
	return nil
}
