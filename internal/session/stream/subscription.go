package stream

import (
	"context"
	"io"
	"sync"
	"time"

	"kubistro/internal/lab"
)

// Subscription is one client's place in a record. It holds a number, not a
// queue: a slow client costs nothing and gets the present state when it comes
// back. Next is for one goroutine.
type Subscription struct {
	r      *Record
	cursor uint64
	epoch  uint64
	stale  bool // a snapshot comes next
	page   []lab.Event

	once   sync.Once
	closed chan struct{}
}

// Subscribe starts after number n: with a snapshot when n is 0, too old, or
// newer than the record.
func (r *Record) Subscribe(n uint64) *Subscription {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subs++
	return &Subscription{
		r: r, cursor: n, epoch: r.epoch, closed: make(chan struct{}),
		stale: n == 0 || n > r.published || r.published-n > maxBehind,
	}
}

// Next waits for the next frame. After Close, or when the session has ended, it returns io.EOF.
func (s *Subscription) Next(ctx context.Context) (lab.Event, error) {
	for {
		select {
		case <-s.closed:
			return lab.Event{}, io.EOF
		default:
		}
		s.r.mu.Lock()
		more, closed, published, take, epoch := s.r.more, s.r.closed, s.r.published, s.r.snapshot, s.r.epoch
		s.r.mu.Unlock()
		if published > s.cursor+maxBehind && len(s.page) == 0 {
			s.stale = true
		}
		// What was recorded comes before a snapshot that everybody has to take.
		if s.stale || s.epoch != epoch && s.cursor >= published {
			if s.stale {
				s.cursor, s.page = published, nil
			}
			s.stale, s.epoch = false, epoch
			// The states may be newer than the number: the frames that follow repeat a part of them.
			return lab.Event{N: s.cursor, Time: time.Now().UTC(), Type: lab.EventSnapshot, Verb: "snapshot", State: take()}, nil
		}
		if len(s.page) == 0 && published > s.cursor {
			page, err := s.r.after(ctx, s.cursor, batchSize)
			if err != nil {
				return lab.Event{}, err
			}
			// A hole in what is kept can only be passed by a snapshot.
			if len(page) == 0 || page[0].N != s.cursor+1 {
				s.stale = true
				continue
			}
			s.page = page
		}
		if len(s.page) > 0 {
			f := s.page[0]
			s.page, s.cursor = s.page[1:], f.N
			return f, nil
		}
		if closed {
			return lab.Event{}, io.EOF
		}
		select {
		case <-more:
		case <-s.closed:
		case <-ctx.Done():
			return lab.Event{}, ctx.Err()
		}
	}
}

// Close ends the subscription; Next returns io.EOF.
func (s *Subscription) Close() {
	s.once.Do(func() {
		close(s.closed)
		s.r.mu.Lock()
		s.r.subs--
		s.r.mu.Unlock()
	})
}
