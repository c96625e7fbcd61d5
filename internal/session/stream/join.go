package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"kubistro/internal/lab"
)

// joint is a change and the write that made it, as far as they have come.
// Which of the two comes first is chance; the first waits a moment for the other.
type joint struct {
	key      key
	change   *Change
	entry    *lab.AuditEntry
	event    *lab.Event    // a Kubernetes Event, which waits for nothing but its turn
	told     chan struct{} // nothing but a mark: closed when its turn comes
	deadline time.Time     // zero: nothing to wait for
}

// bulk is a deletion of a collection: its entry names no objects.
type bulk struct {
	kind, namespace, actor string
	n                      uint64
	until                  time.Time
}

func contextFor(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func (f *Feed) change(c Change) {
	f.dirty(c.Kind)
	if c.Kind == "Event" {
		f.event(c)
		return
	}
	if c.Object.GetName() == rootCA && c.Kind == "ConfigMap" {
		return
	}
	if !f.system && ownNamespace(c.Object.GetNamespace()) {
		return
	}
	k := key{c.Kind, c.Object.GetNamespace(), c.Object.GetName()}
	if c.Found && !f.synced {
		f.found(k, c)
		return
	}
	for i, j := range f.queue {
		if j.key == k && j.change == nil && j.entry != nil && f.fits(c, *j.entry) {
			j.change, j.deadline = &c, time.Time{}
			f.inOrder(i)
			return
		}
	}
	j := &joint{key: k, change: &c}
	if f.audited && !c.Found {
		wait := joinWait
		if c.Kind == "Pod" {
			wait = podWait
		}
		j.deadline = c.at.Add(wait)
	}
	f.push(j)
}

// inOrder moves a joint that has just got its change behind the earlier changes
// of its object: told before them, an old state would stand as the present one.
func (f *Feed) inOrder(i int) {
	j := f.queue[i]
	earlier := func(o *joint) bool { return o.key == j.key && o.change != nil }
	if slices.ContainsFunc(f.queue[i+1:], earlier) {
		f.queue = append(slices.Delete(f.queue, i, i+1), j)
	}
}

func (f *Feed) audit(e lab.AuditEntry) {
	if unrecorded(e) {
		return
	}
	if kind := kindOf(e.Resource, e.APIGroup); kind != "" {
		e.Object.Kind = kind
	} else if e.Object.Kind == "" {
		e.Object.Kind = e.Resource
	}
	k := keyOf(e.Object)
	for _, j := range f.queue {
		if j.key == k && j.entry == nil && j.change != nil && f.fits(*j.change, e) {
			j.entry, j.deadline = &e, time.Time{}
			return
		}
	}
	j := &joint{key: k, entry: &e}
	now := f.clock.Now()
	if kindOf(e.Resource, e.APIGroup) != "" && e.Object.Name != "" && e.Session == "" && now.Sub(e.Time) < time.Second {
		j.deadline = now.Add(joinWait)
	}
	f.push(j)
}

func (f *Feed) push(j *joint) {
	f.queue = append(f.queue, j)
	if len(f.queue) > joinQueue {
		f.flush(true)
	}
}

// fits reports whether a write can have made a change.
func (f *Feed) fits(c Change, e lab.AuditEntry) bool {
	if d := c.at.Sub(e.Time); d > 2*time.Second || d < -2*time.Second {
		return false
	}
	if e.Session != "" { // changes nothing by itself
		return false
	}
	if uid := string(c.Object.GetUID()); e.Object.UID != "" && uid != e.Object.UID {
		return false
	}
	before, there := f.states[key{c.Kind, c.Object.GetNamespace(), c.Object.GetName()}]
	isNew := !there || before.state.Ref.UID != string(c.Object.GetUID())
	goes := c.Removed || c.Object.GetDeletionTimestamp() != nil && (isNew || !before.state.Deleting)
	switch {
	case e.Verb == "create" && e.Subresource == "eviction", e.Verb == "delete":
		return goes
	case e.Verb == "create" && e.Subresource == "":
		return isNew && !c.Removed
	case c.Removed: // the last finalizer was taken away
		return e.Verb == "update" || e.Verb == "patch"
	case e.Subresource == "status" && before.generation != 0 && !goes:
		return before.generation == c.Object.GetGeneration()
	}
	return !goes
}

// flush makes frames of the joints that are complete or have waited enough, in
// order, and returns how long the next one still waits. All: none waits.
func (f *Feed) flush(all bool) time.Duration {
	now := f.clock.Now()
	for len(f.queue) > 0 {
		j := f.queue[0]
		if wait := j.deadline.Sub(now); !all && !j.deadline.IsZero() && wait > 0 {
			return wait
		}
		f.queue = f.queue[1:]
		f.frames(j)
	}
	f.queue = nil
	if f.skipped > 0 {
		if f.limiter.TokensAt(now) > framesBurst/10 {
			f.tellSkipped()
		}
		return 250 * time.Millisecond
	}
	if f.synced && !f.saveAt.IsZero() && now.After(f.saveAt) {
		f.persist()
	}
	return 0
}

// found takes an object of the first lists in. Known ones that differ changed
// while nobody watched; of a new cluster everything is simply there.
func (f *Feed) found(k key, c Change) {
	was, there := f.states[k]
	if !there && f.fresh {
		f.keep(k, c)
		return
	}
	raw, _ := json.Marshal(reduce(c.Kind, c.Object))
	if there && bytes.Equal(raw, was.raw) {
		was.generation = c.Object.GetGeneration()
		f.states[k] = was
		return
	}
	f.frames(&joint{key: k, change: &c})
}

// listed removes what was known of a kind and isn't in its first list any more.
func (f *Feed) listed(kind string, there map[key]bool) {
	for k, v := range f.states {
		if k.kind != kind || there[k] {
			continue
		}
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetName(k.name)
		o.SetNamespace(k.namespace)
		o.SetUID(types.UID(v.state.Ref.UID))
		f.frames(&joint{key: k, change: &Change{Kind: kind, Object: o, Removed: true, Found: true, at: f.clock.Now()}})
	}
}

// eventID is the State of a frame of a Kubernetes Event.
type eventID struct {
	UID   string `json:"uid"`
	Count int32  `json:"count"`
}

// event makes a frame of a new Kubernetes Event, or of one that happened again.
func (f *Feed) event(c Change) {
	var e corev1.Event
	if runtime.DefaultUnstructuredConverter.FromUnstructured(c.Object.Object, &e) != nil {
		return
	}
	uid := string(e.UID)
	if c.Removed {
		delete(f.events, uid)
		return
	}
	count := max(e.Count, 1)
	if e.Series != nil {
		count = max(count, e.Series.Count)
	}
	seen := f.events[uid]
	if len(f.events) < maxObjects || seen > 0 {
		f.events[uid] = count
	}
	if count <= seen || c.Found && !f.synced && f.fresh {
		return
	}
	if !f.system && ownNamespace(e.InvolvedObject.Namespace) {
		return
	}
	actor := eventActor(e.Source.Component, e.Source.Host)
	if actor == "" {
		actor = eventActor(e.ReportingController, e.ReportingInstance)
	}
	ref := lab.ObjectRef{
		Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace,
		Name: e.InvolvedObject.Name, UID: string(e.InvolvedObject.UID),
	}
	id, _ := json.Marshal(eventID{UID: uid, Count: count})
	verb := "add"
	if seen > 0 {
		verb = "update"
	}
	f.push(&joint{event: &lab.Event{
		Time: f.clock.Now(), Type: lab.EventEvent, Actor: actor, Verb: verb, Object: ref,
		Reason: cut(e.Reason), Message: bounded(e.Message, 1024), Warning: e.Type == corev1.EventTypeWarning,
		State: id,
	}})
}

// bounded cuts a message without splitting a character.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

func cause(n uint64) *uint64 {
	if n == 0 {
		return nil
	}
	return &n
}
