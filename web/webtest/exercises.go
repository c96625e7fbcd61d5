package webtest

import (
	"context"
	"maps"
	"slices"
	"time"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

// SampleExercises is the state of the sample course's exercises for a newcomer.
func SampleExercises() []lab.ExerciseState {
	check := func(id, zh, en string) lab.CheckResult {
		return lab.CheckResult{Check: id, Title: lab.Text{ZhTW: zh, En: en}, Status: lab.CheckUnknown}
	}
	return []lab.ExerciseState{
		{Course: "restaurant", Exercise: "bare-pod", Checks: []lab.CheckResult{
			check("hired", "請來一位沒有寫在白板上的廚師 solo", "A cook named solo works without a line on the whiteboard"),
			check("gone", "solo 離開後沒有人補上", "After solo left, nobody took the place"),
			check("why", "說明為什麼", "Say why"),
		}},
		{Course: "restaurant", Exercise: "three-cooks", Checks: []lab.CheckResult{check("three", "白板上的 grill 有三位廚師就緒", "Three cooks of grill are ready")}},
	}
}

// SetCheck changes a check's result and tells the page by a lab event.
func (s *Session) SetCheck(exercise string, r lab.CheckResult) {
	s.mu.Lock()
	for i := range s.exercises {
		e := &s.exercises[i]
		if e.Exercise != exercise {
			continue
		}
		e.Started, e.Done = true, true
		for j := range e.Checks {
			if e.Checks[j].Check == r.Check {
				r.Title = e.Checks[j].Title
				e.Checks[j] = r
			}
			e.Done = e.Done && e.Checks[j].Status == lab.CheckMet
		}
		if e.Done {
			e.DoneAt = time.Now()
		}
	}
	s.mu.Unlock()
	s.Add(lab.Event{Type: lab.EventLab, Actor: "lab", Verb: "check", Text: &lab.Text{ZhTW: "檢查更新", En: "A check was looked at"}})
}

func (l *Lab) exercise(learner lab.LearnerID, id, exercise, call string, change func(*lab.ExerciseState)) (lab.ExerciseState, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return lab.ExerciseState{}, err
	}
	l.note("%s %s", call, exercise)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.exercises {
		if s.exercises[i].Exercise == exercise {
			change(&s.exercises[i])
			return clone(s.exercises[i]), nil
		}
	}
	return lab.ExerciseState{}, lab.Fail(lab.CodeNotFound, "沒有這個練習。", "There is no such exercise.")
}

func clone(e lab.ExerciseState) lab.ExerciseState {
	e.Checks = slices.Clone(e.Checks)
	return e
}

// Exercises is part of web.Lab.
func (l *Lab) Exercises(_ context.Context, learner lab.LearnerID, id, _ string) ([]lab.ExerciseState, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]lab.ExerciseState, len(s.exercises))
	for i, e := range s.exercises {
		out[i] = clone(e)
	}
	return out, nil
}

// StartExercise is part of web.Lab.
func (l *Lab) StartExercise(_ context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error) {
	return l.exercise(learner, id, exercise, "start", func(e *lab.ExerciseState) { e.Started = true })
}

// Check is part of web.Lab: what isn't met yet is not met with a message.
func (l *Lab) Check(_ context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error) {
	return l.exercise(learner, id, exercise, "check", func(e *lab.ExerciseState) {
		e.Started = true
		for i := range e.Checks {
			c := &e.Checks[i]
			if c.Status == lab.CheckUnknown {
				c.Status = lab.CheckNotMet
				c.Message = lab.Text{ZhTW: "還沒有名為 grill 的 Deployment。", En: "There is no Deployment named grill yet."}
				c.Object, c.Field, c.Expected, c.Found = "deployment/grill", "spec.replicas", "3", "null"
			}
		}
	})
}

// Hint is part of web.Lab.
func (l *Lab) Hint(_ context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error) {
	return l.exercise(learner, id, exercise, "hint", func(e *lab.ExerciseState) { e.Hints = min(e.Hints+1, 2) })
}

// Answer is part of web.Lab: every answer is met.
func (l *Lab) Answer(_ context.Context, learner lab.LearnerID, id, exercise, check, text string) (lab.ExerciseState, error) {
	return l.exercise(learner, id, exercise, "answer "+check+" "+text, func(e *lab.ExerciseState) {
		e.Started = true
		e.Answers = maps.Clone(e.Answers)
		if e.Answers == nil {
			e.Answers = map[string]string{}
		}
		e.Answers[check] = text
		for i := range e.Checks {
			if e.Checks[i].Check == check {
				e.Checks[i].Status = lab.CheckMet
			}
		}
	})
}

// Ask takes 10.96.0.7 for right, while the learner has a session.
func (l *Lab) Ask(_ context.Context, learner lab.LearnerID, _ string, q *course.Question, answer string) (lab.CheckResult, error) {
	sessions, err := l.List(context.Background(), learner)
	if err != nil || len(sessions) == 0 {
		return lab.CheckResult{}, lab.Fail(lab.CodeConflict, "先開啟任何一關。", "Open any level first.")
	}
	r := lab.CheckResult{Check: q.ID, Status: lab.CheckNotMet, Message: both("不是 <"+answer+">。", "Not <"+answer+">.")}
	if answer == "10.96.0.7" {
		r.Status, r.Message = lab.CheckMet, both("對。", "Yes.")
	}
	return r, nil
}
