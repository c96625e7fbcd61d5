package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// AddHistory adds lines that the learner entered in the terminal and drops all
// but the newest HistoryKept. CodeNotFound for a session that is unknown or has ended.
func (s *Store) AddHistory(ctx context.Context, session string, lines ...string) error {
	if len(lines) == 0 {
		return nil
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		var last int64
		err := tx.QueryRowContext(ctx,
			`SELECT coalesce((SELECT max(n) FROM history WHERE session = $1), 0) FROM sessions WHERE id = $1 AND ended = 0`,
			session).Scan(&last)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return noSession()
		case err != nil:
			return fmt.Errorf("find last history line: %w", err)
		}
		for _, l := range lines {
			last++
			if _, err := tx.ExecContext(ctx, `INSERT INTO history (session, n, line) VALUES ($1, $2, $3)`, session, last, l); err != nil {
				return fmt.Errorf("add history: %w", err)
			}
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM history WHERE session = $1 AND n <= $2`, session, last-HistoryKept); err != nil {
			return fmt.Errorf("drop old history: %w", err)
		}
		return nil
	})
}

// History lists the session's kept lines, oldest first.
func (s *Store) History(ctx context.Context, session string) ([]string, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT line FROM history WHERE session = $1 ORDER BY n`, session)
	out, err := collect(rows, err, func(r row) (string, error) {
		var line string
		err := r.Scan(&line)
		return line, err
	})
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return out, nil
}
