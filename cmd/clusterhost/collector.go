package main

import (
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// A cluster counts as busy by the garbage collections that it needs by itself: busyLoad
// of them within some ten seconds, until there are next to none for half a minute. An
// idle one has two a minute. They aren't counted for a second, or a machine that has
// no time for a busy cluster would let it look idle.
const (
	busyLoad = 2.0
	calmLoad = 0.2
	fading   = 0.9 // what is left of the load after a second
)

// collector sets how much the garbage collector does: with the few per cent that
// keep an idle cluster small, a busy one would spend half its time on it.
type collector struct {
	settled atomic.Bool // the start is over; until then it changes nothing
	calm    func()      // called when a busy time is over

	last uint64
	load float64
	busy bool
}

// second is to be called every second.
func (c *collector) second() {
	sample := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}}
	metrics.Read(sample)
	if !c.settled.Load() {
		c.last = sample[0].Value.Uint64()
		return
	}
	switch was := c.busy; {
	case c.step(sample[0].Value.Uint64()) == was:
	case c.busy:
		debug.SetGCPercent(gcBusy)
	default:
		debug.SetGCPercent(gcRunning)
		c.calm()
	}
}

// step takes the count of collections so far and tells whether the cluster is busy.
func (c *collector) step(collections uint64) bool {
	c.load = c.load*fading + float64(collections-c.last)
	c.last = collections
	c.busy = c.load >= busyLoad || c.busy && c.load > calmLoad
	return c.busy
}
