package webtest

import (
	"context"
	"slices"
	"strconv"

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

// Kitchen is a kitchen of the only session.
func (l *Lab) Kitchen(name string) lab.KitchenState {
	s := l.Only()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kitchens {
		if k.Name == name {
			return k
		}
	}
	return lab.KitchenState{}
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
		s.tell("kitchen", "Node", k.Name, "added")
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
		s.tell("kitchen", "Node", name, "removed")
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
			s.tell("power", "Node", name, map[bool]string{true: "on", false: "off"}[*c.Power])
		}
		if c.Cable != nil {
			s.kitchens[at].Cable = *c.Cable
			s.tell("cable", "Node", name, map[bool]string{true: "in", false: "out"}[*c.Cable])
		}
		return nil
	})
}

// loops are those of every session.
var loops = []lab.ControlLoop{
	{Name: "kube-scheduler", Part: lab.LoopComponent}, {Name: "kube-controller-manager", Part: lab.LoopComponent},
	{Name: "kube-proxy", Part: lab.LoopComponent}, {Name: "coredns", Part: lab.LoopComponent},
	{Name: "kubelet/kitchen-1", Part: lab.LoopKubelet}, {Name: "kubelet/kitchen-2", Part: lab.LoopKubelet}, {Name: "kubelet/kitchen-3", Part: lab.LoopKubelet},
	{Name: "deployment-controller", Part: lab.LoopController}, {Name: "replicaset-controller", Part: lab.LoopController},
	{Name: "endpointslice-controller", Part: lab.LoopController}, {Name: "node-lifecycle-controller", Part: lab.LoopController},
}

// Loops is part of web.Lab.
func (l *Lab) Loops(_ context.Context, learner lab.LearnerID, id string) ([]lab.ControlLoop, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(loops)
	for i := range out {
		out[i].Home = s.home[out[i].Name]
	}
	return out, nil
}

// SetLoop is part of web.Lab.
func (l *Lab) SetLoop(_ context.Context, learner lab.LearnerID, id, name string, home bool) error {
	s, err := l.find(learner, id)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(loops, func(l lab.ControlLoop) bool { return l.Name == name }) {
		return lab.Fail(lab.CodeNotFound, "沒有這個控制迴圈。", "There is no such control loop.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.home == nil {
		s.home = map[string]bool{}
	}
	s.home[name] = home
	s.tell("loop", "ControlLoop", name, map[bool]string{true: "home", false: "back"}[home])
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
	out := lab.Clock{Speed: speed}
	for _, f := range []lab.Figure{
		{Component: "kube-controller-manager", Name: "node-monitor-grace-period", RealMillis: 50_000},
		{Component: "kube-apiserver", Name: "default-unreachable-toleration-seconds", RealMillis: 300_000},
		{Component: "kubelet", Name: "containerRestartBackoff", RealMillis: 10_000},
	} {
		f.NowMillis = f.RealMillis / int64(speed)
		out.Figures = append(out.Figures, f)
	}
	return out, nil
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
	s.tell("clock", "Clock", "", strconv.Itoa(speed))
	return nil
}

// tell notes in the record what was done to the cluster from outside; s.mu is held.
func (s *Session) tell(verb, kind, name, reason string) {
	s.add(lab.Event{Type: lab.EventLab, Actor: "learner", Verb: verb, Object: lab.ObjectRef{Kind: kind, Name: name}, Reason: reason,
		Text: &lab.Text{ZhTW: name + " " + reason, En: name + " " + reason}})
}
