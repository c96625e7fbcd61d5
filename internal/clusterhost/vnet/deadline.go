package vnet

import (
	"sync"
	"time"
)

// deadline wakes a waiter at a time. Its methods need the lock that guards the waiter.
type deadline struct {
	timer   *time.Timer
	expired bool
	version int // of the latest set, so that a late timer does nothing
}

// set expires the deadline at t (at once when t is past; never when t is zero).
func (d *deadline) set(t time.Time, mu *sync.Mutex, waiter *sync.Cond) {
	d.stop()
	d.expired = false
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.expired = true
		waiter.Broadcast()
		return
	}
	version := d.version
	d.timer = time.AfterFunc(left, func() {
		mu.Lock()
		defer mu.Unlock()
		if d.version == version {
			d.expired = true
			waiter.Broadcast()
		}
	})
}

func (d *deadline) stop() {
	d.version++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
