package clustertest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// testTwo makes two clusters at once; they must not see each other's objects or end.
func testTwo(t *testing.T, s Setup) {
	d := s.Open(t)
	ids := []string{"one", "two"}
	insts := make([]cluster.Instance, len(ids))
	ctx, cancel := context.WithTimeout(t.Context(), 2*s.Within)
	defer cancel()
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			var err error
			if insts[i], err = d.Create(ctx, id, lab.ClusterSpec{Kitchens: lab.DefaultClusterSpec().Kitchens[:1]}, nil); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() {
			if err := d.Delete(context.WithoutCancel(ctx), id); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	putNote(t, insts[0], "mine")
	if _, err := note(t, insts[1], "mine"); err == nil {
		t.Error("one cluster sees the other's object")
	}
	if names := nodeNames(t, insts[1]); len(names) > 2 {
		t.Errorf("nodes = %v, want those of the spec", names)
	}
	s.Crash(t, ids[0])
	<-insts[0].Lost()
	notLost(t, insts[1])
	putNote(t, insts[1], "still-here")
	if err := d.Delete(t.Context(), ids[0]); err != nil {
		t.Error(err)
	}
	wantNothing(t, s, d, ids[0])
	wantNote(t, insts[1], "still-here")
}

// testCancel ends a create at its first stage.
func testCancel(t *testing.T, s Setup) {
	d := s.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	inst, err := d.Create(ctx, "cancelled", lab.DefaultClusterSpec(), func(lab.Stage) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("create = %v, %v, want the context's error", inst, err)
	}
	wantNothing(t, s, d, "cancelled")
	// The id can be used again.
	again, stop := context.WithTimeout(t.Context(), s.Within)
	defer stop()
	if inst, err = d.Create(again, "cancelled", lab.DefaultClusterSpec(), nil); err != nil {
		t.Fatal(err)
	}
	nodeNames(t, inst)
	if err := d.Delete(t.Context(), "cancelled"); err != nil {
		t.Error(err)
	}
}

// testMissing asks for what was never made.
func testMissing(t *testing.T, s Setup) {
	d := s.Open(t)
	if err := d.Delete(t.Context(), "never"); err != nil {
		t.Errorf("delete = %v", err)
	}
	if list, err := d.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("list = %v, %v", list, err)
	}
	if sl, ok := d.(cluster.Sleeper); ok {
		_, err := sl.Wake(t.Context(), "never", nil)
		wantCode(t, err, lab.CodeNotFound)
		wantCode(t, sl.Sleep(t.Context(), "never"), lab.CodeNotFound)
	}
	if a, ok := d.(cluster.Adopter); ok {
		if inst, err := a.Adopt(t.Context(), "never"); err == nil {
			t.Errorf("adopted %v", inst)
		}
	}
}
