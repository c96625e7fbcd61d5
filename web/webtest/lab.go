// Package webtest has in-memory doubles of what package web needs, for its
// handler tests and for browser tests without a cluster. The doubles keep the
// contracts of web's interfaces: numbering, not found for strangers, conflicts.
package webtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"kubistro/internal/lab"
	"kubistro/web"
)

var errNoSession = lab.Fail(lab.CodeNotFound, "沒有這個工作階段。", "There is no such session.")

// Lab is an in-memory web.Lab.
type Lab struct {
	mu       sync.Mutex
	sessions map[string]*Session
	next     int
	// Calls notes the calls that change something, as "solve b 0".
	Calls []string
	// Start is the state of new sessions.
	Start lab.State
}

// NewLab makes a Lab whose sessions are ready at once.
func NewLab() *Lab { return &Lab{sessions: map[string]*Session{}, Start: lab.StateReady} }

var _ web.Lab = (*Lab)(nil)

// Session is one session of a Lab; tests drive it.
type Session struct {
	mu        sync.Mutex
	v         lab.Session
	changed   chan struct{}
	events    []lab.Event
	objects   map[string]lab.ObjectState
	more      chan struct{}
	exercises []lab.ExerciseState
	files     map[string]fileOf
	clock     int64
	terminals map[string]*Terminal
	edits     []web.EditRequest
	finished  map[string]bool

	kitchens   []lab.KitchenState
	home       map[string]bool // control loops
	speed      int
	encryption lab.EncryptionState
}

// Learner is whose session it is.
func (s *Session) Learner() lab.LearnerID { return s.v.Learner }

// ID is the session's.
func (s *Session) ID() string { return s.v.ID }

type fileOf struct {
	body []byte
	info web.File
}

func (l *Lab) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Calls = append(l.Calls, fmt.Sprintf(format, args...))
}

// Called reports whether a call was noted.
func (l *Lab) Called(call string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.Calls, call)
}

func (l *Lab) find(learner lab.LearnerID, id string) (*Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions[id]
	if s == nil || s.v.Learner != learner {
		return nil, errNoSession
	}
	return s, nil
}

// capabilities are those of the doubles' driver.
func capabilities() []string {
	return []string{"events", "audit", "kitchen-power", "kitchens", "control-loops", "clock", "etcd"}
}

// Only returns the one session that there is, nil before it was opened.
func (l *Lab) Only() *Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sessions {
		return s
	}
	return nil
}

// Count is how many sessions there are.
func (l *Lab) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sessions)
}

// Open is part of web.Lab.
func (l *Lab) Open(_ context.Context, learner lab.LearnerID, course string) (lab.Session, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sessions {
		if s.v.Learner == learner && s.v.Course == course {
			return s.snapshot(), false, nil
		}
	}
	l.next++
	now := time.Now()
	s := &Session{
		v: lab.Session{
			ID: fmt.Sprintf("s%d", l.next), Learner: learner, Course: course, State: l.Start, Driver: "embedded",
			Capabilities: capabilities(), Created: now, Status: lab.Status{State: l.Start, Since: now, Why: "create"},
		},
		changed: make(chan struct{}), more: make(chan struct{}), objects: map[string]lab.ObjectState{},
		files: map[string]fileOf{}, terminals: map[string]*Terminal{}, finished: map[string]bool{},
		exercises: SampleExercises(),
	}
	for _, k := range lab.DefaultClusterSpec().Kitchens {
		s.kitchens = append(s.kitchens, lab.KitchenState{Kitchen: k, Power: true, Cable: true})
	}
	l.sessions[s.v.ID] = s
	return s.v, true, nil
}

func (s *Session) snapshot() lab.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.v
}

// List is part of web.Lab.
func (l *Lab) List(_ context.Context, learner lab.LearnerID) ([]lab.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []lab.Session
	for _, s := range l.sessions {
		if s.v.Learner == learner {
			out = append(out, s.snapshot())
		}
	}
	return out, nil
}

// Get is part of web.Lab.
func (l *Lab) Get(_ context.Context, learner lab.LearnerID, id string) (lab.Session, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return lab.Session{}, err
	}
	return s.snapshot(), nil
}

// Changes is part of web.Lab.
func (l *Lab) Changes(_ context.Context, learner lab.LearnerID, id string) (<-chan struct{}, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed, nil
}

// SetStatus changes the session's state and tells those who wait.
func (s *Session) SetStatus(st lab.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.Since.IsZero() {
		st.Since = time.Now()
	}
	s.v.State, s.v.Status = st.State, st
	close(s.changed)
	s.changed = make(chan struct{})
}

// End is part of web.Lab.
func (l *Lab) End(_ context.Context, learner lab.LearnerID, id string) error {
	s, err := l.find(learner, id)
	if err != nil {
		return err
	}
	l.note("end %s", id)
	s.SetStatus(lab.Status{State: lab.StateEnded})
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, id)
	return nil
}

