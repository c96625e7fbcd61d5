package session

import (
	"context"
	"fmt"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

// Ask is part of API.
func (s *Service) Ask(ctx context.Context, learner lab.LearnerID, courseID string, q *course.Question, answer string) (lab.CheckResult, error) {
	v, err := s.Store.RunningSession(ctx, learner, courseID)
	switch {
	case isCode(err, lab.CodeNotFound):
		return lab.CheckResult{}, lab.Fail(lab.CodeConflict, "這一題要看你自己的叢集：先開啟這門課程的任何一關。", "This question is about your own cluster: open any level of the course first.")
	case err != nil:
		return lab.CheckResult{}, fmt.Errorf("session: ask: %w", err)
	}
	l, err := s.live(ctx, v)
	if err != nil {
		return lab.CheckResult{}, err
	}
	l.touch()
	r, err := l.settled(ctx)
	if err != nil {
		return lab.CheckResult{}, err
	}
	w := &world{l: l, r: r, live: true, typed: map[string]string{q.Check.ID(): answer}}
	result := q.Check.Run(ctx, w)
	if result.Status == lab.CheckUnknown {
		return result, &lab.Error{Code: lab.CodeUnavailable, Text: result.Message}
	}
	return result, nil
}
