package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kubistro/internal/lab"
)

// maxWorks is how many operations a session remembers.
const maxWorks = 20

// works are a session's operations. One runs at a time; they go on when the
// page is closed, and end with the session.
type works struct {
	l *live

	mu   sync.Mutex
	all  []*work
	wg   sync.WaitGroup
	shut bool
}

type work struct {
	lab.Operation
	target string
	began  time.Time
	done   chan struct{}
}

func newWorks(l *live) *works { return &works{l: l} }

// start runs do in the background, unless the same work is running already:
// then it returns that one. While another work runs: CodeConflict.
func (w *works) start(kind, target string, limit time.Duration, do func(context.Context) error) (lab.Operation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shut {
		return lab.Operation{}, errNotFound
	}
	for _, v := range w.all {
		if v.Done {
			continue
		}
		if v.Kind == kind && v.target == target {
			return w.show(v), nil
		}
		return lab.Operation{}, lab.Fail(lab.CodeConflict, "另一項操作還在進行，請等它完成。", "Another operation is still running. Wait until it is done.")
	}
	now := w.l.s.Clock.Now()
	v := &work{Operation: lab.Operation{ID: newID(), Kind: kind, Started: now.UTC()}, target: target, began: now, done: make(chan struct{})}
	w.all = append(w.all, v)
	if len(w.all) > maxWorks {
		w.all = slices.Clone(w.all[1:])
	}
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(w.l.ctx, limit)
		defer cancel()
		err := do(ctx)
		w.l.s.metrics.operations.WithLabelValues(kind, outcome(err)).Observe(w.l.s.Clock.Since(now).Seconds())
		w.finish(v, err)
	})
	return w.show(v), nil
}

func outcome(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}

func (w *works) finish(v *work, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v.Done = true
	v.Millis = w.l.s.Clock.Since(v.began).Milliseconds()
	close(v.done)
	if err == nil {
		return
	}
	var e *lab.Error
	switch {
	case errors.As(err, &e) && e.Code != lab.CodeInternal:
		v.Problem = &e.Text
	case errors.Is(err, context.DeadlineExceeded):
		v.Problem = &lab.Text{ZhTW: "花的時間太久，已經放棄。請再試一次，或重設整個叢集。", En: "It took too long and was given up. Try again, or reset the whole cluster."}
	default:
		text := lab.AsError(err).Text
		v.Problem = &text
	}
	w.l.log.Error("operation failed", "kind", v.Kind, "target", v.target, "error", err)
}

// show is the operation as it stands; w.mu is held.
func (w *works) show(v *work) lab.Operation {
	o := v.Operation
	if !o.Done {
		o.Millis = w.l.s.Clock.Since(v.began).Milliseconds()
	}
	return o
}

// caughtUp notes how long the running operation has caught up.
func (w *works) caughtUp(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.all {
		if !v.Done {
			v.CatchUpMillis = d.Milliseconds()
		}
	}
}

// busy reports whether an operation runs.
func (w *works) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.all, func(v *work) bool { return !v.Done })
}

func (w *works) find(id string) (lab.Operation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.all {
		if v.ID == id {
			return w.show(v), nil
		}
	}
	return lab.Operation{}, lab.Fail(lab.CodeNotFound, "找不到這項操作。", "There is no such operation.")
}

// wait ends the acceptance of new operations and waits for the running one.
func (w *works) wait() {
	w.mu.Lock()
	w.shut = true
	w.mu.Unlock()
	w.wg.Wait()
}

// Operation is part of API.
func (s *Service) Operation(ctx context.Context, learner lab.LearnerID, id, op string) (lab.Operation, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return lab.Operation{}, err
	}
	return l.works.find(op)
}
