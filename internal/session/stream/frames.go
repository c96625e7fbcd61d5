package stream

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"kubistro/internal/lab"
)

// frames adds what a joint tells to the record: the write, then the change.
func (f *Feed) frames(j *joint) {
	if j.told != nil {
		close(j.told)
		return
	}
	if j.event != nil {
		j.event.Cause = cause(f.history.ofEvent(j.event.Actor, keyOf(j.event.Object), j.event.Message, f))
		f.emit(*j.event)
		return
	}
	var actor string
	var because uint64
	if j.entry != nil {
		actor = auditActor(j.entry.User, j.entry.UserAgent)
		if j.entry.Session != "" {
			f.entered(j, actor)
			return
		}
		because = f.written(j, actor)
		if j.change == nil {
			f.late.keep(j, actor, because, f.clock.Now())
		}
	} else if j.change != nil {
		actor, because = f.late.find(f, j)
	}
	if j.change != nil {
		f.changed(j, actor, because)
	}
}

// written makes the frame of a write, and returns its number; for a write that only
// reports (status), which isn't worth a frame of its own, the number of its cause.
func (f *Feed) written(j *joint, actor string) uint64 {
	e := j.entry
	verb, reason := e.Verb, ""
	switch e.Subresource {
	case "":
	case "binding":
		verb = "bind"
	case "eviction":
		verb, reason = "delete", "eviction"
	default:
		reason = e.Subresource
	}
	owner := key{}
	if e.Owner != nil {
		owner = keyOf(*e.Owner)
		owner.namespace = e.Object.Namespace
	}
	if j.change != nil {
		if c := controller(j.change.Object); c != nil {
			owner = keyOf(*c)
		}
	}
	if e.Object.Name != "" && owner != (key{}) {
		f.history.own(j.key, owner)
	}
	because := f.operation
	if actor != ActorLab {
		because = f.history.cause(act{actor: actor, verb: verb, key: j.key, owner: owner}, f)
	}
	people := actor == ActorLearner || actor == ActorLab
	quiet := !people && (e.Subresource == "status" || j.change == nil && f.idle(j))
	if quiet || !people && !f.system && ownNamespace(e.Object.Namespace) {
		return because
	}
	n := f.emit(lab.Event{
		Time: e.Time, Type: lab.EventAudit, Actor: actor, Verb: verb, Reason: reason,
		Object: bounds(e.Object), Cause: cause(because),
	})
	if n == 0 {
		return because
	}
	if e.Object.Name != "" {
		f.history.add(j.key, mark{n: n, actor: actor, what: auditAspect(verb)})
	}
	if verb == "deletecollection" {
		f.bulk = append(f.bulk, bulk{j.key.kind, j.key.namespace, actor, n, f.clock.Now().Add(2 * time.Second)})
		if len(f.bulk) > 64 {
			f.bulk = f.bulk[1:]
		}
	}
	return n
}

// entered makes the frame of a session that somebody opened in a container, and
// notes when it is over. The lab's own tell nothing.
func (f *Feed) entered(j *joint, actor string) {
	e := j.entry
	switch {
	case actor == ActorLab || !f.system && ownNamespace(e.Object.Namespace):
	case e.Ended:
		f.history.leave(j.key, e.Session, f.clock.Now().Add(sessionEcho))
	default:
		n := f.emit(lab.Event{Time: e.Time, Type: lab.EventAudit, Actor: actor, Verb: e.Subresource, Message: cut(e.Command), Object: bounds(e.Object)})
		if n != 0 {
			f.history.add(j.key, mark{n: n, actor: actor, what: inside, session: e.Session})
		}
	}
}

// idle reports whether a write without a change changed nothing, rather than
// came so late that its change stands in the record already, by nobody known.
func (f *Feed) idle(j *joint) bool {
	if j.entry.Verb != "update" && j.entry.Verb != "patch" || kindOf(j.entry.Resource, j.entry.APIGroup) == "" {
		return false
	}
	t := f.history.objects[j.key]
	return t == nil || len(t.marks) == 0 || t.marks[len(t.marks)-1].actor != ""
}

func auditAspect(verb string) aspect {
	switch verb {
	case "create":
		return added
	case "delete":
		return deleted
	case "bind":
		return ready
	case "exec", "attach":
		return inside
	}
	return spec
}

