package session

import (
	"context"

	"kubistro/internal/lab"
	"kubistro/internal/session/stream"
)

// Subscription is one client's place in a session's event stream.
type Subscription = stream.Subscription

// Events is part of API.
func (s *Service) Events(ctx context.Context, learner lab.LearnerID, id string, after uint64) (*Subscription, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	if l.record.Subscribers() >= maxStreams {
		return nil, lab.Fail(lab.CodeBusy, "這個練習環境開了太多頁面，請關掉一些。", "This session is open in too many pages. Close some.")
	}
	return l.record.Subscribe(after), nil
}
