package webtest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"kubistro/internal/lab"
	"kubistro/internal/quiz"
	"kubistro/web"
)

// Store is an in-memory web.Store.
type Store struct {
	lab *Lab

	mu       sync.Mutex
	learners map[lab.LearnerID]lab.Lang
	answers  []web.Answer
	memories map[lab.LearnerID][]quiz.Memory
	done     map[string]bool
}

// NewStore makes an empty Store whose record is that of l's sessions.
func NewStore(l *Lab) *Store {
	return &Store{lab: l, learners: map[lab.LearnerID]lab.Lang{}, memories: map[lab.LearnerID][]quiz.Memory{}, done: map[string]bool{}}
}

var _ web.Store = (*Store)(nil)

// Learners counts who was seen.
func (s *Store) Learners() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.learners)
}

// SetDone marks an exercise as done for everybody.
func (s *Store) SetDone(exercise string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[exercise] = true
}

// Known is part of web.Store.
func (s *Store) Known(_ context.Context, id lab.LearnerID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.learners[id]
	return known, nil
}

// See is part of web.Store.
func (s *Store) See(_ context.Context, id lab.LearnerID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.learners[id]; !known {
		s.learners[id] = ""
	}
	return nil
}

// SetLang is part of web.Store.
func (s *Store) SetLang(_ context.Context, id lab.LearnerID, l lab.Lang) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learners[id] = l
	return nil
}

// SaveAnswer is part of web.Store.
func (s *Store) SaveAnswer(_ context.Context, a web.Answer) (web.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, old := range s.answers {
		if old.Learner == a.Learner && old.Question == a.Question {
			a.Attempts = old.Attempts + 1
			s.answers[i] = a
			return a, nil
		}
	}
	a.Attempts = 1
	s.answers = append(s.answers, a)
	return a, nil
}

// Answers is part of web.Store.
func (s *Store) Answers(_ context.Context, learner lab.LearnerID, course, level string) ([]web.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []web.Answer
	for _, a := range s.answers {
		if a.Learner == learner && a.Course == course && (level == "" || a.Level == level) {
			out = append(out, a)
		}
	}
	return out, nil
}

// ClearAnswers is part of web.Store.
func (s *Store) ClearAnswers(_ context.Context, learner lab.LearnerID, course, level string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept []web.Answer
	for _, a := range s.answers {
		if a.Learner != learner || a.Course != course || a.Level != level {
			kept = append(kept, a)
		}
	}
	s.answers = kept
	return nil
}

// Memories is part of web.Store.
func (s *Store) Memories(_ context.Context, learner lab.LearnerID) ([]quiz.Memory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.memories[learner]), nil
}

// Remember is part of web.Store.
func (s *Store) Remember(_ context.Context, learner lab.LearnerID, course, question string, change func(quiz.Memory) quiz.Memory) (quiz.Memory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := func(m quiz.Memory) bool { return m.Course == course && m.Question == question }
	i := slices.IndexFunc(s.memories[learner], of)
	if i < 0 {
		i = len(s.memories[learner])
		s.memories[learner] = append(s.memories[learner], quiz.Memory{})
	}
	m := change(s.memories[learner][i])
	m.Course, m.Question = course, question
	s.memories[learner][i] = m
	return m, nil
}

// Practised lists what is kept of everybody's answers.
func (s *Store) Practised() []quiz.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []quiz.Memory
	for _, list := range s.memories {
		out = append(out, list...)
	}
	return out
}

// Done is part of web.Store.
func (s *Store) Done(_ context.Context, _ lab.LearnerID, _ string) (map[string]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.done), nil
}

// Record is part of web.Store.
func (s *Store) Record(_ context.Context, id string, after uint64, limit int) ([]lab.Event, error) {
	s.lab.mu.Lock()
	v := s.lab.sessions[id]
	s.lab.mu.Unlock()
	if v == nil {
		return nil, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	from := min(after, uint64(len(v.events)))
	to := min(from+uint64(limit), uint64(len(v.events)))
	return append([]lab.Event(nil), v.events[from:to]...), nil
}
