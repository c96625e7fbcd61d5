package terminal

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	maxBlocks     = 2000
	maxScrollback = 1 << 20
	maxBlock      = 16 << 10
	mergeDelay    = 5 * time.Millisecond
	// A connected client that is this far behind holds the output back.
	windowBlocks = 256
	windowBytes  = 512 << 10
	// A client that said nothing for so long counts as gone.
	clientGone = 5 * time.Second
)

// scrollback numbers output in blocks, keeps the newest of them, and holds the
// writer back while a connected client is too far behind.
type scrollback struct {
	mu      sync.Mutex
	blocks  []Block
	size    int
	next    uint64 // number of the next block
	pending []byte // not in a block yet
	timer   *time.Timer
	more    chan struct{}
	acked   uint64
	ackTime time.Time // zero: no client
	moved   chan struct{}
	closed  bool
}

func newScrollback() *scrollback {
	return &scrollback{next: 1, more: make(chan struct{}), moved: make(chan struct{})}
}

// write adds output. It blocks while a connected client is too far behind.
func (s *scrollback) write(p []byte) {
	for len(p) > 0 {
		n := min(len(p), maxBlock)
		s.mu.Lock()
		s.waitForClient()
		s.pending = append(s.pending, p[:n]...)
		if len(s.pending) >= maxBlock {
			s.flush()
		} else if s.timer == nil {
			s.timer = time.AfterFunc(mergeDelay, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.timer = nil
				s.flush()
			})
		}
		s.mu.Unlock()
		p = p[n:]
	}
}

// waitForClient returns when the client is near enough or gone; s.mu is held.
func (s *scrollback) waitForClient() {
	for !s.closed && !s.ackTime.IsZero() && s.behind() {
		left := clientGone - time.Since(s.ackTime)
		if left <= 0 {
			s.ackTime = time.Time{}
			return
		}
		moved := s.moved
		s.mu.Unlock()
		t := time.NewTimer(left)
		select {
		case <-moved:
		case <-t.C:
		}
		t.Stop()
		s.mu.Lock()
	}
}

func (s *scrollback) behind() bool {
	n, size := 0, 0
	for i := len(s.blocks) - 1; i >= 0 && s.blocks[i].N > s.acked; i-- {
		n++
		size += len(s.blocks[i].Out)
	}
	return n > windowBlocks || size > windowBytes
}

// flush makes a block of what is pending, up to the last whole character.
func (s *scrollback) flush() {
	p := s.pending
	end := len(p)
	for back := 1; back < utf8.UTFMax && back <= end; back++ {
		if utf8.RuneStart(p[end-back]) {
			if !utf8.FullRune(p[end-back:]) {
				end -= back
			}
			break
		}
	}
	if end == 0 {
		return
	}
	out := strings.ToValidUTF8(string(p[:end]), "\uFFFD")
	s.pending = append([]byte(nil), p[end:]...)
	s.blocks = append(s.blocks, Block{N: s.next, Out: out})
	s.next++
	s.size += len(out)
	drop := 0
	for len(s.blocks)-drop > maxBlocks || s.size > maxScrollback && len(s.blocks)-drop > 1 {
		s.size -= len(s.blocks[drop].Out)
		drop++
	}
	if drop > 0 {
		s.blocks = append([]Block(nil), s.blocks[drop:]...)
	}
	close(s.more)
	s.more = make(chan struct{})
}

func (s *scrollback) after(n uint64) (blocks []Block, reset bool, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.next
	if len(s.blocks) > 0 {
		first = s.blocks[0].N
	}
	if n+1 < first || n >= s.next {
		reset = n != 0 || first != 1
		n = 0
	}
	for i, b := range s.blocks {
		if b.N > n {
			blocks = append(blocks, s.blocks[i:]...)
			break
		}
	}
	return blocks, reset, s.more
}

func (s *scrollback) ack(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < s.next && n > s.acked {
		s.acked = n
	}
	s.ackTime = time.Now()
	close(s.moved)
	s.moved = make(chan struct{})
}

func (s *scrollback) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	close(s.moved)
	s.moved = make(chan struct{})
	close(s.more)
	s.more = make(chan struct{})
}

// maxExecOutput bounds what Exec returns.
const maxExecOutput = 4 << 20

// limited keeps the beginning of an output.
type limited struct {
	b   strings.Builder
	cut bool
}

func (l *limited) write(p []byte) {
	n := min(len(p), maxExecOutput-l.b.Len())
	l.b.Write(p[:n])
	l.cut = l.cut || n < len(p)
}

func (l *limited) String() string {
	s := strings.ToValidUTF8(l.b.String(), "\uFFFD")
	if l.cut {
		s += "\n... (output cut)\n"
	}
	return s
}
