package main

import "testing"

// TestCollector: a collection every few seconds makes a cluster busy, half a minute
// without any calm again, and what an idle one collects does neither.
func TestCollector(t *testing.T) {
	var c collector
	total := uint64(0)
	seconds := func(n int, want bool) {
		t.Helper()
		for i := range n {
			if got := c.step(total); got != want {
				t.Fatalf("after %d collections and %d seconds: busy %t", total, i, got)
			}
		}
	}
	for range 4 {
		total++
		seconds(30, false)
	}
	total++
	seconds(3, false)
	total++
	seconds(3, false)
	total++
	seconds(20, true)
	total++
	seconds(15, true)
	c.step(total)
	for range 30 {
		c.step(total)
	}
	seconds(10, false)
}