func (l *Lab) operation(learner lab.LearnerID, id, kind, call string) (lab.Operation, error) {
	if _, err := l.find(learner, id); err != nil {
		return lab.Operation{}, err
	}
	l.note("%s", call)
	return lab.Operation{ID: "o1", Kind: kind, Started: time.Now()}, nil
}

// Reset is part of web.Lab.
func (l *Lab) Reset(_ context.Context, learner lab.LearnerID, id string) (lab.Operation, error) {
	return l.operation(learner, id, "reset", "reset")
}

// ResetExercise is part of web.Lab.
func (l *Lab) ResetExercise(_ context.Context, learner lab.LearnerID, id, exercise string) (lab.Operation, error) {
	return l.operation(learner, id, "reset_exercise", "reset "+exercise)
}

// Solve is part of web.Lab.
func (l *Lab) Solve(_ context.Context, learner lab.LearnerID, id, exercise string, n int) (lab.Operation, error) {
	if n < 0 || n > 1 {
		return lab.Operation{}, lab.Fail(lab.CodeNotFound, "沒有這個解法。", "There is no such solution.")
	}
	return l.operation(learner, id, "solve", fmt.Sprintf("solve %s %d", exercise, n))
}

// Operation is part of web.Lab: every operation is done when it is asked for.
func (l *Lab) Operation(_ context.Context, learner lab.LearnerID, id, op string) (lab.Operation, error) {
	if _, err := l.find(learner, id); err != nil {
		return lab.Operation{}, err
	}
	if op != "o1" {
		return lab.Operation{}, lab.Fail(lab.CodeNotFound, "沒有這項作業。", "There is no such operation.")
	}
	return lab.Operation{ID: op, Done: true, Millis: 12}, nil
}

// Retry is part of web.Lab.
func (l *Lab) Retry(_ context.Context, learner lab.LearnerID, id string) error {
	return l.restart(learner, id, "retry")
}

// Wake is part of web.Lab.
func (l *Lab) Wake(_ context.Context, learner lab.LearnerID, id string) error {
	return l.restart(learner, id, "wake")
}

func (l *Lab) restart(learner lab.LearnerID, id, call string) error {
	s, err := l.find(learner, id)
	if err != nil {
		return err
	}
	l.note("%s", call)
	s.SetStatus(lab.Status{State: lab.StateProvisioning, Why: "wake"})
	return nil
}

// Touch is part of web.Lab.
func (l *Lab) Touch(_ context.Context, learner lab.LearnerID, id string) error {
	_, err := l.find(learner, id)
	return err
}

// Kubeconfig is part of web.Lab.
func (l *Lab) Kubeconfig(_ context.Context, learner lab.LearnerID, id, base string) ([]byte, error) {
	if _, err := l.find(learner, id); err != nil {
		return nil, err
	}
	return []byte("apiVersion: v1\nkind: Config\nclusters:\n- cluster: {server: " + base + "/k8s/" + id + "}\n"), nil
}

// RevokeKubeconfigs is part of web.Lab.
func (l *Lab) RevokeKubeconfigs(_ context.Context, learner lab.LearnerID, id string) error {
	_, err := l.find(learner, id)
	return err
}

// KubernetesProxy is part of web.Lab: it tells what reached it.
func (l *Lab) KubernetesProxy() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"path": r.URL.Path, "cookie": r.Header.Get("Cookie"), "auth": r.Header.Get("Authorization")})
	})
}

// Events is part of web.Lab.
func (l *Lab) Events(_ context.Context, learner lab.LearnerID, id string, after uint64) (web.Subscription, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &subscription{s: s, after: after, stale: after == 0 || after > uint64(len(s.events)), closed: make(chan struct{})}, nil
}

type subscription struct {
	s      *Session
	after  uint64
	stale  bool
	closed chan struct{}
	once   sync.Once
}

// Next is part of web.Subscription.
func (u *subscription) Next(ctx context.Context) (lab.Event, error) {
	for {
		u.s.mu.Lock()
		more := u.s.more
		if u.stale {
			u.stale, u.after = false, uint64(len(u.s.events))
			e := lab.Event{N: u.after, Time: time.Now(), Type: lab.EventSnapshot, Verb: "snapshot", State: u.s.states()}
			u.s.mu.Unlock()
			return e, nil
		}
		if u.after < uint64(len(u.s.events)) {
			e := u.s.events[u.after]
			u.after++
			u.s.mu.Unlock()
			return e, nil
		}
		u.s.mu.Unlock()
		select {
		case <-more:
		case <-u.closed:
			return lab.Event{}, io.EOF
		case <-ctx.Done():
			return lab.Event{}, ctx.Err()
		}
	}
}

// Close is part of web.Subscription.
func (u *subscription) Close() { u.once.Do(func() { close(u.closed) }) }

func (s *Session) states() json.RawMessage {
	list := []lab.ObjectState{}
	for _, o := range s.objects {
		list = append(list, o)
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return b
}
