// Package stream turns what happens in one cluster into a session's numbered
// record: object changes, Kubernetes Events, who wrote what, and what the lab did, each
// with its cause where that is known. It keeps the reduced present state for
// clients that come late and the full objects for checks. It never writes to a
// cluster and bounds everything that a learner could flood.
package stream

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kubistro/internal/lab"
)

// Bounds of a record.
const (
	ringSize   = 1024 // newest frames kept in memory
	maxBehind  = 1000 // a client further behind gets a snapshot
	maxUnsaved = 4096 // frames that wait for a store that fails
	batchSize  = 256
)

// Store keeps frames. Numbers go on without a gap.
type Store interface {
	AppendEvents(ctx context.Context, session string, events []lab.Event) error
	Events(ctx context.Context, session string, after uint64, limit int) ([]lab.Event, error)
	EventRange(ctx context.Context, session string) (first, last uint64, err error)
}

// Record is a session's numbered list of frames. A frame is published to
// subscribers after the store has it, so that a number that a client has seen
// is never given to another frame. All methods are safe for concurrent use.
type Record struct {
	store   Store
	session string
	log     *slog.Logger

	mu        sync.Mutex
	last      uint64      // newest number given out
	published uint64      // newest number that subscribers see
	ring      []lab.Event // published frames, oldest first, at most ringSize
	unsaved   []lab.Event
	epoch     uint64 // rises when every subscriber has to take a snapshot
	more      chan struct{}
	closed    bool
	snapshot  func() (states []byte)

	wake chan struct{}
	done chan struct{}
	subs int
}

// OpenRecord goes on where the session's record ended. Close ends it.
func OpenRecord(ctx context.Context, store Store, session string, log *slog.Logger) (*Record, error) {
	_, last, err := store.EventRange(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("session %s: range of the record: %w", session, err)
	}
	r := &Record{
		store: store, session: session, log: log,
		last: last, published: last,
		more: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
		snapshot: func() []byte { return []byte("[]") },
	}
	go r.write()
	return r, nil
}

// Append numbers the frames and returns the number of the last one; the caller's
// slice is kept. ok is false when they were dropped because the store has been
// failing for long, or the record is closed; then n is the newest number.
func (r *Record) Append(frames ...lab.Event) (n uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.unsaved)+len(frames) > maxUnsaved {
		return r.last, false
	}
	for i := range frames {
		r.last++
		frames[i].N = r.last
	}
	r.unsaved = append(r.unsaved, frames...)
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return r.last, true
}

// Last is the newest number given out.
func (r *Record) Last() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Resync makes every subscriber take a snapshot next.
func (r *Record) Resync() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch++
	r.signal()
}

func (r *Record) signal() {
	close(r.more)
	r.more = make(chan struct{})
}

// write saves batches and publishes them until Close.
func (r *Record) write() {
	defer close(r.done)
	const slowest = 5 * time.Second
	pause := 100 * time.Millisecond
	for {
		r.mu.Lock()
		batch := r.unsaved[:min(len(r.unsaved), batchSize)]
		closed := r.closed
		r.mu.Unlock()
		if len(batch) == 0 {
			if closed {
				return
			}
			<-r.wake
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := r.store.AppendEvents(ctx, r.session, batch)
		cancel()
		r.publish(batch, err == nil)
		if err == nil {
			pause = 100 * time.Millisecond
			continue
		}
		r.log.Warn("record not saved", "session", r.session, "error", err)
		if closed {
			return
		}
		select {
		case <-r.wake:
		case <-time.After(pause):
		}
		pause = min(2*pause, slowest)
	}
}

// publish shows a batch to subscribers; while the store fails they see it all the same, once.
func (r *Record) publish(batch []lab.Event, saved bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if saved {
		r.unsaved = append([]lab.Event(nil), r.unsaved[len(batch):]...)
	} else {
		batch = r.unsaved
	}
	for _, f := range batch {
		if f.N <= r.published {
			continue
		}
		r.published = f.N
		r.ring = append(r.ring, f)
	}
	if over := len(r.ring) - ringSize; over > ringSize/4 {
		r.ring = append([]lab.Event(nil), r.ring[over:]...)
	}
	r.signal()
}

// after lists up to limit published frames after number n: from memory, or
// else from the store.
func (r *Record) after(ctx context.Context, n uint64, limit int) ([]lab.Event, error) {
	r.mu.Lock()
	if len(r.ring) > 0 && r.ring[0].N <= n+1 {
		i := int(n + 1 - r.ring[0].N)
		out := append([]lab.Event(nil), r.ring[min(i, len(r.ring)):min(i+limit, len(r.ring))]...)
		r.mu.Unlock()
		return out, nil
	}
	published := r.published
	r.mu.Unlock()
	if n >= published {
		return nil, nil
	}
	out, err := r.store.Events(ctx, r.session, n, limit)
	if err != nil {
		return nil, fmt.Errorf("session %s: read the record: %w", r.session, err)
	}
	return out, nil
}

// Since lists all kept frames after number n, published or not, oldest first, at most limit (the newest).
func (r *Record) Since(ctx context.Context, n uint64, limit int) ([]lab.Event, error) {
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	if last > uint64(limit) {
		n = max(n, last-uint64(limit))
	}
	var out []lab.Event
	for {
		page, err := r.after(ctx, n, batchSize)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		out = append(out, page...)
		n = page[len(page)-1].N
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.unsaved {
		if f.N > n {
			out = append(out, f)
		}
	}
	return out, nil
}

// Subscribers counts the open subscriptions.
func (r *Record) Subscribers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.subs
}

// Close saves what is left, ends all subscriptions and waits for the writer.
func (r *Record) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		r.signal()
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	r.mu.Unlock()
	<-r.done
}
