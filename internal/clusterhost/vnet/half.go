package vnet

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Sizes of the buffer of one direction: it starts small and grows while its
// network's budget lasts.
const (
	smallBuffer  = 4 << 10
	largeBuffer  = 32 << 10
	bufferBudget = 32 << 20
	maxLost      = 64 << 10 // bytes that a closed peer may be sent before its RST is seen
)

// budget counts the bytes of all buffers of a network.
type budget struct{ used atomic.Int64 }

func (b *budget) tight() bool { return b.used.Load() > bufferBudget }

// half is one direction of a connection: a bounded buffer with a reader and a writer.
type half struct {
	budget *budget

	mu       sync.Mutex
	readable sync.Cond
	writable sync.Cond
	buf      []byte // ring; nil while empty
	off, n   int
	// silent: nothing passes; what ends the other side is not seen.
	silent  bool
	fin     bool  // the writer sent FIN
	wclosed bool  // the writer closed its end
	rclosed bool  // the reader closed its end
	lost    int   // bytes written since then
	told    bool  // the writer has read the end of the other direction
	rst     error // what the reader finds after the data, once not silent
	wrst    error // the same for the writer
	rdead   error // found at once, even in silence
	wdead   error
	rlimit  deadline
	wlimit  deadline
}

func newHalf(b *budget) *half {
	h := &half{budget: b}
	h.readable.L, h.writable.L = &h.mu, &h.mu
	return h
}

func (h *half) read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.rclosed:
			return 0, net.ErrClosed
		case h.rdead != nil:
			return 0, h.rdead
		case h.rlimit.expired:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		}
		if !h.silent {
			switch {
			case h.n > 0:
				return h.take(b), nil
			case h.rst != nil:
				return 0, h.rst
			case h.fin:
				return 0, io.EOF
			}
		}
		if h.n == 0 {
			h.drop()
		}
		h.readable.Wait()
	}
}

func (h *half) write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	done := 0
	for {
		switch {
		case h.wclosed:
			return done, net.ErrClosed
		case h.wdead != nil:
			return done, h.wdead
		case h.wlimit.expired:
			return done, os.ErrDeadlineExceeded
		case h.fin:
			return done, syscall.EPIPE
		}
		if !h.silent {
			switch {
			case h.wrst != nil:
				return done, h.wrst
			case h.rclosed && (h.told || h.lost >= maxLost):
				return done, syscall.EPIPE
			case h.rclosed: // as on a real network, where RST has yet to come
				h.lost += len(b) - done
				return len(b), nil
			}
		}
		if done == len(b) {
			return done, nil
		}
		k := h.put(b[done:])
		done += k
		if k > 0 {
			h.readable.Signal()
			continue
		}
		h.writable.Wait()
	}
}

// take moves bytes out of the ring.
func (h *half) take(b []byte) int {
	done := 0
	for done < len(b) && h.n > 0 {
		end := min(h.off+h.n, len(h.buf))
		k := copy(b[done:], h.buf[h.off:end])
		done += k
		h.n -= k
		if h.off += k; h.off == len(h.buf) {
			h.off = 0
		}
	}
	if h.n == 0 {
		h.off = 0
		if len(h.buf) > smallBuffer {
			h.drop()
		}
	}
	h.writable.Signal()
	return done
}

// put moves bytes into the ring, as far as they fit.
func (h *half) put(b []byte) int {
	h.grow(h.n + len(b))
	done := 0
	for done < len(b) && h.n < len(h.buf) {
		at := h.off + h.n
		end := len(h.buf)
		if at >= len(h.buf) {
			at -= len(h.buf)
			end = h.off
		}
		k := copy(h.buf[at:end], b[done:])
		done += k
		h.n += k
	}
	return done
}

// grow makes the ring hold want bytes, as far as the limits go.
func (h *half) grow(want int) {
	size := smallBuffer
	for size < want && size < largeBuffer && !h.budget.tight() {
		size *= 2
	}
	if size <= len(h.buf) {
		return
	}
	buf := make([]byte, size)
	if h.n > 0 {
		first := copy(buf, h.buf[h.off:min(h.off+h.n, len(h.buf))])
		copy(buf[first:h.n], h.buf)
	}
	h.budget.used.Add(int64(size - len(h.buf)))
	h.buf, h.off = buf, 0
}

func (h *half) drop() {
	h.budget.used.Add(-int64(len(h.buf)))
	h.buf, h.off, h.n = nil, 0, 0
}

func (h *half) wake() {
	h.readable.Broadcast()
	h.writable.Broadcast()
}

// closeRead ends the reader; it reports whether it was open.
func (h *half) closeRead() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rclosed {
		return false
	}
	h.rclosed = true
	h.rlimit.stop()
	if !h.silent {
		h.drop()
	}
	h.wake()
	return true
}

// tellEnd says that the writer has seen the peer's FIN.
func (h *half) tellEnd() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = true
}

func (h *half) readClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rclosed
}

// closeWrite sends FIN; all ends the writer too.
func (h *half) closeWrite(all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fin = true
	if all {
		h.wclosed = true
		h.wlimit.stop()
	}
	h.wake()
}

// failRead makes the reader find err: after the data and not in silence, or, when now is set, at once.
func (h *half) failRead(err error, now bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now {
		h.rdead = err
		h.drop()
	} else if h.rst == nil {
		h.rst = err
	}
	h.wake()
}

func (h *half) failWrite(err error, now bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now {
		h.wdead = err
	} else if h.wrst == nil {
		h.wrst = err
	}
	h.wake()
}

func (h *half) setSilent(silent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = silent
	if h.rclosed && !silent {
		h.drop()
	}
	h.wake()
}

func (h *half) setReadDeadline(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rlimit.set(t, &h.mu, &h.readable)
}

func (h *half) setWriteDeadline(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wlimit.set(t, &h.mu, &h.writable)
}
