package terminal

import (
	"bytes"
	"io"
	"os"
	"sync"
)

// stderrRelay carries what kubectl writes to the process's standard error to
// the command that runs.
type stderrRelay struct {
	mu sync.Mutex
	w  io.Writer
}

func newStderrRelay() (*stderrRelay, error) {
	pr, pw, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r := &stderrRelay{}
	real := os.Stderr
	os.Stderr = pw
	go func() {
		buf := make([]byte, 4<<10)
		for {
			n, err := pr.Read(buf)
			if err != nil {
				return
			}
			r.mu.Lock()
			w := r.w
			r.mu.Unlock()
			if w == nil {
				w = real
			}
			w.Write(bytes.Clone(buf[:n]))
		}
	}()
	return r, nil
}

// to directs standard error to w until the returned function is called.
func (r *stderrRelay) to(w io.Writer) (restore func()) {
	r.mu.Lock()
	old := r.w
	r.w = w
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		if r.w == w {
			r.w = old
		}
		r.mu.Unlock()
	}
}
