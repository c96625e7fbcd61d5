package kubelet

import (
	"context"
	"sync"
)

// powerSwitch is the breaker of the node. PowerOff waits until the node is
// really dark, so that nothing is reported after it returned.
type powerSwitch struct {
	mu      sync.Mutex
	on      bool
	running bool          // a boot is going on
	changed chan struct{} // closed at the next change
	off     chan struct{} // closed when the power goes off
	closed  bool
}

func newPowerSwitch() *powerSwitch {
	return &powerSwitch{on: true, changed: make(chan struct{}), off: make(chan struct{})}
}

func (p *powerSwitch) notifyLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *powerSwitch) set(on bool) {
	p.mu.Lock()
	if p.closed || p.on == on {
		p.mu.Unlock()
		return
	}
	p.on = on
	if on {
		p.off = make(chan struct{})
	} else {
		close(p.off)
	}
	p.notifyLocked()
	for !on && !p.on && p.running && !p.closed {
		ch := p.changed
		p.mu.Unlock()
		<-ch
		p.mu.Lock()
	}
	p.mu.Unlock()
}

func (p *powerSwitch) isOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on
}

// waitOn waits until the power is on and reports whether it is (false: ctx ended first).
func (p *powerSwitch) waitOn(ctx context.Context) bool {
	for {
		p.mu.Lock()
		if p.on {
			p.running = true
			p.mu.Unlock()
			return true
		}
		ch := p.changed
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		case <-ch:
		}
	}
}

// offSignal is closed when the power goes off.
func (p *powerSwitch) offSignal() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.off
}

// confirmOff says that the node is dark now.
func (p *powerSwitch) confirmOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
	p.notifyLocked()
}

func (p *powerSwitch) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.notifyLocked()
}
