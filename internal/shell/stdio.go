package shell

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// syncWriter serialises the writes of jobs that share an output, and drops
// what comes after ctx is done.
type syncWriter struct {
	ctx context.Context
	mu  *sync.Mutex
	w   io.Writer
}

func (s *syncWriter) Write(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// sharedReader reads from a reader that may block for ever, on behalf of
// commands that come and go: a read that was given up keeps its data for the next.
type sharedReader struct {
	r       io.Reader
	mu      sync.Mutex // one Read at a time
	pending chan readResult
	rest    []byte
	err     error
}

type readResult struct {
	data []byte
	err  error
}

// ReadContext reads like Read and gives up when ctx is done.
func (s *sharedReader) ReadContext(ctx context.Context, p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if len(s.rest) == 0 && s.err == nil {
		if s.pending == nil {
			ch := make(chan readResult, 1)
			s.pending = ch
			go func() {
				buf := make([]byte, 32<<10)
				n, err := s.r.Read(buf)
				ch <- readResult{buf[:n], err}
			}()
		}
		select {
		case r := <-s.pending:
			s.pending = nil
			s.rest, s.err = r.data, r.err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if len(s.rest) > 0 {
		n := copy(p, s.rest)
		s.rest = s.rest[n:]
		return n, nil
	}
	return 0, s.err
}

// contextReader is a reader that a context interrupts.
type contextReader interface {
	ReadContext(ctx context.Context, p []byte) (int, error)
}

type boundReader struct {
	ctx context.Context
	r   contextReader
}

func (b boundReader) Read(p []byte) (int, error) { return b.r.ReadContext(b.ctx, p) }

// interruptFile makes reads and writes of a pipe fail when ctx is done; the
// returned function ends that and makes the file usable again.
func interruptFile(ctx context.Context, f *os.File, write bool) (release func()) {
	set := f.SetReadDeadline
	if write {
		set = f.SetWriteDeadline
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		set(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-done
			set(time.Time{})
		}
	}
}

// cancelWriter cancels a command whose output nobody takes any more.
type cancelWriter struct {
	w      io.Writer
	cancel context.CancelFunc
	mu     sync.Mutex
	err    error // the first failure
}

func (c *cancelWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err != nil {
		c.mu.Lock()
		if c.err == nil {
			c.err = err
		}
		c.mu.Unlock()
		c.cancel()
	}
	return n, err
}

// fileError is why a file didn't take the output; nil for a reader that has gone,
// which ends a command without a word.
func (c *cancelWriter) fileError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, isFile := c.w.(*outFile); isFile {
		return c.err
	}
	return nil
}

// jobWriter is the output of one pipeline stage or background job. Its Close
// ends the job, its failure kills it as SIGPIPE would.
type jobWriter struct {
	w   io.Writer
	job *job
}

func (j *jobWriter) Read([]byte) (int, error) { return 0, io.EOF }
func (j *jobWriter) Write(p []byte) (int, error) {
	n, err := j.w.Write(p)
	if err != nil {
		j.job.cancel()
	}
	return n, err
}
func (j *jobWriter) Close() error { j.job.end(); return nil }

// capWriter fails the run when a command substitution gets too long.
type capWriter struct {
	w    io.Writer
	left int64
	job  *job
	run  *run
}

func (c *capWriter) Read([]byte) (int, error) { return 0, io.EOF }
func (c *capWriter) Close() error             { return nil }
func (c *capWriter) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		c.run.fail("command substitution: output too long")
		return 0, errors.New("too long")
	}
	return c.w.Write(p)
}

// outFile is a file that a redirection opened for writing.
type outFile struct {
	File
	job *job
	run *run
}

func (o *outFile) Close() error { o.run.sh.slots.files.Add(-1); return o.File.Close() }

// jobOf finds the job that writes to w.
func jobOf(w io.Writer) *job {
	switch w := w.(type) {
	case *jobWriter:
		return w.job
	case *capWriter:
		return w.job
	case *outFile:
		return w.job
	case *cancelWriter:
		return jobOf(w.w)
	}
	return nil
}

// pipeOf finds the pipe that w ends in, so that a blocked write can be interrupted.
func pipeOf(w io.Writer) *os.File {
	switch w := w.(type) {
	case *os.File:
		return w
	case *jobWriter:
		return pipeOf(w.w)
	case *cancelWriter:
		return pipeOf(w.w)
	}
	return nil
}
