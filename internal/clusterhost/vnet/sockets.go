package vnet

import (
	"io"
	"sync"
)

// socketSet is what one process has open. Nil is the set of an interface itself,
// which keeps its sockets in the stack.
type socketSet struct {
	mu     sync.Mutex
	closed bool
	open   map[io.Closer]struct{}
}

func newSocketSet() *socketSet { return &socketSet{open: make(map[io.Closer]struct{})} }

// add reports false when the process has ended.
func (s *socketSet) add(c io.Closer) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.open[c] = struct{}{}
	return true
}

func (s *socketSet) remove(c io.Closer) {
	if s == nil {
		return
	}
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
}

func (s *socketSet) ended() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *socketSet) closeAll() {
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for c := range open {
		c.Close() // the only error is that it is closed already
	}
}
