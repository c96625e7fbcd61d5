package stream

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kubistro/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryStore keeps frames as the real store does: without gaps.
type memoryStore struct {
	mu     sync.Mutex
	frames []lab.Event
	broken error
}

func (s *memoryStore) AppendEvents(_ context.Context, _ string, events []lab.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	for _, e := range events {
		if e.N != uint64(len(s.frames))+1 {
			return errors.New("gap")
		}
		s.frames = append(s.frames, e)
	}
	return nil
}

func (s *memoryStore) Events(_ context.Context, _ string, after uint64, limit int) ([]lab.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after >= uint64(len(s.frames)) {
		return nil, nil
	}
	out := s.frames[after:]
	return append([]lab.Event(nil), out[:min(limit, len(out))]...), nil
}

func (s *memoryStore) EventRange(context.Context, string) (first, last uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.frames) == 0 {
		return 0, 0, nil
	}
	return 1, uint64(len(s.frames)), nil
}

// rig is a feed over a record, with a client that has seen everything from the start.
type rig struct {
	t     *testing.T
	store *memoryStore
	rec   *Record
	feed  *Feed
	sub   *Subscription
	clock *clocktesting.FakeClock
	saved []byte
	mu    sync.Mutex
}

func newRig(t *testing.T, store *memoryStore, saved []byte) *rig {
	t.Helper()
	rec, err := OpenRecord(t.Context(), store, "s", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: store, rec: rec, clock: clocktesting.NewFakeClock(time.Now())}
	r.feed = NewFeed(FeedConfig{
		Record: rec, Clock: r.clock, Log: slog.New(slog.DiscardHandler), Saved: saved,
		Save: func(b []byte) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.saved = b
		},
	})
	r.sub = rec.Subscribe(0)
	t.Cleanup(r.close)
	return r
}

func (r *rig) close() {
	r.feed.Close()
	r.rec.Close()
}

// sync takes the first lists in, of the objects that are there.
func (r *rig) sync(cluster string, objects ...Change) {
	before := r.rec.Last()
	r.feed.Follow(cluster)
	kinds := map[string][]*unstructured.Unstructured{}
	for _, c := range objects {
		c.Found = true
		r.feed.Change(c)
		kinds[c.Kind] = append(kinds[c.Kind], c.Object)
	}
	for _, res := range Resources() {
		r.feed.Listed(res.Kind, kinds[res.Kind])
	}
	r.feed.Synced()
	r.wait()
	r.feed.Audited(true)
	r.sub = r.rec.Subscribe(before)
	if before == 0 {
		r.any() // the snapshot that everybody starts with; frames that come before it is taken are in it
	}
}

// wait returns when the feed has taken in what was sent before.
func (r *rig) wait() {
	done := make(chan struct{})
	r.feed.send(func() { close(done) })
	<-done
}

// next returns the next frame that isn't a snapshot.
func (r *rig) next() lab.Event {
	r.t.Helper()
	for {
		e := r.any()
		if e.Type != lab.EventSnapshot {
			return e
		}
	}
}

func (r *rig) any() lab.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	e, err := r.sub.Next(ctx)
	if err != nil {
		for _, f := range r.store.frames {
			r.t.Logf("%d %+v", f.N, lineOf(f))
		}
		r.t.Fatalf("no frame: %v", err)
	}
	return e
}

// pass lets the time pass that a change waits for its entry.
func (r *rig) pass() {
	r.wait()
	for !r.clock.HasWaiters() {
		r.wait() // the feed hasn't set its timer yet
	}
	r.clock.Step(podWait)
}

type option func(*unstructured.Unstructured)

func object(kind, name, uid string, options ...option) Change {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetKind(kind)
	o.SetName(name)
	o.SetUID(types.UID(uid))
	if kind != "Node" && kind != "Namespace" {
		o.SetNamespace("default")
	}
	o.SetGeneration(1)
	for _, f := range options {
		f(o)
	}
	return Change{Kind: kind, Object: o}
}

func ownedBy(kind, name, uid string) option {
	return func(o *unstructured.Unstructured) {
		yes := true
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}})
	}
}

func set(value any, path ...string) option {
	return func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func deleting(o *unstructured.Unstructured) {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
}

func wrote(user, verb, resource, name string, more ...string) lab.AuditEntry {
	e := lab.AuditEntry{Time: time.Now(), User: user, Verb: verb, Resource: resource, Object: lab.ObjectRef{Namespace: "default", Name: name}, Code: 200}
	switch resource {
	case "deployments", "replicasets", "statefulsets", "daemonsets":
		e.APIGroup = "apps"
	case "jobs", "cronjobs":
		e.APIGroup = "batch"
	case "horizontalpodautoscalers":
		e.APIGroup = "autoscaling"
	case "endpointslices":
		e.APIGroup = "discovery.k8s.io"
	}
	if len(more) > 0 {
		e.Subresource = more[0]
	}
	return e
}

const (
	learner     = "learner"
	deployments = "system:serviceaccount:kube-system:deployment-controller"
	replicaSets = "system:serviceaccount:kube-system:replicaset-controller"
	scheduler   = "system:kube-scheduler"
	kitchen1    = "system:node:kitchen-1"
)
