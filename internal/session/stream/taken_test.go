package stream

import (
	"slices"
	"testing"
	"time"

	"kubistro/internal/lab"
)

func TestAuditEntriesAreTakenOnce(t *testing.T) {
	start := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	entry := func(n uint64, at int) lab.AuditEntry {
		return lab.AuditEntry{N: n, Time: start.Add(time.Duration(at) * time.Millisecond)}
	}
	k := newTaken(start)
	take := func(what string, want []uint64, entries ...lab.AuditEntry) {
		t.Helper()
		var got []uint64
		for _, e := range entries {
			if k.adds(e) {
				got = append(got, e.N)
			}
		}
		k.broken()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	first := []lab.AuditEntry{entry(1, -5), entry(2, 0), entry(3, 20), entry(4, 10), entry(5, 20)}
	take("requests that end out of order", []uint64{3, 4, 5}, first...)
	take("a stream that breaks while it repeats", nil, first[:4]...)
	take("after the break", []uint64{6, 7}, append(slices.Clone(first), entry(6, 15), entry(7, 30))...)
	take("another process", []uint64{1, 2, 3}, entry(1, 100), entry(2, 99), entry(3, 120))
	take("a break of the other process", []uint64{4}, entry(1, 100), entry(2, 99), entry(3, 120), entry(4, 119))
}
