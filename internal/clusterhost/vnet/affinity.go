package vnet

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxSessions bounds the clients that a Service with affinity remembers.
const maxSessions = 1024

// sessions remember which endpoint a client of a Service with sessionAffinity
// ClientIP had.
type sessions struct {
	mu   sync.Mutex
	last map[sessionKey]session
}

type sessionKey struct {
	client   netip.Addr
	protocol string
	port     uint16
	v4       bool
}

type session struct {
	at   netip.AddrPort
	seen time.Time
}

func newSessions() *sessions { return &sessions{last: make(map[sessionKey]session)} }

// pick returns the client's endpoint when it is still usable and was used within the timeout.
func (s *sessions) pick(key sessionKey, usable []netip.AddrPort, now time.Time, timeout time.Duration, random func() netip.AddrPort) netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.last[key]
	at := old.at
	if !ok || now.Sub(old.seen) >= timeout || !slices.Contains(usable, at) {
		at = random()
	}
	if !ok && len(s.last) >= maxSessions {
		s.evictLocked(now, timeout)
	}
	s.last[key] = session{at, now}
	return at
}

// evictLocked makes room: what is over its time, or else the longest unused.
func (s *sessions) evictLocked(now time.Time, timeout time.Duration) {
	var oldest sessionKey
	var seen time.Time
	for k, v := range s.last {
		if now.Sub(v.seen) >= timeout {
			delete(s.last, k)
		} else if seen.IsZero() || v.seen.Before(seen) {
			oldest, seen = k, v.seen
		}
	}
	if len(s.last) >= maxSessions {
		delete(s.last, oldest)
	}
}
