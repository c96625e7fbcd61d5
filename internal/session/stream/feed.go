package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"kubistro/internal/lab"
)

// Bounds of a feed.
const (
	framesPerSecond = 200
	framesBurst     = 1500
	maxObjects      = 5000 // objects whose state is kept for the page
	joinWait        = 30 * time.Millisecond
	// A Pod's change waits longer for its entry, which always comes: who did it is what people ask.
	podWait   = 200 * time.Millisecond
	joinQueue = 2048
)

// Change is an object that was added, changed or removed in the cluster.
type Change struct {
	Kind   string
	Object *unstructured.Unstructured // the new form; the last one for Removed
	// Removed: it is gone.
	Removed bool
	// Found: it was met in a list, so nobody can tell when and how it changed.
	Found bool

	at time.Time
}

// known is the present state of an object.
type known struct {
	state      lab.ObjectState
	raw        json.RawMessage
	generation int64
}

// Feed joins the changes of one session's clusters, one after the other, with
// the audit entries and makes frames of them. All methods are safe for concurrent use.
type Feed struct {
	record *Record
	clock  clock.Clock
	log    *slog.Logger
	// System keeps the cluster's own namespaces in the record too.
	system bool

	mu        sync.Mutex
	states    map[key]known
	events    map[string]int32 // count of each Kubernetes Event by uid
	history   *history
	limiter   *rate.Limiter
	skipped   int
	operation uint64   // frame of the lab's running operation: cause of the lab's own writes
	cluster   string   // the cluster that states describe
	synced    bool     // states describe the cluster's present
	fresh     bool     // nothing was known of the cluster: its first lists are no news
	bulk      []bulk   // deletions of whole collections, newest last
	queue     []*joint // in order of arrival; of one object, in the order of its changes
	late      lateWrites
	audited   bool // audit entries are coming

	in     chan func()
	stop   context.CancelFunc
	done   chan struct{}
	dirty  func(kind string)
	saveAt time.Time
	save   func([]byte)
}

// FeedConfig is what a feed needs.
type FeedConfig struct {
	Record *Record
	Clock  clock.Clock
	Log    *slog.Logger
	// System keeps the cluster's own namespaces (kube-system and so on) in the record too.
	System bool
	// Changed is called for each change of an object, with its kind, and with "record" for
	// each frame; it must not block.
	Changed func(kind string)
	// Saved is a former feed's memory, as Save got it; nil at first. Save keeps it; it may be nil.
	Saved []byte
	Save  func([]byte)
}

// NewFeed starts a feed; Close ends it.
func NewFeed(c FeedConfig) *Feed {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Feed{
		record: c.Record, clock: c.Clock, log: c.Log, system: c.System,
		states: map[key]known{}, events: map[string]int32{}, history: newHistory(c.Clock.Now),
		limiter: rate.NewLimiter(framesPerSecond, framesBurst),
		in:      make(chan func(), 256), stop: cancel, done: make(chan struct{}),
		dirty: c.Changed, save: c.Save,
	}
	if f.dirty == nil {
		f.dirty = func(string) {}
	}
	f.restore(c.Saved)
	c.Record.mu.Lock()
	c.Record.snapshot = f.snapshot
	c.Record.mu.Unlock()
	go f.run(ctx)
	return f
}

// Close stops the feed, saves its memory and waits.
func (f *Feed) Close() {
	f.stop()
	<-f.done
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flush(true)
	f.persist()
}

// Follow says which cluster the next changes come from. Another cluster than before
// starts from nothing: its first objects are what is there, not news. It returns the
// time after which writes are news.
func (f *Feed) Follow(cluster string) (since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flush(true)
	f.synced, f.audited = false, false
	f.fresh = cluster != f.cluster || len(f.states) == 0
	if cluster == f.cluster {
		return f.heard()
	}
	f.cluster = cluster
	f.states, f.events, f.history, f.late = map[key]known{}, map[string]int32{}, newHistory(f.clock.Now), nil
	f.record.Resync()
	return f.clock.Now()
}

// heard is the time of the newest frame that isn't the lab's own.
func (f *Feed) heard() time.Time {
	ctx, cancel := contextFor(5 * time.Second)
	defer cancel()
	const reach = 200
	last := f.record.Last()
	frames, err := f.record.Since(ctx, last-min(last, reach), reach)
	if err != nil {
		f.log.Warn("record not read", "error", err)
	}
	for i := len(frames) - 1; i >= 0; i-- {
		if frames[i].Type != lab.EventLab {
			return frames[i].Time
		}
	}
	return f.clock.Now()
}

