package session

import (
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// keepAsleep is the default of Config.KeepAsleep. A call that takes longer than
// this needs the cluster, and has woken it.
const keepAsleep = time.Minute

// use notes that somebody asks for the session; s.mu is held.
func (l *live) use() { l.usedAt = l.s.Clock.Now() }

// unused reports whether a session can leave memory: its cluster sleeps and
// nobody looks on. l.s.mu is held.
func (l *live) unused() bool {
	return l.s.Clock.Since(l.usedAt) >= l.s.KeepAsleep && l.record.Subscribers() == 0 && !l.works.busy() &&
		l.current().Status().State == lab.StateAsleep
}

// nextLook is when to look whether a session with this cluster can leave; never
// while the cluster doesn't sleep.
func (l *live) nextLook(c *cluster.Cluster) (at <-chan time.Time, stop func()) {
	if c.Status().State != lab.StateAsleep {
		return nil, func() {}
	}
	t := l.s.Clock.NewTimer(l.s.KeepAsleep)
	return t.C(), func() { t.Stop() }
}

// leave takes an unused session out of memory: terminals, record, watches. The next
// visit opens it again from what is on disk, as after a restart of the server.
func (s *Service) leave(l *live) {
	s.mu.Lock()
	if s.closed || l.leaving != nil || s.labs[l.id] != l || !l.unused() {
		s.mu.Unlock()
		return
	}
	gone := make(chan struct{})
	l.leaving = gone
	s.leaving.Add(1)
	s.mu.Unlock()
	go func() { // not the caller, which l.close waits for
		defer s.leaving.Done()
		l.close()
		s.mu.Lock()
		delete(s.labs, l.id)
		s.mu.Unlock()
		s.proxy.forget(l.id)
		close(gone)
		l.log.Info("session left memory until its learner comes back")
	}()
}

// open is the session in memory, nil when it isn't there. It waits for one that
// is just leaving, so that no two write the same record.
func (s *Service) open(id string) *live {
	for {
		s.mu.Lock()
		l := s.labs[id]
		if l == nil || l.leaving == nil {
			if l != nil {
				l.use()
			}
			s.mu.Unlock()
			return l
		}
		gone := l.leaving
		s.mu.Unlock()
		<-gone
	}
}
