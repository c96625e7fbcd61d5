package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"kubistro/internal/lab"
)

// Session is a learner's work on a course, with the cluster that belongs to it.
type Session struct {
	ID      string
	Learner lab.LearnerID
	Course  string
	Cluster string // the Manager's id; empty until one was claimed
	Spec    lab.ClusterSpec
	Created time.Time
	Ended   time.Time // zero while it runs
}

const sessionColumns = `id, learner, course, cluster, spec, created, ended`

func scanSession(r row) (Session, error) {
	var v Session
	var spec string
	var created, ended int64
	if err := r.Scan(&v.ID, &v.Learner, &v.Course, &v.Cluster, &spec, &created, &ended); err != nil {
		return Session{}, err
	}
	if err := json.Unmarshal([]byte(spec), &v.Spec); err != nil {
		return Session{}, fmt.Errorf("spec of session %s: %w", v.ID, err)
	}
	v.Created, v.Ended = fromNanos(created), fromNanos(ended)
	return v, nil
}

// CreateSession adds a session. CodeConflict when the learner already has a
// running one of this course or the id is taken; CodeNotFound for an unknown learner.
func (s *Store) CreateSession(ctx context.Context, v Session) error {
	spec, err := json.Marshal(v.Spec)
	if err != nil {
		return fmt.Errorf("encode spec: %w", err)
	}
	_, err = s.write.ExecContext(ctx,
		`INSERT INTO sessions (`+sessionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		v.ID, v.Learner, v.Course, v.Cluster, string(spec), nanos(v.Created), nanos(v.Ended))
	switch {
	case isUnique(err):
		return lab.Fail(lab.CodeConflict,
			"你在這門課已經有進行中的實驗室了。", "You already have a running lab of this course.").Because(err)
	case isForeignKey(err):
		return noLearner()
	case err != nil:
		return fmt.Errorf("add session: %w", err)
	}
	return nil
}

// Session finds a session, running or ended; CodeNotFound when there is none.
func (s *Store) Session(ctx context.Context, id string) (Session, error) {
	return s.oneSession(ctx, `WHERE id = $1`, id)
}

// RunningSession finds the learner's running session of a course; CodeNotFound when there is none.
func (s *Store) RunningSession(ctx context.Context, learner lab.LearnerID, course string) (Session, error) {
	return s.oneSession(ctx, `WHERE learner = $1 AND course = $2 AND ended = 0`, learner, course)
}

func (s *Store) oneSession(ctx context.Context, where string, args ...any) (Session, error) {
	v, err := scanSession(s.read.QueryRowContext(ctx, `SELECT `+sessionColumns+` FROM sessions `+where, args...))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Session{}, noSession()
	case err != nil:
		return Session{}, fmt.Errorf("read session: %w", err)
	}
	return v, nil
}

// LearnerSessions lists a learner's sessions, newest first, ended ones too.
func (s *Store) LearnerSessions(ctx context.Context, learner lab.LearnerID) ([]Session, error) {
	return s.sessions(ctx, `WHERE learner = $1 ORDER BY created DESC, id`, learner)
}

// RunningSessions lists all sessions that haven't ended, oldest first: for recovery.
func (s *Store) RunningSessions(ctx context.Context) ([]Session, error) {
	return s.sessions(ctx, `WHERE ended = 0 ORDER BY created, id`)
}

func (s *Store) sessions(ctx context.Context, where string, args ...any) ([]Session, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+sessionColumns+` FROM sessions `+where, args...)
	out, err := collect(rows, err, scanSession)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return out, nil
}

// SetCluster notes which cluster a session has now; CodeNotFound for an unknown session.
func (s *Store) SetCluster(ctx context.Context, session, cluster string, spec lab.ClusterSpec) error {
	b, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode spec: %w", err)
	}
	res, err := s.write.ExecContext(ctx, `UPDATE sessions SET cluster = $2, spec = $3 WHERE id = $1`, session, cluster, string(b))
	if err != nil {
		return fmt.Errorf("set cluster: %w", err)
	}
	return mustTouch(res, noSession())
}

// EndSession ends a session, revokes its tokens and drops its events and
// terminal history. Progress stays. Ending an ended one changes nothing;
// CodeNotFound for an unknown session.
func (s *Store) EndSession(ctx context.Context, id string, at time.Time) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx,
			`UPDATE sessions SET ended = CASE WHEN ended = 0 THEN $2 ELSE ended END WHERE id = $1`, id, nanos(at))
		if err != nil {
			return fmt.Errorf("end session: %w", err)
		}
		if err := mustTouch(res, noSession()); err != nil {
			return err
		}
		for _, q := range []string{
			`UPDATE tokens SET revoked = TRUE WHERE session = $1`,
			`DELETE FROM events WHERE session = $1`,
			`DELETE FROM history WHERE session = $1`,
		} {
			if _, err := tx.ExecContext(ctx, q, id); err != nil {
				return fmt.Errorf("end session: %w", err)
			}
		}
		return nil
	})
}

func noSession() error {
	return lab.Fail(lab.CodeNotFound, "找不到這個實驗室，可能已經結束了。", "There is no such lab; it may have ended.")
}

func isUnique(err error) bool {
	return hasCode(err, sqlite3.SQLITE_CONSTRAINT_UNIQUE) || hasCode(err, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

func isForeignKey(err error) bool { return hasCode(err, sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY) }

func hasCode(err error, code int) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == code
}
