package kubelet

import "time"

// The periods of kubelet.go: crash loops and image pulls wait 10 s, doubling to 5 min.
const (
	backoffInitial = 10 * time.Second
	backoffMax     = 300 * time.Second
	resyncPeriod   = time.Minute
)

// backoff is one entry of client-go's flowcontrol.Backoff, which the real
// kubelet uses per container and per image: it is forgotten when an event comes
// more than twice the maximum after the last one. Not for concurrent use.
type backoff struct {
	Delay time.Duration `json:"delay"` // 0: no failure yet
	Last  time.Time     `json:"last"`
}

func (b *backoff) expired(event time.Time) bool {
	return b.Delay == 0 || event.Sub(b.Last) > 2*backoffMax
}

// next counts a failure that happened at event.
func (b *backoff) next(event, now time.Time) {
	if b.expired(event) {
		b.Delay = backoffInitial
	} else {
		b.Delay = min(2*b.Delay, backoffMax)
	}
	b.Last = now
}

// since reports until when one has to wait after event, and whether that is still to come.
func (b *backoff) since(event, now time.Time) (until time.Time, wait bool) {
	if b.expired(event) {
		return time.Time{}, false
	}
	until = event.Add(b.Delay)
	return until, now.Before(until)
}
