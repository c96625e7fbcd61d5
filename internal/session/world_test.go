package session

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/lab"
)

// TestEarlierWrites are those of an exercise's setup that the audit log told after its start.
func TestEarlierWrites(t *testing.T) {
	begun := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	at := func(n uint64, kind lab.EventType, d time.Duration) lab.Event {
		return lab.Event{N: n, Type: kind, Time: begun.Add(d)}
	}
	events := func() []lab.Event {
		return []lab.Event{
			at(1, lab.EventAudit, -time.Millisecond), at(2, lab.EventObject, -time.Millisecond),
			at(3, lab.EventAudit, 0), at(4, lab.EventAudit, time.Second),
		}
	}
	numbers := func(events []lab.Event) (out []uint64) {
		for _, e := range events {
			out = append(out, e.N)
		}
		return out
	}
	if diff := cmp.Diff([]uint64{2, 3, 4}, numbers(withoutEarlierWrites(events(), begun))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint64{1, 2, 3, 4}, numbers(withoutEarlierWrites(events(), time.Time{}))); diff != "" {
		t.Errorf("without a start: %s", diff)
	}
}
