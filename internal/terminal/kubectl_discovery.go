package terminal

import (
	"sync/atomic"

	"k8s.io/client-go/discovery"
)

// sharedDiscovery is what all commands of a terminal know of the API's resources. Each command may
// look anew once, when it misses one: it is a process of its own elsewhere, and finds what
// was installed since the one before.
type sharedDiscovery struct {
	discovery.CachedDiscoveryInterface
	fresh atomic.Bool
}

// begin says that another command begins.
func (d *sharedDiscovery) begin() { d.fresh.Store(false) }

// Fresh reports whether looking anew is pointless.
func (d *sharedDiscovery) Fresh() bool { return d.fresh.Load() && d.CachedDiscoveryInterface.Fresh() }

// Invalidate forgets everything.
func (d *sharedDiscovery) Invalidate() {
	d.fresh.Store(true)
	d.CachedDiscoveryInterface.Invalidate()
}
