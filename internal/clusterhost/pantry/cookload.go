package pantry

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// What a cook uses besides its dishes is accounted, not burnt: see package cgroup.
// It is set at the start (COOK_LOAD=500m, COOK_HOARD=100Mi, or --load, --hoard),
// by the commands load and hoard in the container, or over HTTP (/admin/load, /hoard).

// requestCPU is what an answer costs without any dish.
const requestCPU = 200 * time.Microsecond

// spend uses CPU time for an answer; false: the guest or the container is gone.
func (c *cook) spend(ctx context.Context, d time.Duration) bool {
	return c.p.Usage.Work(ctx, d) == nil
}

// setLoad has the cook want so many millicores from now on; for a time only when that isn't 0.
func (c *cook) setLoad(load int64, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unload()
	c.load, c.unload = load, c.p.Usage.Load(load)
	c.later(&c.unloadAt, d, func() { c.setLoad(0, 0) })
}

// setHoard holds so many bytes from now on; gives them back after d when that isn't 0.
func (c *cook) setHoard(bytes int64, d time.Duration) {
	c.mu.Lock()
	c.later(&c.giveBack, d, func() { c.setHoard(0, 0) })
	c.mu.Unlock()
	c.p.Usage.AddMemory(bytes - c.hoarded.Swap(bytes))
}

// later has f called after d unless something else comes first; 0: never. The caller holds mu.
func (c *cook) later(t *clock.Timer, d time.Duration, f func()) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
	if d <= 0 || c.resting {
		return
	}
	timer := c.p.Clock.NewTimer(d)
	*t = timer
	c.timers.Go(func() {
		select {
		case <-timer.C():
		case <-c.home:
			timer.Stop()
			return
		}
		c.mu.Lock()
		mine := *t == timer
		c.mu.Unlock()
		if mine {
			f()
		}
	})
}

// rest ends all that goes on besides dishes.
func (c *cook) rest() {
	c.mu.Lock()
	c.resting = true
	c.unload()
	c.unload = func() {}
	c.mu.Unlock()
	close(c.home)
	c.timers.Wait()
	c.p.Usage.AddMemory(-c.hoarded.Swap(0))
}

// millicores reads 500m, 0.5 or off.
func millicores(s string) (int64, error) {
	if s == "off" {
		return 0, nil
	}
	n, factor := strings.TrimSuffix(s, "m"), 1000.0
	if n != s {
		factor = 1
	}
	f, err := strconv.ParseFloat(n, 64)
	if err != nil || !(f >= 0) || f*factor > 1e6 {
		return 0, fmt.Errorf("%q is not an amount of CPU such as 500m, 1.5 or off", s)
	}
	return int64(f * factor), nil
}

// mebibytes reads 100 or 100Mi, an amount of memory, as bytes.
func mebibytes(s string) (int64, error) {
	mib, err := strconv.ParseInt(strings.TrimSuffix(s, "Mi"), 10, 32)
	if err != nil || mib < 0 || mib<<20 > maxHoard {
		return 0, fmt.Errorf("%q is not a number of MiB", s)
	}
	return mib << 20, nil
}
