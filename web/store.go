package web

import (
	"context"

	"kubistro/internal/lab"
	"kubistro/internal/quiz"
)

// Store is what the server remembers of learners by itself.
type Store interface {
	// Known tells whether the learner has been here before.
	Known(ctx context.Context, id lab.LearnerID) (bool, error)
	// See notes that the learner was here, and makes them known at the first visit.
	See(ctx context.Context, id lab.LearnerID) error
	SetLang(ctx context.Context, id lab.LearnerID, lang lab.Lang) error
	Answers
	Practice
	Progress
}

// Answers is the learner's quiz answers.
type Answers interface {
	SaveAnswer(ctx context.Context, a Answer) (Answer, error)
	// Answers lists the answers in a course; an empty level means all.
	Answers(ctx context.Context, learner lab.LearnerID, course, level string) ([]Answer, error)
	ClearAnswers(ctx context.Context, learner lab.LearnerID, course, level string) error
}

// Practice is what is kept of quiz questions that come back.
type Practice interface {
	Memories(ctx context.Context, learner lab.LearnerID) ([]quiz.Memory, error)
	// Remember changes what is kept of a question; change gets an empty memory when there is none.
	Remember(ctx context.Context, learner lab.LearnerID, course, question string, change func(quiz.Memory) quiz.Memory) (quiz.Memory, error)
}

// Progress is what is kept of the learner's work.
type Progress interface {
	// Done tells the exercises of a course that the learner has done.
	Done(ctx context.Context, learner lab.LearnerID, course string) (map[string]bool, error)
	// Record lists up to limit kept events of a session after number after, oldest first.
	Record(ctx context.Context, session string, after uint64, limit int) ([]lab.Event, error)
}

// Answer is a learner's answer to a quiz question: ids of options.
type Answer struct {
	Learner  lab.LearnerID
	Course   string
	Level    string
	Question string
	Options  []string
	Correct  bool
	Attempts int
}
