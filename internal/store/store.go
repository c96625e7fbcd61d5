// Package store keeps what must survive a restart of the server: learners,
// sessions, progress, quiz answers and when questions come back, event streams, kubeconfig tokens and
// terminal history. It owns the SQL and its migrations; it knows nothing of
// clusters, lessons or HTTP.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Limits of what is kept.
const (
	EventsKept  = 20_000 // newest events of a session
	HistoryKept = 500    // newest terminal lines of a session
)

// Store is the server's database. All methods are safe for concurrent use. A
// row that isn't there is a *lab.Error with CodeNotFound where a method's
// comment says so.
type Store struct {
	// SQLite has one writer at a time. One connection for all writes makes them
	// wait here, in order, instead of retrying on a busy database.
	write *sql.DB
	read  *sql.DB
}

// Close waits for running calls and closes the database.
func (s *Store) Close() error {
	return errors.Join(s.read.Close(), s.write.Close())
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	if err := s.read.QueryRowContext(ctx, `SELECT 1 FROM learners UNION SELECT 1`).Scan(&one); err != nil {
		return fmt.Errorf("ask the database: %w", err)
	}
	return nil
}

// inTx runs f in a write transaction and commits unless it fails.
func (s *Store) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after Commit it only says that it is done
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// nanos is the form of a time in the database.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// row is what *sql.Row and *sql.Rows have in common.
type row interface{ Scan(dest ...any) error }

// collect reads all rows of a query with scan.
func collect[T any](rows *sql.Rows, err error, scan func(row) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // an error while reading is in rows.Err
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}
