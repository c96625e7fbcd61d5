package controlplane

import (
	"time"

	"k8s.io/utils/clock"
)

// sharedTicks is a clock whose longer timers end together: each of a second or more
// is put off to the next multiple of a grain, so that many timers of an idle
// process cost one wake-up instead of one each. Shorter ones, of which somebody
// may wait for the end, are as they are.
type sharedTicks struct {
	clock.WithTicker
	grain time.Duration
}

// putOff is how long a timer of length d that starts at now takes.
func (c sharedTicks) putOff(now time.Time, d time.Duration) time.Duration {
	if d < time.Second {
		return d
	}
	end := now.Add(d)
	if whole := end.Truncate(c.grain); whole.Before(end) {
		end = whole.Add(c.grain)
	}
	return end.Sub(now)
}

func (c sharedTicks) NewTimer(d time.Duration) clock.Timer {
	return sharedTimer{c.WithTicker.NewTimer(c.putOff(c.Now(), d)), c}
}

type sharedTimer struct {
	clock.Timer
	ticks sharedTicks
}

func (t sharedTimer) Reset(d time.Duration) bool {
	return t.Timer.Reset(t.ticks.putOff(t.ticks.Now(), d))
}
