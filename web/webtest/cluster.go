package webtest

import (
	"context"
	"slices"

	"kubistro/internal/lab"
)

var errNoKitchen = lab.Fail(lab.CodeNotFound, "沒有這間廚房。", "There is no such kitchen.")

// Kitchens is part of web.Lab.
func (l *Lab) Kitchens(_ context.Context, learner lab.LearnerID, id string) ([]lab.KitchenState, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kitchens), nil
}

// changeKitchens is what all changes of kitchens have in common.
func (l *Lab) changeKitchens(learner lab.LearnerID, id, name string, change func(s *Session, at int) error) error {
	s, err := l.find(learner, id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return change(s, slices.IndexFunc(s.kitchens, func(k lab.KitchenState) bool { return k.Name == name }))
}

// AddKitchen is part of web.Lab.
func (l *Lab) AddKitchen(_ context.Context, learner lab.LearnerID, id string, k lab.Kitchen) error {
	return l.changeKitchens(learner, id, k.Name, func(s *Session, at int) error {
		if at >= 0 {
			return lab.Fail(lab.CodeConflict, "這間廚房已經有了。", "There is such a kitchen already.")
		}
		s.kitchens = append(s.kitchens, lab.KitchenState{Kitchen: k, Power: true, Cable: true})
		return nil
	})
}

// RemoveKitchen is part of web.Lab.
func (l *Lab) RemoveKitchen(_ context.Context, learner lab.LearnerID, id, name string) error {
	return l.changeKitchens(learner, id, name, func(s *Session, at int) error {
		if at < 0 {
			return errNoKitchen
		}
		s.kitchens = slices.Delete(s.kitchens, at, at+1)
		return nil
	})
}

// SetKitchen is part of web.Lab.
func (l *Lab) SetKitchen(_ context.Context, learner lab.LearnerID, id, name string, c lab.KitchenChange) error {
	return l.changeKitchens(learner, id, name, func(s *Session, at int) error {
		if at < 0 {
			return errNoKitchen
		}
		if c.Power != nil {
			s.kitchens[at].Power = *c.Power
		}
		if c.Cable != nil {
			s.kitchens[at].Cable = *c.Cable
		}
		return nil
	})
}

// Loops is part of web.Lab.
func (l *Lab) Loops(_ context.Context, learner lab.LearnerID, id string) ([]lab.ControlLoop, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return []lab.ControlLoop{{Name: "kube-scheduler", Part: lab.LoopComponent, Home: s.schedulerHome}}, nil
}

// SetLoop is part of web.Lab.
func (l *Lab) SetLoop(_ context.Context, learner lab.LearnerID, id, name string, home bool) error {
	s, err := l.find(learner, id)
	if err != nil {
		return err
	}
	if name != "kube-scheduler" {
		return lab.Fail(lab.CodeNotFound, "沒有這個控制迴圈。", "There is no such control loop.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedulerHome = home
	return nil
}

// ClusterClock is part of web.Lab.
func (l *Lab) ClusterClock(_ context.Context, learner lab.LearnerID, id string) (lab.Clock, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return lab.Clock{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	speed := max(1, s.speed)
	return lab.Clock{Speed: speed, Figures: []lab.Figure{{
		Component: "kube-controller-manager", Name: "node-monitor-grace-period", RealMillis: 50_000, NowMillis: 50_000 / int64(speed),
	}}}, nil
}

// SetClusterClock is part of web.Lab.
func (l *Lab) SetClusterClock(_ context.Context, learner lab.LearnerID, id string, speed int) error {
	s, err := l.find(learner, id)
	if err != nil {
		return err
	}
	if speed < 1 {
		return lab.Fail(lab.CodeInvalid, "時鐘不能停。", "A clock can't stand still.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.speed = speed
	return nil
}
