package session

import (
	"context"
	"maps"
	"strconv"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

var errUnable = lab.Fail(lab.CodeUnsupported, "這個伺服器的叢集類型做不到這件事。", "The clusters of this server can't do this.")

// operator finds an ability of a session's cluster, which is woken.
func operator[T any](ctx context.Context, s *Service, learner lab.LearnerID, id string) (op T, l *live, err error) {
	if l, err = s.find(ctx, learner, id); err != nil {
		return op, nil, err
	}
	r, err := l.settled(ctx)
	if err != nil {
		return op, nil, err
	}
	op, ok := r.instance.(T)
	if !ok {
		return op, nil, errUnable
	}
	return op, l, nil
}

// happened notes in the record what was done to the cluster from outside.
func (l *live) happened(verb, kind, name, reason, zhTW, en string) {
	l.feed.Lab(lab.Event{Verb: verb, Object: lab.ObjectRef{Kind: kind, Name: name}, Reason: reason, Text: &lab.Text{ZhTW: zhTW, En: en}})
}

// Kitchens is part of API.
func (s *Service) Kitchens(ctx context.Context, learner lab.LearnerID, id string) ([]lab.KitchenState, error) {
	op, _, err := operator[cluster.KitchenOperator](ctx, s, learner, id)
	if err != nil {
		return nil, err
	}
	return op.Kitchens(ctx)
}

// AddKitchen is part of API.
func (s *Service) AddKitchen(ctx context.Context, learner lab.LearnerID, id string, k lab.Kitchen) error {
	op, l, err := operator[cluster.KitchenOperator](ctx, s, learner, id)
	if err != nil {
		return err
	}
	if err := op.AddKitchen(ctx, k); err != nil {
		return err
	}
	l.happened("kitchen", "Node", k.Name, "added", "廚房 "+k.Name+" 開張了。", "Kitchen "+k.Name+" is open.")
	return nil
}

// RemoveKitchen is part of API.
func (s *Service) RemoveKitchen(ctx context.Context, learner lab.LearnerID, id, name string) error {
	op, l, err := operator[cluster.KitchenOperator](ctx, s, learner, id)
	if err != nil {
		return err
	}
	if err := op.RemoveKitchen(ctx, name); err != nil {
		return err
	}
	l.happened("kitchen", "Node", name, "removed", "廚房 "+name+" 拆掉了。", "Kitchen "+name+" was taken away.")
	return nil
}

// SetKitchen is part of API.
func (s *Service) SetKitchen(ctx context.Context, learner lab.LearnerID, id, name string, c lab.KitchenChange) error {
	op, l, err := operator[cluster.KitchenOperator](ctx, s, learner, id)
	if err != nil {
		return err
	}
	if c.Power != nil {
		if err := op.SetPower(ctx, name, *c.Power); err != nil {
			return err
		}
		if *c.Power {
			l.happened("power", "Node", name, "on", "廚房 "+name+" 復電了。", "Kitchen "+name+" has power again.")
		} else {
			l.happened("power", "Node", name, "off", "廚房 "+name+" 停電了。", "Kitchen "+name+" lost its power.")
		}
	}
	if c.Cable != nil {
		if err := op.SetCable(ctx, name, *c.Cable); err != nil {
			return err
		}
		if *c.Cable {
			l.happened("cable", "Node", name, "in", "廚房 "+name+" 的網路線接回去了。", "Kitchen "+name+" has its network cable back.")
		} else {
			l.happened("cable", "Node", name, "out", "廚房 "+name+" 的網路線被拔掉了。", "Kitchen "+name+" lost its network cable.")
		}
	}
	return nil
}

// Loops is part of API.
func (s *Service) Loops(ctx context.Context, learner lab.LearnerID, id string) ([]lab.ControlLoop, error) {
	op, _, err := operator[cluster.LoopOperator](ctx, s, learner, id)
	if err != nil {
		return nil, err
	}
	return op.Loops(ctx)
}

// SetLoop is part of API.
func (s *Service) SetLoop(ctx context.Context, learner lab.LearnerID, id, name string, home bool) error {
	op, l, err := operator[cluster.LoopOperator](ctx, s, learner, id)
	if err != nil {
		return err
	}
	if err := op.SetLoop(ctx, name, home); err != nil {
		return err
	}
	if home {
		l.happened("loop", "ControlLoop", name, "home", name+" 下班了。", name+" went home.")
	} else {
		l.happened("loop", "ControlLoop", name, "back", name+" 回來上班了。", name+" is back at work.")
	}
	return nil
}

// ClusterClock is part of API.
func (s *Service) ClusterClock(ctx context.Context, learner lab.LearnerID, id string) (lab.Clock, error) {
	op, _, err := operator[cluster.ClockSetter](ctx, s, learner, id)
	if err != nil {
		return lab.Clock{}, err
	}
	return op.Clock(ctx)
}

// SetClusterClock is part of API.
func (s *Service) SetClusterClock(ctx context.Context, learner lab.LearnerID, id string, speed int) error {
	op, l, err := operator[cluster.ClockSetter](ctx, s, learner, id)
	if err != nil {
		return err
	}
	if err := op.SetClock(ctx, speed); err != nil {
		return err
	}
	n := strconv.Itoa(speed)
	l.happened("clock", "Clock", "", n, "等待時間縮短為 1/"+n+"。", "Waiting times are 1/"+n+" of the real ones.")
	return nil
}

// putBack undoes what was done to a cluster from outside: everybody is at work, all
// kitchens of the spec and no others are there and connected, and the clock is the spec's.
func putBack(ctx context.Context, inst cluster.Instance, spec lab.ClusterSpec) error {
	if op, ok := inst.(cluster.LoopOperator); ok {
		list, err := op.Loops(ctx)
		if err != nil {
			return err
		}
		for _, x := range list {
			if x.Home {
				if err := op.SetLoop(ctx, x.Name, false); err != nil {
					return err
				}
			}
		}
	}
	if op, ok := inst.(cluster.ClockSetter); ok {
		c, err := op.Clock(ctx)
		if err == nil && c.Speed != max(1, spec.Speed) {
			err = op.SetClock(ctx, max(1, spec.Speed))
		}
		if err != nil {
			return err
		}
	}
	if op, ok := inst.(cluster.KitchenOperator); ok {
		return putKitchensBack(ctx, op, spec)
	}
	return nil
}

func putKitchensBack(ctx context.Context, op cluster.KitchenOperator, spec lab.ClusterSpec) error {
	list, err := op.Kitchens(ctx)
	if err != nil {
		return err
	}
	missing := map[string]lab.Kitchen{}
	for _, k := range spec.Kitchens {
		missing[k.Name] = k
	}
	for _, k := range list {
		want, wanted := missing[k.Name]
		if !wanted || k.CPU != want.CPU || k.Memory != want.Memory || !maps.Equal(k.Labels, want.Labels) || !maps.Equal(k.Resources, want.Resources) {
			if err := op.RemoveKitchen(ctx, k.Name); err != nil {
				return err
			}
			continue
		}
		delete(missing, k.Name)
		if !k.Power {
			err = op.SetPower(ctx, k.Name, true)
		}
		if err == nil && !k.Cable {
			err = op.SetCable(ctx, k.Name, true)
		}
		if err != nil {
			return err
		}
	}
	for _, k := range missing {
		if err := op.AddKitchen(ctx, k); err != nil {
			return err
		}
	}
	return nil
}
