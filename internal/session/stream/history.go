package stream

import (
	"time"

	"kubistro/internal/lab"
)

// key names an object without its uid: what audit entries and owners can give.
type key struct{ kind, namespace, name string }

func keyOf(r lab.ObjectRef) key { return key{r.Kind, r.Namespace, r.Name} }

// aspect says what about an object a frame changed.
type aspect uint16

const (
	added   aspect = 1 << iota
	spec           // what is wanted: generation, labels, taints
	status         // anything reported
	ready          // readiness, address or node of a Pod; readiness of a node
	ended          // a Pod that has failed or completed
	deleted        // deletion asked for, or gone
	running        // a Pod that runs now
	inside         // a session in a container
	outside        // something done to a node from outside of the cluster
)

// mark is a frame in the history of an object.
type mark struct {
	n     uint64
	actor string
	what  aspect

	session string    // of a session in a container
	until   time.Time // what ends or changes the container till then may come from it; zero: the session is open
}

// sessionEcho is how long after a session something may still follow from it: a
// probe that fails three times takes half a minute.
const sessionEcho = 10 * time.Second

// trace is an object's recent history.
type trace struct {
	marks []mark
	owner key
	gone  bool
	last  lab.ObjectState // what it was when it went
}

// Bounds of the history.
const (
	maxMarks = 12
	maxGone  = 1000
)

// history remembers which frames touched which objects, to find causes. Not
// for concurrent use.
type history struct {
	objects  map[key]*trace
	children map[key]map[key]struct{}
	gone     []key
	absent   map[string]absence // by actor
	now      func() time.Time
}

func newHistory(now func() time.Time) *history {
	return &history{now: now, objects: map[key]*trace{}, children: map[key]map[key]struct{}{}, absent: map[string]absence{}}
}

func (h *history) trace(k key) *trace {
	t := h.objects[k]
	if t == nil {
		t = &trace{}
		h.objects[k] = t
	}
	return t
}

// own notes the owner of an object.
func (h *history) own(k, owner key) {
	t := h.trace(k)
	if t.owner == owner || owner == (key{}) {
		return
	}
	h.disown(k, t)
	t.owner = owner
	if h.children[owner] == nil {
		h.children[owner] = map[key]struct{}{}
	}
	h.children[owner][k] = struct{}{}
}

func (h *history) disown(k key, t *trace) {
	if kids := h.children[t.owner]; kids != nil {
		delete(kids, k)
		if len(kids) == 0 {
			delete(h.children, t.owner)
		}
	}
}

// add notes a frame. An object that is gone stays for a while, because what
// follows from that is still to come.
func (h *history) add(k key, m mark) {
	t := h.trace(k)
	t.gone = false
	t.marks = append(t.marks, m)
	if len(t.marks) > maxMarks {
		t.marks = append(t.marks[:0], t.marks[1:]...)
	}
}

// leave notes that a session has ended.
func (h *history) leave(k key, session string, until time.Time) {
	t := h.objects[k]
	if t == nil {
		return
	}
	for i := range t.marks {
		if m := &t.marks[i]; m.session == session && m.what == inside {
			m.until = until
		}
	}
}

// session is the newest session in a container of a Pod that is open, or has just ended.
func (h *history) session(k key) mark {
	t := h.objects[k]
	if t == nil {
		return mark{}
	}
	for i := len(t.marks) - 1; i >= 0; i-- {
		if m := t.marks[i]; m.session != "" && (m.until.IsZero() || h.now().Before(m.until)) {
			return m
		}
	}
	return mark{}
}

func (h *history) remove(k key, last lab.ObjectState) {
	t := h.trace(k)
	t.gone, t.last = true, last
	h.gone = append(h.gone, k)
	for len(h.gone) > maxGone {
		old := h.gone[0]
		h.gone = h.gone[1:]
		if t := h.objects[old]; t != nil && t.gone {
			h.disown(old, t)
			delete(h.objects, old)
		}
	}
}

// latest is the newest mark of an object that changed one of the aspects and
// that actor did not make itself; n is 0 when there is none.
func (h *history) latest(k key, not string, what aspect) mark {
	t := h.objects[k]
	if t == nil {
		return mark{}
	}
	for i := len(t.marks) - 1; i >= 0; i-- {
		if m := t.marks[i]; m.actor != not && m.what&what != 0 {
			return m
		}
	}
	return mark{}
}

// latestChild is latest over the objects of a kind that k owns.
func (h *history) latestChild(k key, kind, not string, what aspect) mark {
	var best mark
	for c := range h.children[k] {
		if c.kind != kind {
			continue
		}
		if m := h.latest(c, not, what); m.n > best.n {
			best = m
		}
	}
	return best
}

// latestBy is the newest mark that the actor made itself.
func (h *history) latestBy(k key, actor string) mark {
	t := h.objects[k]
	if t == nil {
		return mark{}
	}
	for i := len(t.marks) - 1; i >= 0; i-- {
		if t.marks[i].actor == actor {
			return t.marks[i]
		}
	}
	return mark{}
}

func newer(marks ...mark) mark {
	var best mark
	for _, m := range marks {
		if m.n > best.n {
			best = m
		}
	}
	return best
}
