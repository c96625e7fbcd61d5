package session

import (
	"context"

	"kubistro/internal/lab"
)

// controlsOf finds what can be done to the cluster of a learner's session.
func (s *Service) controlsOf(ctx context.Context, learner lab.LearnerID, id string) (*controls, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	return l.controls, nil
}

// Kitchens is part of API.
func (s *Service) Kitchens(ctx context.Context, learner lab.LearnerID, id string) ([]lab.KitchenState, error) {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	return c.Kitchens(ctx)
}

// AddKitchen is part of API.
func (s *Service) AddKitchen(ctx context.Context, learner lab.LearnerID, id string, k lab.Kitchen) error {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return err
	}
	return c.AddKitchen(ctx, k)
}

// RemoveKitchen is part of API.
func (s *Service) RemoveKitchen(ctx context.Context, learner lab.LearnerID, id, name string) error {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return err
	}
	return c.RemoveKitchen(ctx, name)
}

// SetKitchen is part of API.
func (s *Service) SetKitchen(ctx context.Context, learner lab.LearnerID, id, name string, k lab.KitchenChange) error {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return err
	}
	return c.SetKitchen(ctx, name, k)
}

// Loops is part of API.
func (s *Service) Loops(ctx context.Context, learner lab.LearnerID, id string) ([]lab.ControlLoop, error) {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	return c.Loops(ctx)
}

// SetLoop is part of API.
func (s *Service) SetLoop(ctx context.Context, learner lab.LearnerID, id, name string, home bool) error {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return err
	}
	return c.SetLoop(ctx, name, home)
}

// ClusterClock is part of API.
func (s *Service) ClusterClock(ctx context.Context, learner lab.LearnerID, id string) (lab.Clock, error) {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return lab.Clock{}, err
	}
	return c.ClusterClock(ctx)
}

// SetClusterClock is part of API.
func (s *Service) SetClusterClock(ctx context.Context, learner lab.LearnerID, id string, speed int) error {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return err
	}
	return c.SetClusterClock(ctx, speed)
}

// EtcdKeys is part of API.
func (s *Service) EtcdKeys(ctx context.Context, learner lab.LearnerID, id, prefix, after string, limit int) (lab.EtcdKeys, error) {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return lab.EtcdKeys{}, err
	}
	return c.EtcdKeys(ctx, prefix, after, limit)
}

// EtcdValue is part of API.
func (s *Service) EtcdValue(ctx context.Context, learner lab.LearnerID, id, key string) (lab.EtcdValue, error) {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return lab.EtcdValue{}, err
	}
	return c.EtcdValue(ctx, key)
}

// Encryption is part of API.
func (s *Service) Encryption(ctx context.Context, learner lab.LearnerID, id string) (lab.EncryptionState, error) {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return lab.EncryptionState{}, err
	}
	return c.Encryption(ctx)
}

// SetEncryption is part of API.
func (s *Service) SetEncryption(ctx context.Context, learner lab.LearnerID, id string, k lab.EncryptionChange) error {
	c, err := s.controlsOf(ctx, learner, id)
	if err != nil {
		return err
	}
	return c.SetEncryption(ctx, k)
}