func bounds(r lab.ObjectRef) lab.ObjectRef {
	r.Name, r.Namespace, r.Kind = cut(r.Name), cut(r.Namespace), cut(r.Kind)
	return r
}

// changed makes the frame of an object's change, if the page can see it.
func (f *Feed) changed(j *joint, actor string, because uint64) {
	c, was := j.change, f.states[j.key]
	_, there := f.states[j.key]
	at := c.at
	if j.entry != nil {
		at = j.entry.Time
	}
	e := lab.Event{Time: at, Type: lab.EventObject, Actor: actor, Object: Ref(c.Kind, c.Object)}
	if c.Removed {
		if !there {
			return
		}
		e.Verb = "remove"
	} else {
		e.Verb = "update"
		if !there || was.state.Ref.UID != e.Object.UID {
			e.Verb = "add"
		}
	}
	what := aspectOf(was.state, c, e.Verb)
	if actor == "" && what&deleted != 0 {
		e.Actor, because = f.collected(j.key)
	}
	if c.Removed {
		delete(f.states, j.key)
	} else {
		now := f.keep(j.key, *c)
		e.State = now.raw
		if there && bytes.Equal(now.raw, was.raw) {
			return
		}
		what |= aspectsBetween(was.state, now.state)
	}
	if because == 0 && j.entry == nil && e.Actor != "" {
		because = f.history.cause(act{actor: e.Actor, verb: e.Verb, key: j.key}, f)
	}
	e.Cause = cause(because)
	if n := f.emit(e); n != 0 {
		f.history.add(j.key, mark{n: n, actor: e.Actor, what: what})
	}
	if c.Removed {
		f.history.remove(j.key, was.state)
	}
}

// collected finds the deletion of a whole collection that took an object along.
func (f *Feed) collected(k key) (actor string, n uint64) {
	now := f.clock.Now()
	for i := len(f.bulk) - 1; i >= 0; i-- {
		if b := f.bulk[i]; b.kind == k.kind && b.namespace == k.namespace && now.Before(b.until) {
			return b.actor, b.n
		}
	}
	return "", 0
}

// keep makes the object's reduced form its present state.
func (f *Feed) keep(k key, c Change) known {
	s := reduce(c.Kind, c.Object)
	raw, err := json.Marshal(s)
	if err != nil {
		f.log.Error("object not reduced", "kind", c.Kind, "error", err)
	}
	v := known{state: s, raw: raw, generation: c.Object.GetGeneration()}
	if _, there := f.states[k]; there || len(f.states) < maxObjects {
		f.states[k] = v
	}
	if s.Owner != nil {
		f.history.own(k, keyOf(*s.Owner))
	} else if c.Kind == "EndpointSlice" && s.Service != "" {
		f.history.own(k, key{"Service", k.namespace, s.Service})
	}
	return v
}

func aspectOf(was lab.ObjectState, c *Change, verb string) aspect {
	switch {
	case verb == "add":
		return added
	case c.Removed:
		return deleted
	case c.Object.GetDeletionTimestamp() != nil && !was.Deleting:
		return deleted
	}
	return 0
}

// aspectsBetween compares two states of an object.
func aspectsBetween(was, now lab.ObjectState) (what aspect) {
	if was.Ready != now.Ready || was.IP != now.IP || was.Node != now.Node || now.Ref.Kind == "Node" && was.Status != now.Status {
		what |= ready
	}
	if was.Status != now.Status || was.Actual != now.Actual || was.Ready != now.Ready || was.Updated != now.Updated || was.Available != now.Available {
		what |= status
	}
	if now.Ref.Kind == "Pod" && was.Status != now.Status {
		switch now.Status {
		case "Running":
			what |= running
		case "Completed", "Error", "Failed", "Evicted", "Succeeded":
			what |= ended
		}
	}
	if was.Desired != now.Desired || !slices.Equal(was.Images, now.Images) || was.Unschedulable != now.Unschedulable ||
		!slices.Equal(was.Taints, now.Taints) || !maps.Equal(was.Labels, now.Labels) || !maps.Equal(was.Selector, now.Selector) || !slices.Equal(was.Ports, now.Ports) {
		what |= spec
	}
	return what
}
