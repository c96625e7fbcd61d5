package kubelet

import (
	"errors"
	"net/netip"
	"sync"
)

// addresses hands out Pod addresses from the node's podCIDR, one after the other
// as the host-local plugin does, so that a new Pod gets a new address.
type addresses struct {
	mu   sync.Mutex
	cidr netip.Prefix
	last netip.Addr
	used map[netip.Addr]bool
	held map[netip.Addr]bool // kept for a Pod that goes on
}

var errNoAddress = errors.New("no IP addresses available in range set")

// set gives the range; it doesn't change afterwards.
func (a *addresses) set(cidr netip.Prefix) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used == nil {
		a.cidr, a.last, a.used = cidr.Masked(), cidr.Masked().Addr().Next(), map[netip.Addr]bool{}
	}
}

func (a *addresses) known() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used != nil
}

// take reserves want if it is in the range and free, else the next one. The
// first two addresses are the network's and the bridge's, the last is for broadcast.
func (a *addresses) take(want netip.Addr) (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used == nil {
		return netip.Addr{}, errNoAddress
	}
	if want.IsValid() && a.cidr.Contains(want) && (a.held[want] || !a.used[want]) {
		a.used[want] = true
		delete(a.held, want)
		return want, nil
	}
	first := a.cidr.Addr().Next().Next()
	for n, ip := 0, a.last; n < 1<<(32-min(a.cidr.Bits(), 32)); n++ {
		ip = ip.Next()
		if !a.cidr.Contains(ip) || !a.cidr.Contains(ip.Next()) {
			ip = first
		}
		if !a.used[ip] {
			a.used[ip], a.last = true, ip
			return ip, nil
		}
	}
	return netip.Addr{}, errNoAddress
}

// hold keeps ip for a Pod that will ask for it.
func (a *addresses) hold(ip netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == nil {
		a.held = map[netip.Addr]bool{}
	}
	a.used[ip], a.held[ip] = true, true
	if a.last.Less(ip) {
		a.last = ip
	}
}

func (a *addresses) give(ip netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.used, ip)
}
