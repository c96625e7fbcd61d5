package session

import "context"

// CleanInPlace is what a reset tries first, without its time limit.
func CleanInPlace(ctx context.Context, s *Service, id string) error {
	l := s.open(id)
	r, err := l.settled(ctx)
	if err != nil {
		return err
	}
	return l.cleanInPlace(ctx, r, l.shape())
}
