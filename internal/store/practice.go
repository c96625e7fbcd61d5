package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"kubistro/internal/lab"
	"kubistro/internal/quiz"
)

const practiceColumns = `course, question, step, due, correct, answered, missed, at`

func scanMemory(r row) (quiz.Memory, error) {
	var m quiz.Memory
	var due, at int64
	if err := r.Scan(&m.Course, &m.Question, &m.Step, &due, &m.Correct, &m.Answered, &m.Missed, &at); err != nil {
		return quiz.Memory{}, err
	}
	m.Due, m.At = fromNanos(due), fromNanos(at)
	return m, nil
}

// Memories lists what is kept of the learner's answers to quiz questions, by course and question.
func (s *Store) Memories(ctx context.Context, learner lab.LearnerID) ([]quiz.Memory, error) {
	rows, err := s.read.QueryContext(ctx,
		`SELECT `+practiceColumns+` FROM practice WHERE learner = $1 ORDER BY course, question`, learner)
	out, err := collect(rows, err, scanMemory)
	if err != nil {
		return nil, fmt.Errorf("list practice: %w", err)
	}
	return out, nil
}

// Remember changes what is kept of one question. Change gets an empty memory of the
// question when there is none yet, and is called within a transaction: it must be quick
// and must not call the store. CodeNotFound for an unknown learner.
func (s *Store) Remember(ctx context.Context, learner lab.LearnerID, course, question string, change func(quiz.Memory) quiz.Memory) (quiz.Memory, error) {
	var m quiz.Memory
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		var err error
		m, err = scanMemory(tx.QueryRowContext(ctx,
			`SELECT `+practiceColumns+` FROM practice WHERE learner = $1 AND course = $2 AND question = $3`, learner, course, question))
		if errors.Is(err, sql.ErrNoRows) {
			m, err = quiz.Memory{}, nil
		}
		if err != nil {
			return err
		}
		m = change(m)
		m.Course, m.Question = course, question
		_, err = tx.ExecContext(ctx,
			`INSERT INTO practice (learner, `+practiceColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			 ON CONFLICT (learner, course, question) DO UPDATE SET
			   step = excluded.step, due = excluded.due, correct = excluded.correct,
			   answered = excluded.answered, missed = excluded.missed, at = excluded.at`,
			learner, course, question, m.Step, nanos(m.Due), m.Correct, m.Answered, m.Missed, nanos(m.At))
		return err
	})
	switch {
	case isForeignKey(err):
		return quiz.Memory{}, noLearner()
	case err != nil:
		return quiz.Memory{}, fmt.Errorf("remember question: %w", err)
	}
	return m, nil
}
