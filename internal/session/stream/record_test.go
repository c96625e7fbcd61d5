package stream

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"kubistro/internal/lab"
)

func openRecord(t *testing.T, store *memoryStore) *Record {
	t.Helper()
	r, err := OpenRecord(t.Context(), store, "s", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func read(t *testing.T, s *Subscription) lab.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	e, err := s.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestNumbersGoOn(t *testing.T) {
	store := &memoryStore{}
	r := openRecord(t, store)
	r.Append(lab.Event{Verb: "a"}, lab.Event{Verb: "b"})
	r.Close()
	r = openRecord(t, store)
	if n, ok := r.Append(lab.Event{Verb: "c"}); n != 3 || !ok {
		t.Errorf("number %d, %v, want 3, true", n, ok)
	}
}

// A client that says the last number it saw gets each later frame once, from
// memory or from the store.
func TestResume(t *testing.T) {
	store := &memoryStore{}
	r := openRecord(t, store)
	for range ringSize {
		r.Append(lab.Event{Verb: "x"})
	}
	sub := r.Subscribe(0)
	for read(t, sub).N < ringSize {
	}
	r.Close()
	r = openRecord(t, store) // nothing in memory
	for range 10 {
		r.Append(lab.Event{Verb: "y"})
	}
	sub = r.Subscribe(ringSize - 100)
	for want := uint64(ringSize - 99); want <= ringSize+10; want++ {
		if e := read(t, sub); e.N != want || e.Type == lab.EventSnapshot {
			t.Fatalf("frame %d (%s), want %d", e.N, e.Type, want)
		}
	}
}

func TestSnapshotFirst(t *testing.T) {
	r := openRecord(t, &memoryStore{})
	for range maxBehind + 50 {
		r.Append(lab.Event{Verb: "x"})
	}
	for caught := r.Subscribe(0); ; {
		if read(t, caught).N == maxBehind+50 {
			break
		}
	}
	for name, after := range map[string]uint64{"new": 0, "too old": 1, "of a lost future": 5000} {
		if e := read(t, r.Subscribe(after)); e.Type != lab.EventSnapshot {
			t.Errorf("%s: first frame is %s, want a snapshot", name, e.Type)
		}
	}
	if e := read(t, r.Subscribe(maxBehind)); e.N != maxBehind+1 {
		t.Errorf("near the end: first frame %d, want %d", e.N, maxBehind+1)
	}
}

// A slow client doesn't get a queue but the present state.
func TestSlowClient(t *testing.T) {
	r := openRecord(t, &memoryStore{})
	r.Append(lab.Event{Verb: "first"})
	slow := r.Subscribe(0)
	read(t, slow)
	for range 3 * maxBehind {
		r.Append(lab.Event{Verb: "x"})
	}
	fast := r.Subscribe(0)
	for read(t, fast).N < 3*maxBehind+1 {
	}
	sawSnapshot := false
	for n := 0; ; n++ {
		e := read(t, slow)
		sawSnapshot = sawSnapshot || e.Type == lab.EventSnapshot
		if e.N >= 3*maxBehind+1 || sawSnapshot {
			break
		}
		if n > batchSize {
			t.Fatalf("got %d frames one by one", n)
		}
	}
	if !sawSnapshot {
		t.Error("no snapshot for a client far behind")
	}
}

// While the store fails clients go on; when it is back nothing is missing in it.
func TestStoreFails(t *testing.T) {
	store := &memoryStore{broken: errors.New("disk full")}
	r := openRecord(t, store)
	sub := r.Subscribe(0)
	read(t, sub)
	r.Append(lab.Event{Verb: "a"})
	if e := read(t, sub); e.Verb != "a" {
		t.Fatalf("got %+v", e)
	}
	store.mu.Lock()
	store.broken = nil
	store.mu.Unlock()
	r.Append(lab.Event{Verb: "b"})
	if e := read(t, sub); e.Verb != "b" {
		t.Fatalf("got %+v", e)
	}
	r.Close()
	if _, last, _ := store.EventRange(t.Context(), "s"); last != 2 {
		t.Errorf("the store has %d frames, want 2", last)
	}
}

func TestClosedRecordEndsSubscriptions(t *testing.T) {
	r := openRecord(t, &memoryStore{})
	r.Append(lab.Event{Verb: "last"})
	sub := r.Subscribe(0)
	go r.Close()
	for {
		_, err := sub.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := r.Append(lab.Event{}); ok {
		t.Error("a closed record took a frame")
	}
}
