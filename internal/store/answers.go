package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"kubistro/internal/lab"
)

// Answer is a learner's answer to a quiz question.
type Answer struct {
	Learner  lab.LearnerID
	Course   string
	Level    string
	Question string
	Answer   json.RawMessage // the last one, in the form of its kind of question
	Correct  bool
	Attempts int
	At       time.Time
}

const answerColumns = `learner, course, level, question, answer, correct, attempts, at`

func scanAnswer(r row) (Answer, error) {
	var a Answer
	var answer string
	var at int64
	if err := r.Scan(&a.Learner, &a.Course, &a.Level, &a.Question, &answer, &a.Correct, &a.Attempts, &at); err != nil {
		return Answer{}, err
	}
	a.Answer, a.At = json.RawMessage(answer), fromNanos(at)
	return a, nil
}

// SaveAnswer keeps an answer in place of the former one. Attempts is counted
// here; the result carries the count. CodeNotFound for an unknown learner,
// CodeInvalid when Answer isn't JSON.
func (s *Store) SaveAnswer(ctx context.Context, a Answer) (Answer, error) {
	if !json.Valid(a.Answer) {
		return Answer{}, lab.Fail(lab.CodeInvalid, "看不懂這個答案的格式。", "The answer isn't in a form that can be read.")
	}
	saved, err := scanAnswer(s.write.QueryRowContext(ctx,
		`INSERT INTO answers (`+answerColumns+`) VALUES ($1, $2, $3, $4, $5, $6, 1, $7)
		 ON CONFLICT (learner, course, level, question) DO UPDATE SET
		   answer = excluded.answer, correct = excluded.correct, at = excluded.at, attempts = answers.attempts + 1
		 RETURNING `+answerColumns,
		a.Learner, a.Course, a.Level, a.Question, string(a.Answer), a.Correct, nanos(a.At)))
	switch {
	case isForeignKey(err):
		return Answer{}, noLearner()
	case err != nil:
		return Answer{}, fmt.Errorf("save answer: %w", err)
	}
	return saved, nil
}

// Answers lists the learner's answers in a course, by level and question. An empty level means all.
func (s *Store) Answers(ctx context.Context, learner lab.LearnerID, course, level string) ([]Answer, error) {
	rows, err := s.read.QueryContext(ctx,
		`SELECT `+answerColumns+` FROM answers
		 WHERE learner = $1 AND course = $2 AND ($3 = '' OR level = $3) ORDER BY level, question`, learner, course, level)
	out, err := collect(rows, err, scanAnswer)
	if err != nil {
		return nil, fmt.Errorf("list answers: %w", err)
	}
	return out, nil
}

// ClearAnswers forgets the learner's answers of a level: the quiz is taken again.
func (s *Store) ClearAnswers(ctx context.Context, learner lab.LearnerID, course, level string) error {
	if _, err := s.write.ExecContext(ctx,
		`DELETE FROM answers WHERE learner = $1 AND course = $2 AND level = $3`, learner, course, level); err != nil {
		return fmt.Errorf("clear answers: %w", err)
	}
	return nil
}
