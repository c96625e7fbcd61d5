// Package binding fits the session service and the store to the interfaces that
// package web declares. It only converts types.
package binding

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"kubistro/internal/lab"
	"kubistro/internal/quiz"
	"kubistro/internal/session"
	"kubistro/internal/store"
	"kubistro/internal/terminal"
	"kubistro/web"
)

// Lab makes a web.Lab of the session service.
func Lab(api session.API) web.Lab { return service{api} }

type service struct{ session.API }

func (s service) Events(ctx context.Context, learner lab.LearnerID, id string, after uint64) (web.Subscription, error) {
	sub, err := s.API.Events(ctx, learner, id, after)
	if err != nil {
		return nil, err
	}
	return sub, nil
}

func (s service) Terminal(ctx context.Context, learner lab.LearnerID, id, tab string) (web.Terminal, error) {
	t, err := s.API.Terminal(ctx, learner, id, tab)
	if err != nil {
		return nil, err
	}
	return tabOf{t}, nil
}

func (s service) EditRequests(ctx context.Context, learner lab.LearnerID, id string) ([]web.EditRequest, error) {
	list, err := s.API.EditRequests(ctx, learner, id)
	out := make([]web.EditRequest, 0, len(list))
	for _, e := range list {
		out = append(out, web.EditRequest(e))
	}
	return out, err
}

func (s service) ListFiles(ctx context.Context, learner lab.LearnerID, id string) ([]web.File, error) {
	list, err := s.API.ListFiles(ctx, learner, id)
	out := make([]web.File, 0, len(list))
	for _, f := range list {
		out = append(out, web.File(f))
	}
	return out, err
}

func (s service) ReadFile(ctx context.Context, learner lab.LearnerID, id, path string) ([]byte, web.File, error) {
	body, f, err := s.API.ReadFile(ctx, learner, id, path)
	return body, web.File(f), err
}

func (s service) WriteFile(ctx context.Context, learner lab.LearnerID, id, path string, content []byte) (web.File, error) {
	f, err := s.API.WriteFile(ctx, learner, id, path, content)
	return web.File(f), err
}

type tabOf struct{ *terminal.Terminal }

func (t tabOf) Output(n uint64) ([]web.Block, bool, <-chan struct{}) {
	blocks, reset, more := t.Terminal.Output(n)
	out := make([]web.Block, len(blocks))
	for i, b := range blocks {
		out[i] = web.Block{N: b.N, Out: b.Out}
	}
	return out, reset, more
}

// Store makes a web.Store of the database.
func Store(s *store.Store) web.Store { return database{s} }

type database struct{ s *store.Store }

func (d database) Known(ctx context.Context, id lab.LearnerID) (bool, error) {
	_, err := d.s.Learner(ctx, id)
	if e := lab.AsError(err); e != nil && e.Code == lab.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}

func (d database) See(ctx context.Context, id lab.LearnerID) error {
	_, err := d.s.SeeLearner(ctx, id, time.Now())
	return err
}

func (d database) SetLang(ctx context.Context, id lab.LearnerID, l lab.Lang) error {
	return d.s.SetLang(ctx, id, l)
}

func (d database) SaveAnswer(ctx context.Context, a web.Answer) (web.Answer, error) {
	body, err := json.Marshal(a.Options)
	if err != nil {
		return web.Answer{}, fmt.Errorf("binding: answer: %w", err)
	}
	saved, err := d.s.SaveAnswer(ctx, store.Answer{
		Learner: a.Learner, Course: a.Course, Level: a.Level, Question: a.Question,
		Answer: body, Correct: a.Correct, At: time.Now(),
	})
	if err != nil {
		return web.Answer{}, err
	}
	return answerOf(saved)
}

func (d database) Answers(ctx context.Context, learner lab.LearnerID, course, level string) ([]web.Answer, error) {
	list, err := d.s.Answers(ctx, learner, course, level)
	if err != nil {
		return nil, err
	}
	out := make([]web.Answer, 0, len(list))
	for _, a := range list {
		v, err := answerOf(a)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func answerOf(a store.Answer) (web.Answer, error) {
	v := web.Answer{Learner: a.Learner, Course: a.Course, Level: a.Level, Question: a.Question, Correct: a.Correct, Attempts: a.Attempts}
	if err := json.Unmarshal(a.Answer, &v.Options); err != nil {
		return v, fmt.Errorf("binding: stored answer of %s: %w", a.Question, err)
	}
	return v, nil
}

func (d database) ClearAnswers(ctx context.Context, learner lab.LearnerID, course, level string) error {
	return d.s.ClearAnswers(ctx, learner, course, level)
}

func (d database) Memories(ctx context.Context, learner lab.LearnerID) ([]quiz.Memory, error) {
	return d.s.Memories(ctx, learner)
}

func (d database) Remember(ctx context.Context, learner lab.LearnerID, course, question string, change func(quiz.Memory) quiz.Memory) (quiz.Memory, error) {
	return d.s.Remember(ctx, learner, course, question, change)
}

func (d database) Done(ctx context.Context, learner lab.LearnerID, course string) (map[string]bool, error) {
	list, err := d.s.Exercises(ctx, learner, course)
	if err != nil {
		return nil, err
	}
	done := map[string]bool{}
	for id, e := range list {
		if !e.DoneAt.IsZero() {
			done[id] = true
		}
	}
	return done, nil
}

func (d database) Record(ctx context.Context, id string, after uint64, limit int) ([]lab.Event, error) {
	return d.s.Events(ctx, id, after, limit)
}
