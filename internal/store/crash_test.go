package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kubistro/internal/lab"
	"kubistro/internal/store"
)

const crashBatch = 7

// appendForever is the process of TestKilledWhileWriting: it prints the number
// of the last event after each commit, until it is killed.
func appendForever(path string) int {
	s, err := store.Open(context.Background(), path)
	if err == nil {
		err = prepareStream(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, last, err := s.EventRange(context.Background(), "s1")
	for err == nil {
		if err = s.AppendEvents(context.Background(), "s1", batchFrom(last+1, crashBatch)); err == nil {
			last += crashBatch
			fmt.Println(last)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// prepareStream makes sure that there is a session s1.
func prepareStream(s *store.Store) error {
	ctx := context.Background()
	if _, err := s.SeeLearner(ctx, "ann", time.Unix(1, 0)); err != nil {
		return err
	}
	if _, err := s.Session(ctx, "s1"); err == nil {
		return nil
	}
	return s.CreateSession(ctx, store.Session{ID: "s1", Learner: "ann", Course: "restaurant", Created: time.Unix(1, 0)})
}

func batchFrom(first uint64, count int) []lab.Event {
	out := make([]lab.Event, count)
	for i := range out {
		out[i] = lab.Event{N: first + uint64(i), Time: time.Unix(2, 0), Type: lab.EventLab, Verb: "check", Message: "the grill is hot"}
	}
	return out
}

func BenchmarkAppendEvents(b *testing.B) {
	s, err := store.Open(context.Background(), filepath.Join(b.TempDir(), "kubistro.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := prepareStream(s); err != nil {
		b.Fatal(err)
	}
	const batch = 50
	var last uint64
	for b.Loop() {
		if err := s.AppendEvents(context.Background(), "s1", batchFrom(last+1, batch)); err != nil {
			b.Fatal(err)
		}
		last += batch
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(last), "ns/event")
}
