package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"kubistro/internal/lab"
)

// AppendEvents adds events to a session's stream in one transaction and drops
// what is older than the newest EventsKept. Numbers must go on from the last one
// without a gap (from 1 in a new session), or CodeConflict and nothing is
// written. CodeNotFound for a session that is unknown or has ended.
func (s *Store) AppendEvents(ctx context.Context, session string, events []lab.Event) error {
	if len(events) == 0 {
		return nil
	}
	// Encoding happens outside the transaction, so that other writers don't wait for it.
	frames := make([]string, len(events))
	for i, e := range events {
		b, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode event %d: %w", e.N, err)
		}
		frames[i] = string(b)
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		var last uint64
		err := tx.QueryRowContext(ctx,
			`SELECT coalesce((SELECT max(n) FROM events WHERE session = $1), 0) FROM sessions WHERE id = $1 AND ended = 0`,
			session).Scan(&last)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return noSession()
		case err != nil:
			return fmt.Errorf("find last event: %w", err)
		}
		return appendFrames(ctx, tx, session, last, events, frames)
	})
}

func appendFrames(ctx context.Context, tx *sql.Tx, session string, last uint64, events []lab.Event, frames []string) error {
	insert, err := tx.PrepareContext(ctx, `INSERT INTO events (session, n, frame) VALUES ($1, $2, $3)`)
	if err != nil {
		return fmt.Errorf("prepare append: %w", err)
	}
	defer func() { _ = insert.Close() }() // ends with the transaction anyway
	for i, e := range events {
		if e.N != last+1 {
			return lab.Fail(lab.CodeConflict, "事件編號不連續。", "The events' numbers have a gap.").
				Because(fmt.Errorf("event %d after %d in session %s", e.N, last, session))
		}
		if _, err := insert.ExecContext(ctx, session, int64(e.N), frames[i]); err != nil {
			return fmt.Errorf("append event %d: %w", e.N, err)
		}
		last = e.N
	}
	if last > EventsKept {
		if _, err := tx.ExecContext(ctx, `DELETE FROM events WHERE session = $1 AND n <= $2`, session, int64(last-EventsKept)); err != nil {
			return fmt.Errorf("drop old events: %w", err)
		}
	}
	return nil
}

// Events lists up to limit events after number after, oldest first.
func (s *Store) Events(ctx context.Context, session string, after uint64, limit int) ([]lab.Event, error) {
	rows, err := s.read.QueryContext(ctx,
		`SELECT frame FROM events WHERE session = $1 AND n > $2 ORDER BY n LIMIT $3`, session, int64(after), limit)
	out, err := collect(rows, err, func(r row) (lab.Event, error) {
		var frame string
		var e lab.Event
		if err := r.Scan(&frame); err != nil {
			return e, err
		}
		return e, json.Unmarshal([]byte(frame), &e)
	})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	return out, nil
}

// EventRange tells the numbers of the oldest and newest event that are kept; 0, 0 without any.
func (s *Store) EventRange(ctx context.Context, session string) (first, last uint64, err error) {
	err = s.read.QueryRowContext(ctx,
		`SELECT coalesce((SELECT min(n) FROM events WHERE session = $1), 0),
		        coalesce((SELECT max(n) FROM events WHERE session = $1), 0)`, session).Scan(&first, &last)
	if err != nil {
		return 0, 0, fmt.Errorf("find range of events: %w", err)
	}
	return first, last, nil
}
