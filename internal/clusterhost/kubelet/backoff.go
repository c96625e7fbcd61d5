package kubelet

import (
	"time"

	"kubistro/internal/clusterhost/pace"
)

// retryPeriod is how soon a Pod is looked at again that can't go on: kubelet.go, backOffPeriod.
const retryPeriod = 10 * time.Second

// backoffLimits are the first wait and the longest; between them it doubles.
type backoffLimits struct{ first, max time.Duration }

// restartBackoff and pullBackoff are the periods of kubelet.go: crash loops and
// image pulls wait 10 s, doubling to 5 min, or what the clock makes of that.
func (k *Kubelet) restartBackoff() backoffLimits {
	return backoffLimits{k.cfg.Pace.Of(pace.RestartBackoffFirst), k.cfg.Pace.Of(pace.RestartBackoffMax)}
}

func (k *Kubelet) pullBackoff() backoffLimits {
	return backoffLimits{k.cfg.Pace.Of(pace.PullBackoffFirst), k.cfg.Pace.Of(pace.PullBackoffMax)}
}

// backoff is one entry of client-go's flowcontrol.Backoff, which the real
// kubelet uses per container and per image: it is forgotten when an event comes
// more than twice the maximum after the last one. Not for concurrent use.
type backoff struct {
	Delay time.Duration `json:"delay"` // 0: no failure yet
	Last  time.Time     `json:"last"`
}

func (b *backoff) expired(event time.Time, l backoffLimits) bool {
	return b.Delay == 0 || event.Sub(b.Last) > 2*l.max
}

// next counts a failure that happened at event.
func (b *backoff) next(event, now time.Time, l backoffLimits) {
	if b.expired(event, l) {
		b.Delay = l.first
	} else {
		b.Delay = min(2*b.Delay, l.max)
	}
	b.Last = now
}

// since reports until when one has to wait after event, and whether that is still
// to come. A wait that has begun is no longer than the present limit.
func (b *backoff) since(event, now time.Time, l backoffLimits) (until time.Time, wait bool) {
	if b.expired(event, l) {
		return time.Time{}, false
	}
	until = event.Add(b.wait(l))
	return until, now.Before(until)
}

// wait is how long the wait is.
func (b *backoff) wait(l backoffLimits) time.Duration { return min(b.Delay, l.max) }