// Listed says which objects the first list of a kind holds, after Change was
// called for each.
func (f *Feed) Listed(kind string, objects []*unstructured.Unstructured) {
	there := make(map[key]bool, len(objects))
	for _, o := range objects {
		there[key{kind, o.GetNamespace(), o.GetName()}] = true
	}
	f.send(func() { f.listed(kind, there) })
}

// Synced says that the first lists of all kinds have been taken in.
func (f *Feed) Synced() {
	f.send(func() {
		if f.synced {
			return
		}
		f.synced, f.fresh = true, false
		f.record.Resync()
		f.persist()
	})
}

// Audited says whether audit entries are coming: only then changes wait for theirs.
func (f *Feed) Audited(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.audited = on
}

// Change takes an object's change in.
func (f *Feed) Change(c Change) {
	c.at = f.clock.Now()
	f.send(func() { f.change(c) })
}

// Audit takes an accepted write in.
func (f *Feed) Audit(e lab.AuditEntry) { f.send(func() { f.audit(e) }) }

// Told waits until all that was taken in before is in the record.
func (f *Feed) Told(ctx context.Context) error {
	told := make(chan struct{})
	f.send(func() { f.push(&joint{told: told}) })
	select {
	case <-told:
		return nil
	case <-f.done:
		return nil // Close tells the rest
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send blocks while the feed is behind: watches slow down, nothing piles up.
func (f *Feed) send(work func()) {
	select {
	case f.in <- work:
	case <-f.done:
	}
}

func (f *Feed) run(ctx context.Context) {
	defer close(f.done)
	for {
		f.mu.Lock()
		wait := f.flush(false)
		f.mu.Unlock()
		var timer <-chan time.Time
		if wait > 0 {
			timer = f.clock.After(wait)
		}
		select {
		case work := <-f.in:
			f.mu.Lock()
			work()
			f.mu.Unlock()
		case <-timer:
		case <-ctx.Done():
			return
		}
	}
}

// Lab adds a frame that the lab itself made and returns its number. It is never skipped.
func (f *Feed) Lab(e lab.Event) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tell(e)
}

// tell is Lab; f.mu is held.
func (f *Feed) tell(e lab.Event) uint64 {
	e.Type = lab.EventLab
	if e.Actor == "" {
		e.Actor = ActorLab
	}
	e.Time = f.clock.Now().UTC()
	n, _ := f.record.Append(e)
	f.dirty("record")
	return n
}

// Working names the frame of the lab's running operation, the cause of the writes that
// it makes; 0 when it is over.
func (f *Feed) Working(n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.operation = n
}

// emit numbers a frame, unless there are too many; then they are counted and
// told about later, together.
func (f *Feed) emit(e lab.Event) uint64 {
	if !f.limiter.AllowN(f.clock.Now(), 1) {
		f.skipped++
		return 0
	}
	if f.skipped > 0 && f.limiter.TokensAt(f.clock.Now()) > framesBurst/10 {
		f.tellSkipped()
	}
	e.Time = e.Time.UTC()
	n, ok := f.record.Append(e)
	if !ok {
		f.skipped++
		return 0
	}
	f.dirty("record")
	return n
}

func (f *Feed) tellSkipped() {
	state, _ := json.Marshal(map[string]int{"skipped": f.skipped})
	f.record.Append(lab.Event{
		Time: f.clock.Now().UTC(), Type: lab.EventLab, Actor: ActorLab, Verb: "skipped", State: state,
		Text: &lab.Text{
			ZhTW: "事件來得太快，略過了 " + itoa(f.skipped) + " 筆紀錄；目前狀態仍然正確。",
			En:   itoa(f.skipped) + " events came too fast and were left out of the record; the present state is right.",
		},
	})
	f.skipped = 0
	f.record.Resync()
}

func (f *Feed) state(k key) (lab.ObjectState, bool) {
	if v, ok := f.states[k]; ok {
		return v.state, true
	}
	if t := f.history.objects[k]; t != nil && t.gone {
		return t.last, true
	}
	return lab.ObjectState{}, false
}

func (f *Feed) each(kind, namespace string, do func(key, lab.ObjectState)) {
	for k, v := range f.states {
		if k.kind == kind && (namespace == "" || k.namespace == namespace) {
			do(k, v.state)
		}
	}
}

// snapshot is the present state, with all that was recorded so far in it.
func (f *Feed) snapshot() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := make([]key, 0, len(f.states))
	for k := range f.states {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		if c := strings.Compare(a.kind, b.kind); c != 0 {
			return c
		}
		if c := strings.Compare(a.namespace, b.namespace); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	var b bytes.Buffer
	b.WriteByte('[')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(f.states[k].raw)
	}
	b.WriteByte(']')
	return b.Bytes()
}
