package stream

import (
	"encoding/json"
	"strconv"
	"time"

	"kubistro/internal/lab"
)

// saveEvery bounds how often a feed's memory is written. After a crash the
// frames in the store bring it up to date.
const saveEvery = 10 * time.Second

// memory is what a feed needs to know after a restart, so that objects that
// were there before aren't news.
type memory struct {
	Cluster string            `json:"cluster"`
	N       uint64            `json:"n"`
	States  []json.RawMessage `json:"states"`
	Events  map[string]int32  `json:"events"`
}

func (f *Feed) persist() {
	if f.save == nil || f.cluster == "" {
		return
	}
	m := memory{Cluster: f.cluster, N: f.record.Last(), Events: f.events}
	for _, v := range f.states {
		m.States = append(m.States, v.raw)
	}
	data, err := json.Marshal(m)
	if err != nil {
		f.log.Error("feed not saved", "error", err)
		return
	}
	f.saveAt = f.clock.Now().Add(saveEvery)
	f.save(data)
}

func (f *Feed) restore(data []byte) {
	var m memory
	if len(data) == 0 {
		return
	}
	if err := json.Unmarshal(data, &m); err != nil {
		f.log.Warn("feed's memory is damaged; starting without", "error", err)
		return
	}
	f.cluster = m.Cluster
	if m.Events != nil {
		f.events = m.Events
	}
	for _, raw := range m.States {
		f.remember(raw)
	}
	f.replay(m.N)
}

func (f *Feed) remember(raw json.RawMessage) {
	var s lab.ObjectState
	if json.Unmarshal(raw, &s) != nil || s.Ref.Name == "" {
		return
	}
	k := keyOf(s.Ref)
	f.states[k] = known{state: s, raw: raw}
	if s.Owner != nil {
		f.history.own(k, keyOf(*s.Owner))
	}
}

// replay applies the frames that came after the memory was written, and fills
// the history of objects from the newest frames, so that causes are found again.
func (f *Feed) replay(n uint64) {
	const reach = 2000
	last := f.record.Last()
	from := n
	if last > reach {
		from = min(n, last-reach)
	} else {
		from = 0
	}
	ctx, cancel := contextFor(10 * time.Second)
	defer cancel()
	frames, err := f.record.Since(ctx, from, 4*reach)
	if err != nil {
		f.log.Warn("record not read; starting without", "error", err)
		return
	}
	for _, e := range frames {
		k := keyOf(e.Object)
		switch {
		case e.Type == lab.EventEvent && e.N > n:
			var id eventID
			if json.Unmarshal(e.State, &id) == nil {
				f.events[id.UID] = id.Count
			}
		case e.Type == lab.EventLab && e.Actor == ActorLearner:
			f.history.outside(e.N, e)
		case e.Type == lab.EventAudit && e.Object.Name != "":
			f.history.add(k, mark{n: e.N, actor: e.Actor, what: auditAspect(e.Verb)})
		case e.Type == lab.EventObject && e.Verb == "remove":
			last := f.states[k].state
			if e.N > n {
				delete(f.states, k)
			}
			f.history.add(k, mark{n: e.N, actor: e.Actor, what: deleted})
			f.history.remove(k, last)
		case e.Type == lab.EventObject:
			if e.N > n {
				f.remember(e.State)
			}
			f.history.add(k, mark{n: e.N, actor: e.Actor, what: added | status})
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
