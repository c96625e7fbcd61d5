package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"kubistro/internal/lab"
	"kubistro/internal/store"
)

// events makes count events from number first on.
func events(first uint64, count int) []lab.Event {
	out := make([]lab.Event, count)
	for i := range out {
		n := first + uint64(i)
		out[i] = lab.Event{N: n, Time: at.Add(time.Duration(n) * time.Millisecond), Type: lab.EventObject, Actor: "replicaset-controller",
			Verb: "add", Object: lab.ObjectRef{Kind: "Pod", Namespace: "default", Name: fmt.Sprintf("grill-%d", n)}}
		if n > 1 {
			cause := n - 1
			out[i].Cause = &cause
		}
	}
	return out
}

func testEvents(t *testing.T, s *store.Store) {
	ctx := t.Context()
	newSession(t, s, "ann", "s1")
	newSession(t, s, "bob", "s2")
	first, last, err := s.EventRange(ctx, "s1")
	ok(t, err)
	wantEqual(t, []uint64{first, last}, []uint64{0, 0})

	all := events(1, 10)
	all[3].State = json.RawMessage(`{"ref":{"kind":"Pod","name":"grill-4"}}`)
	all[4].Text = &lab.Text{ZhTW: "檢查通過", En: "Check met"}
	wantCode(t, s.AppendEvents(ctx, "s1", all[1:]), lab.CodeConflict) // must start at 1
	ok(t, s.AppendEvents(ctx, "s1", all[:4]))
	ok(t, s.AppendEvents(ctx, "s1", nil))
	wantCode(t, s.AppendEvents(ctx, "s1", all[3:5]), lab.CodeConflict) // one is there already
	wantCode(t, s.AppendEvents(ctx, "s1", all[5:]), lab.CodeConflict)  // one is missing
	ok(t, s.AppendEvents(ctx, "s1", all[4:]))
	ok(t, s.AppendEvents(ctx, "s2", events(1, 2)))
	wantCode(t, s.AppendEvents(ctx, "s9", events(1, 1)), lab.CodeNotFound)

	wantEqual(t, must(s.Events(ctx, "s1", 0, 100))(t), all)
	wantEqual(t, must(s.Events(ctx, "s1", 3, 2))(t), all[3:5])
	wantEqual(t, len(must(s.Events(ctx, "s1", 10, 100))(t)), 0)
	first, last, err = s.EventRange(ctx, "s1")
	ok(t, err)
	wantEqual(t, []uint64{first, last}, []uint64{1, 10})
}

func testPrune(t *testing.T, s *store.Store) {
	ctx := t.Context()
	newSession(t, s, "ann", "s1")
	newSession(t, s, "bob", "s2")
	ok(t, s.AppendEvents(ctx, "s2", events(1, 3)))
	const batch, batches = 1000, store.EventsKept/1000 + 2
	for i := range batches {
		ok(t, s.AppendEvents(ctx, "s1", events(uint64(i*batch+1), batch)))
	}
	first, last, err := s.EventRange(ctx, "s1")
	ok(t, err)
	wantEqual(t, []uint64{first, last}, []uint64{2*batch + 1, batches * batch})
	wantEqual(t, must(s.Events(ctx, "s1", 0, 1))(t)[0].N, uint64(2*batch+1))
	wantEqual(t, len(must(s.Events(ctx, "s2", 0, 100))(t)), 3)
}

func testEventsConcurrently(t *testing.T, s *store.Store) {
	ctx := t.Context()
	const sessions, batches, batch = 8, 20, 25
	var wg sync.WaitGroup
	for i := range sessions {
		id := fmt.Sprintf("s%d", i)
		newSession(t, s, "learner-"+id, id)
		wg.Go(func() {
			for b := range batches {
				if err := s.AppendEvents(ctx, id, events(uint64(b*batch+1), batch)); err != nil {
					t.Error(err)
					return
				}
			}
		})
		wg.Go(func() {
			for seen := uint64(0); seen < batches*batch; {
				got, err := s.Events(ctx, id, seen, 100)
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range got {
					if e.N != seen+1 {
						t.Errorf("session %s: event %d after %d", id, e.N, seen)
						return
					}
					seen = e.N
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	wg.Wait()
}
