package kubelet

import (
	"context"
	"io"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// What one container may log: the newest logBytes are kept, and a program that
// floods is slowed down to logRate after a burst, as a full disk queue would.
const (
	logBytes     = 1 << 20
	prevLogBytes = 128 << 10
	logRate      = 1 << 20 // bytes a second
	logBurst     = 2 << 20
	logLineMax   = 16 << 10 // containerd's max_container_log_line_size
	entryCost    = 64       // what an entry costs besides its text
)

type logEntry struct {
	at      time.Time
	stderr  bool
	partial bool // the line goes on in the next entry of its stream
	text    []byte
}

// logBuffer keeps the newest lines of one container. Safe for concurrent use.
type logBuffer struct {
	clock   clock.PassiveClock
	limiter *rate.Limiter

	mu      sync.Mutex
	entries []logEntry
	first   int // number of entries[0]
	bytes   int
	max     int
	changed chan struct{}
	closed  bool
}

func newLogBuffer(c clock.PassiveClock) *logBuffer {
	return &logBuffer{clock: c, limiter: rate.NewLimiter(logRate, logBurst), max: logBytes, changed: make(chan struct{})}
}

func (b *logBuffer) append(e logEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, e)
	b.bytes += len(e.text) + entryCost
	b.trimLocked()
	b.wakeLocked()
}

// size is what the log takes on the node's disk.
func (b *logBuffer) size() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(b.bytes)
}

func (b *logBuffer) trimLocked() {
	drop := 0
	for b.bytes > b.max && drop < len(b.entries)-1 {
		b.bytes -= len(b.entries[drop].text) + entryCost
		b.entries[drop].text = nil
		drop++
	}
	b.first += drop
	b.entries = b.entries[drop:]
	if cap(b.entries) > 4*len(b.entries)+64 {
		b.entries = append([]logEntry(nil), b.entries...)
	}
}

func (b *logBuffer) wakeLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// close says that nothing more comes.
func (b *logBuffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		b.wakeLocked()
	}
}

// shrink keeps only as much as a container of the past is worth.
func (b *logBuffer) shrink() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.max = prevLogBytes
	b.trimLocked()
}

// from returns the entries from number n on (fewer when they are gone already),
// the number to go on with, a channel that is closed when there is more, and whether the end is reached.
func (b *logBuffer) from(n int) (entries []logEntry, next int, changed <-chan struct{}, end bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := min(max(0, n-b.first), len(b.entries))
	entries = append(entries, b.entries[i:]...)
	return entries, b.first + len(b.entries), b.changed, b.closed
}

// tail returns the newest text of at most lines lines and size bytes: the fallback
// for a termination message (kuberuntime/kuberuntime_container.go, readLastStringFromContainerLogs).
func (b *logBuffer) tail(lines, size int) string {
	entries, _, _, _ := b.from(0)
	var text []byte
	for i := len(entries) - 1; i >= 0 && lines > 0; i-- {
		e := entries[i]
		line := e.text
		if !e.partial {
			line = append(append([]byte(nil), line...), '\n')
		}
		text = append(append([]byte(nil), line...), text...)
		lines--
		if len(text) > size {
			return string(text[len(text)-size:])
		}
	}
	return string(text)
}

// logWriter turns what a program writes to one of its streams into entries.
type logWriter struct {
	ctx    context.Context
	buf    *logBuffer
	stderr bool

	mu      sync.Mutex
	pending []byte
}

func (b *logBuffer) writer(ctx context.Context, stderr bool) *logWriter {
	return &logWriter{ctx: ctx, buf: b, stderr: stderr}
}

var _ io.Writer = (*logWriter)(nil)

// Write never fails before the container's end; it waits when the program floods.
func (w *logWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := p; len(rest) > 0; {
		n := min(len(rest), logLineMax)
		if err := w.buf.limiter.WaitN(w.ctx, n+entryCost); err != nil {
			return len(p) - len(rest), io.ErrClosedPipe
		}
		w.take(rest[:n])
		rest = rest[n:]
	}
	return len(p), nil
}

func (w *logWriter) take(p []byte) {
	for _, c := range p {
		if c == '\n' {
			w.emit(false)
			continue
		}
		w.pending = append(w.pending, c)
		if len(w.pending) >= logLineMax {
			w.emit(true)
		}
	}
}

func (w *logWriter) emit(partial bool) {
	text := append([]byte(nil), w.pending...)
	w.pending = w.pending[:0]
	w.buf.append(logEntry{at: w.buf.clock.Now(), stderr: w.stderr, partial: partial, text: text})
}

// flush writes what is left of a line without its end.
func (w *logWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) > 0 {
		w.emit(true)
	}
}
