package stream

import (
	"slices"
	"time"

	"kubistro/internal/lab"
)

// Bounds of what is remembered of writes whose change is late.
const (
	lateFor = 2 * time.Second
	lateMax = 256
)

// lateWrite is a write that was told before its change came.
type lateWrite struct {
	key   key
	entry lab.AuditEntry
	actor string
	n     uint64 // the write's frame, or its cause's
	until time.Time
}

// lateWrites are the writes that must have made a change which hasn't come yet.
type lateWrites []lateWrite

// keep remembers a write that certainly changes its object.
func (l *lateWrites) keep(j *joint, actor string, n uint64, now time.Time) {
	e := j.entry
	sure := e.Subresource == "binding" || e.Subresource == "" && (e.Verb == "create" || e.Verb == "delete")
	if !sure || e.Object.Name == "" || kindOf(e.Resource, e.APIGroup) == "" {
		return
	}
	*l = slices.DeleteFunc(*l, func(w lateWrite) bool { return now.After(w.until) })
	if len(*l) < lateMax {
		*l = append(*l, lateWrite{key: j.key, entry: *e, actor: actor, n: n, until: now.Add(lateFor)})
	}
}

// find takes out the write that made a change; without one, the actor is unknown.
func (l *lateWrites) find(f *Feed, j *joint) (actor string, n uint64) {
	for i, w := range *l {
		if w.key != j.key || !f.fits(*j.change, w.entry) || w.entry.Subresource == "binding" && !f.bound(j) {
			continue
		}
		*l = slices.Delete(*l, i, i+1)
		return w.actor, w.n
	}
	return "", 0
}

// bound reports whether a change is a Pod's way to its node.
func (f *Feed) bound(j *joint) bool {
	return f.states[j.key].state.Node == "" && reduce(j.change.Kind, j.change.Object).Node != ""
}
