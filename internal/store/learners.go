package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"kubistro/internal/lab"
)

// Learner is somebody with a cookie.
type Learner struct {
	ID       lab.LearnerID
	Created  time.Time
	LastSeen time.Time
	Lang     lab.Lang // empty: not chosen, the browser's is used
}

const learnerColumns = `id, created, last_seen, lang`

func scanLearner(r row) (Learner, error) {
	var l Learner
	var created, seen int64
	if err := r.Scan(&l.ID, &created, &seen, &l.Lang); err != nil {
		return Learner{}, err
	}
	l.Created, l.LastSeen = fromNanos(created), fromNanos(seen)
	return l, nil
}

// SeeLearner notes that the learner was seen at time at, and makes the row at
// the first visit. An earlier time than the one known changes nothing.
func (s *Store) SeeLearner(ctx context.Context, id lab.LearnerID, at time.Time) (Learner, error) {
	l, err := scanLearner(s.write.QueryRowContext(ctx,
		`INSERT INTO learners (id, created, last_seen) VALUES ($1, $2, $2)
		 ON CONFLICT (id) DO UPDATE SET last_seen =
		   CASE WHEN excluded.last_seen > learners.last_seen THEN excluded.last_seen ELSE learners.last_seen END
		 RETURNING `+learnerColumns, id, nanos(at)))
	if err != nil {
		return Learner{}, fmt.Errorf("see learner: %w", err)
	}
	return l, nil
}

// Learner finds a learner; CodeNotFound for an unknown one.
func (s *Store) Learner(ctx context.Context, id lab.LearnerID) (Learner, error) {
	l, err := scanLearner(s.read.QueryRowContext(ctx, `SELECT `+learnerColumns+` FROM learners WHERE id = $1`, id))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Learner{}, noLearner()
	case err != nil:
		return Learner{}, fmt.Errorf("read learner: %w", err)
	}
	return l, nil
}

// SetLang keeps the language that the learner chose; CodeNotFound for an unknown learner.
func (s *Store) SetLang(ctx context.Context, id lab.LearnerID, lang lab.Lang) error {
	res, err := s.write.ExecContext(ctx, `UPDATE learners SET lang = $2 WHERE id = $1`, id, lang)
	if err != nil {
		return fmt.Errorf("set language: %w", err)
	}
	return mustTouch(res, noLearner())
}

// mustTouch returns missing when a statement changed no row.
func mustTouch(res sql.Result, missing error) error {
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("count changed rows: %w", err)
	}
	if n == 0 {
		return missing
	}
	return nil
}

func noLearner() error {
	return lab.Fail(lab.CodeNotFound, "找不到這位學員。請重新整理頁面。", "There is no such learner. Reload the page.")
}
