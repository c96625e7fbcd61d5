package web

import (
	"encoding/json"
	"net/http"
	"sync"

	"kubistro/internal/course"
)

// Preview tells open pages of an author's server that the courses were read again. All
// methods are safe for concurrent use.
type Preview struct {
	mu      sync.Mutex
	version int
	faults  course.Faults
	changed chan struct{}
}

// NewPreview starts with the faults of the first reading.
func NewPreview(faults course.Faults) *Preview {
	return &Preview{version: 1, faults: faults, changed: make(chan struct{})}
}

// Reloaded says that the courses were read again.
func (p *Preview) Reloaded(faults course.Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	p.faults = faults
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Preview) now() (version int, faults course.Faults, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version, p.faults, p.changed
}

// preview streams, as server-sent events, what was read and which faults that had.
func (s *Server) preview(w http.ResponseWriter, r *http.Request) error {
	ctx, stop := s.untilClosed(r.Context())
	defer stop()
	out, err := newEventSource(w)
	if err != nil {
		return err
	}
	for {
		version, faults, changed := s.Preview.now()
		if faults == nil {
			faults = course.Faults{}
		}
		body, err := json.Marshal(map[string]any{"version": version, "faults": faults})
		if err != nil {
			return err
		}
		if err := out.send(ctx, 0, body); err != nil {
			return ignoreGone(err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}
