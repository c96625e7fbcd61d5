package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"kubistro/internal/cluster"
	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/store"
)

// isCode reports whether err is a lab.Error of the code.
func isCode(err error, code lab.Code) bool {
	var e *lab.Error
	return errors.As(err, &e) && e.Code == code
}

// Open is part of API.
func (s *Service) Open(ctx context.Context, learner lab.LearnerID, courseID string) (_ lab.Session, created bool, _ error) {
	c := s.Library.Course(courseID)
	if c == nil {
		return lab.Session{}, false, lab.Fail(lab.CodeNotFound, "沒有這門課程。", "There is no such course.")
	}
	if err := s.able(c); err != nil {
		return lab.Session{}, false, err
	}
	defer s.alone(learner)()
	v, err := s.Store.RunningSession(ctx, learner, courseID)
	switch {
	case err == nil:
		l, err := s.live(ctx, v)
		if err != nil {
			return lab.Session{}, false, err
		}
		l.current().Wake()
		return l.session(), false, nil
	case !isCode(err, lab.CodeNotFound):
		return lab.Session{}, false, fmt.Errorf("session: look for a running one: %w", err)
	}
	if err := s.room(ctx, learner); err != nil {
		return lab.Session{}, false, err
	}
	if _, err := s.Store.SeeLearner(ctx, learner, s.Clock.Now()); err != nil {
		return lab.Session{}, false, fmt.Errorf("session: learner: %w", err)
	}
	claimed, err := s.Manager.Claim(ctx, c.Spec)
	if err != nil {
		return lab.Session{}, false, fmt.Errorf("session: claim a cluster: %w", err)
	}
	v = store.Session{ID: newID(), Learner: learner, Course: courseID, Cluster: claimed.ID(), Spec: c.Spec, Created: s.Clock.Now().UTC()}
	if err := s.Store.CreateSession(ctx, v); err != nil {
		s.giveBack(ctx, claimed.ID())
		return lab.Session{}, false, fmt.Errorf("session: create: %w", err)
	}
	s.metrics.opened.Inc()
	l, err := s.live(ctx, v)
	if err != nil {
		return lab.Session{}, false, err
	}
	return l.session(), true, nil
}

// able refuses a course that no level of which the driver can do.
func (s *Service) able(c *course.Course) error {
	for _, level := range c.Levels {
		if len(s.lacks(level)) == 0 {
			return nil
		}
	}
	return lab.Fail(lab.CodeUnsupported, "這個伺服器的叢集類型不支援這門課程。", "The clusters of this server can't do what this course needs.")
}

// lacks lists what a level needs and the driver can't do.
func (s *Service) lacks(level *course.Level) []string {
	var missing []string
	for _, need := range level.Needs {
		if !slices.Contains(s.Manager.Capabilities(), cluster.Capability(need)) {
			missing = append(missing, need)
		}
	}
	return missing
}

// room refuses a learner who has as many sessions as one may have.
func (s *Service) room(ctx context.Context, learner lab.LearnerID) error {
	all, err := s.Store.LearnerSessions(ctx, learner)
	if err != nil {
		return fmt.Errorf("session: sessions of a learner: %w", err)
	}
	n := 0
	for _, v := range all {
		if v.Ended.IsZero() {
			n++
		}
	}
	if n >= maxSessions {
		return lab.Fail(lab.CodeBusy, "你已經開了兩個練習環境，請先結束其中一個。", "You have two sessions already. End one of them first.")
	}
	return nil
}

// turn is a lock for one learner, kept while somebody holds it or waits for it.
type turn struct {
	sync.Mutex
	wanted int // s.mu is held
}

// alone keeps two requests of one learner from making two sessions.
func (s *Service) alone(learner lab.LearnerID) (unlock func()) {
	s.mu.Lock()
	t := s.opening[learner]
	if t == nil {
		t = &turn{}
		s.opening[learner] = t
	}
	t.wanted++
	s.mu.Unlock()
	t.Lock()
	return func() {
		t.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.wanted--; t.wanted == 0 {
			delete(s.opening, learner)
		}
	}
}

func (s *Service) giveBack(ctx context.Context, id string) {
	if err := s.Manager.Delete(context.WithoutCancel(ctx), id); err != nil {
		s.Log.Error("cluster not deleted", "cluster", id, "error", err)
	}
}

// live returns the running lab of a session and opens it when this server
// process hasn't yet.
func (s *Service) live(ctx context.Context, v store.Session) (*live, error) {
	if l := s.open(v.ID); l != nil {
		return l, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosing
	}
	if l := s.labs[v.ID]; l != nil {
		return l, nil
	}
	l, err := openLive(context.WithoutCancel(ctx), s, v)
	if err != nil {
		return nil, err
	}
	s.labs[v.ID] = l
	return l, nil
}

// find returns the learner's running lab.
func (s *Service) find(ctx context.Context, learner lab.LearnerID, id string) (*live, error) {
	if l := s.open(id); l != nil {
		if l.learner != learner {
			return nil, errNotFound
		}
		return l, nil
	}
	v, err := s.Store.Session(ctx, id)
	if isCode(err, lab.CodeNotFound) {
		return nil, errNotFound
	} else if err != nil {
		return nil, fmt.Errorf("session: find: %w", err)
	}
	if v.Learner != learner || !v.Ended.IsZero() {
		return nil, errNotFound
	}
	return s.live(ctx, v)
}

// List is part of API.
func (s *Service) List(ctx context.Context, learner lab.LearnerID) ([]lab.Session, error) {
	all, err := s.Store.LearnerSessions(ctx, learner)
	if err != nil {
		return nil, fmt.Errorf("session: list: %w", err)
	}
	out := []lab.Session{}
	for _, v := range all {
		if !v.Ended.IsZero() {
			continue
		}
		l, err := s.live(ctx, v)
		if err != nil {
			return nil, err
		}
		out = append(out, l.session())
	}
	slices.SortFunc(out, func(a, b lab.Session) int { return a.Created.Compare(b.Created) })
	return out, nil
}

// Get is part of API.
func (s *Service) Get(ctx context.Context, learner lab.LearnerID, id string) (lab.Session, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return lab.Session{}, err
	}
	return l.session(), nil
}

// Changes is part of API.
func (s *Service) Changes(ctx context.Context, learner lab.LearnerID, id string) (<-chan struct{}, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	return l.changes(), nil
}

// End is part of API.
func (s *Service) End(ctx context.Context, learner lab.LearnerID, id string) error {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return err
	}
	defer s.alone(learner)()
	s.mu.Lock()
	delete(s.labs, id)
	s.mu.Unlock()
	l.end()
	s.proxy.forget(id)
	if err := s.Store.EndSession(ctx, id, s.Clock.Now()); err != nil {
		return fmt.Errorf("session: end: %w", err) // the next request opens it again
	}
	s.giveBack(ctx, l.current().ID())
	if err := os.RemoveAll(filepath.Join(s.Dir, "sessions", id)); err != nil {
		s.Log.Warn("folder of an ended session not removed", "session", id, "error", err)
	}
	return nil
}

// Retry is part of API.
func (s *Service) Retry(ctx context.Context, learner lab.LearnerID, id string) error {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return err
	}
	l.current().Retry()
	return nil
}

// Wake is part of API.
func (s *Service) Wake(ctx context.Context, learner lab.LearnerID, id string) error {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return err
	}
	l.current().Wake()
	return nil
}

// Touch is part of API.
func (s *Service) Touch(ctx context.Context, learner lab.LearnerID, id string) error {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return err
	}
	l.touch()
	return nil
}
