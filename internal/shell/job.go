package shell

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// job is a pipeline stage or a background job.
type job struct {
	run    *run
	n      int // background jobs: number from 1; 0 for a pipeline stage
	ctx    context.Context
	cancel context.CancelFunc
}

func (j *job) end() {
	j.cancel()
	j.run.sh.slots.release(j)
}

// run is one call of Shell.Run, or one command line of an interactive shell.
type run struct {
	sh      *Shell
	ctx     context.Context
	cancel  context.CancelFunc
	streams Streams
	in      contextReader // the base input; nil: none
	started time.Time
	mu      sync.Mutex
	failure string
	depth   int // nesting of sh commands
	// base is what the interpreter has as standard input; baseWrite feeds it for the read builtin.
	base, baseWrite *os.File
	sources         map[string]string // checked scripts by the path that open serves
}

type runKey struct{}

// fail ends everything that the run started, with one message.
func (r *run) fail(msg string) {
	r.mu.Lock()
	first := r.failure == ""
	if first {
		r.failure = msg
	}
	r.mu.Unlock()
	if first {
		fmt.Fprintf(r.streams.Err, "%s: %s\n", r.sh.name, msg)
		r.cancel()
	}
}

// slots are what a shell and the shells inside it share.
type slots struct {
	mu      sync.Mutex
	jobs    map[*job]struct{}
	changed chan struct{} // closed when a job starts or ends
	last    int           // number of the newest background job
	files   atomic.Int64  // open redirections
	owed    debt          // commands that the rate limiter has not heard of
}

func newSlots() *slots {
	return &slots{jobs: map[*job]struct{}{}, changed: make(chan struct{})}
}

// start counts a new job; nil when there are too many.
func (sh *Shell) start(r *run, background bool) *job {
	s := sh.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs) >= sh.o.Limits.Jobs {
		return nil
	}
	j := &job{run: r}
	j.ctx, j.cancel = context.WithCancel(r.ctx)
	if background {
		s.last++
		j.n = s.last
	}
	s.jobs[j] = struct{}{}
	s.notify()
	return j
}

func (s *slots) release(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.jobs[j]; ok {
		delete(s.jobs, j)
		s.notify()
	}
}

func (s *slots) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// started waits for background job n, which the interpreter may be about to
// start, for a short while.
func (s *slots) started(ctx context.Context, n int) {
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	for {
		s.mu.Lock()
		last, changed := s.last, s.changed
		s.mu.Unlock()
		if n <= last {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// wait waits until no job that matches is left, or ctx is done.
func (s *slots) wait(ctx context.Context, matches func(*job) bool) {
	for {
		s.mu.Lock()
		left := 0
		for j := range s.jobs {
			if matches(j) {
				left++
			}
		}
		changed := s.changed
		s.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// background lists the running background jobs by number.
func (s *slots) background() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*job
	for j := range s.jobs {
		if j.n > 0 {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *job) int { return a.n - b.n })
	return out
}
