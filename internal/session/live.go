package session

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/session/stream"
	"kubistro/internal/store"
)

// live is one session while the server runs: what belongs to it and follows
// its cluster. All methods are safe for concurrent use.
type live struct {
	s       *Service
	id      string
	learner lab.LearnerID
	opened  *course.Course  // as it was when the session was opened
	spec    lab.ClusterSpec // the shape that the cluster was given last; mu is held
	created time.Time
	dir     string // Dir/sessions/ID
	log     *slog.Logger

	home      *home
	record    *stream.Record
	feed      *stream.Feed
	progress  *progress
	tabs      *tabs
	edits     *edits
	works     *works
	controls  *controls
	ctx       context.Context // ends with the session's life in this process
	cancel    context.CancelFunc
	following sync.WaitGroup
	nudge     chan struct{} // the cluster was replaced
	closing   sync.Once

	usedAt  time.Time     // Service.mu is held
	leaving chan struct{} // closed when it has left memory; nil while it stays; Service.mu is held

	mu      sync.Mutex
	cluster *cluster.Cluster
	running *running // nil while there is no ready cluster
	changed chan struct{}
	told    lab.Status // the state that was last told
	warned  bool
	ended   bool
}

// openLive opens what a session has on disk and finds its cluster again; a
// cluster whose data is gone is replaced by a fresh one.
func openLive(ctx context.Context, s *Service, v store.Session) (*live, error) {
	c := s.Library.Course(v.Course)
	if c == nil {
		return nil, lab.Fail(lab.CodeNotFound, "這門課程已經不在這個伺服器上了。", "This course isn't on this server any more.")
	}
	l := &live{
		s: s, id: v.ID, learner: v.Learner, opened: c, spec: v.Spec, created: v.Created,
		dir: filepath.Join(s.Dir, "sessions", v.ID), log: s.Log.With("session", v.ID),
		changed: make(chan struct{}), nudge: make(chan struct{}, 1), usedAt: s.Clock.Now(),
	}
	var err error
	if l.home, err = openHome(filepath.Join(l.dir, "home")); err != nil {
		return nil, err
	}
	if l.cluster, err = l.findCluster(ctx, v); err != nil {
		l.home.close()
		return nil, err
	}
	if st := l.cluster.Status(); st.State == lab.StateAsleep {
		l.told = st // when it fell asleep
	}
	if l.record, err = stream.OpenRecord(ctx, s.Store, v.ID, l.log); err != nil {
		l.home.close()
		return nil, err
	}
	if l.progress, err = newProgress(ctx, l); err != nil {
		l.record.Close()
		l.home.close()
		return nil, err
	}
	saved, err := os.ReadFile(filepath.Join(l.dir, "feed.json"))
	if err != nil && !os.IsNotExist(err) {
		l.log.Warn("feed's memory not read; starting without", "error", err)
	}
	l.feed = stream.NewFeed(stream.FeedConfig{
		Record: l.record, Clock: s.Clock, Log: l.log, System: s.RecordSystem,
		Changed: l.progress.changed, Saved: saved, Save: l.saveFeed,
	})
	l.tabs, l.edits, l.works, l.controls = newTabs(l), newEdits(l), newWorks(l), newControls(l)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.following.Go(l.follow)
	l.following.Go(func() { l.progress.run(l.ctx) })
	return l, nil
}

// course is the session's course as it is now; one that was taken away stays as it was.
func (l *live) course() *course.Course {
	if c := l.s.Library.Course(l.opened.ID); c != nil {
		return c
	}
	return l.opened
}

func (l *live) findCluster(ctx context.Context, v store.Session) (*cluster.Cluster, error) {
	if v.Cluster != "" {
		c, err := l.s.Manager.Open(ctx, v.Cluster, v.Spec)
		if err == nil || !isCode(err, lab.CodeNotFound) {
			return c, err
		}
		l.log.Warn("cluster's data is gone; replacing it", "cluster", v.Cluster)
	}
	c, err := l.s.Manager.Claim(ctx, v.Spec)
	if err != nil {
		return nil, fmt.Errorf("session: claim a cluster: %w", err)
	}
	if err := l.s.Store.SetCluster(ctx, v.ID, c.ID(), v.Spec); err != nil {
		return nil, fmt.Errorf("session: note the cluster: %w", err)
	}
	return c, nil
}

// saveFeed writes the feed's memory so that a crash leaves the old or the new one.
func (l *live) saveFeed(data []byte) {
	path := filepath.Join(l.dir, "feed.json")
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		l.log.Warn("feed's memory not written", "error", err)
		return
	}
	if err := os.Rename(path+".new", path); err != nil {
		l.log.Warn("feed's memory not written", "error", err)
	}
}

// current is the session's cluster now.
func (l *live) current() *cluster.Cluster {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cluster
}

// session is what the API shows.
func (l *live) session() lab.Session {
	l.mu.Lock()
	c, ended := l.cluster, l.ended
	l.mu.Unlock()
	v := lab.Session{
		ID: l.id, Learner: l.learner, Course: l.opened.ID, Status: c.Status(),
		Driver: l.s.Manager.DriverName(), Created: l.created, Capabilities: []string{},
	}
	for _, k := range l.s.Manager.Capabilities() {
		v.Capabilities = append(v.Capabilities, string(k))
	}
	if ended {
		v.Status.State = lab.StateEnded
	}
	v.State = v.Status.State
	return v
}

func (l *live) changes() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// signal wakes those who wait for changes of the session; l.mu is held.
func (l *live) signal() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *live) touch() { l.current().Touch() }

// follow tells every change of the cluster's state and keeps watches on it
// while it is ready.
func (l *live) follow() {
	defer l.disconnect()
	for {
		c := l.current()
		next := c.Changes()
		l.tell(c)
		if c.Status().State == lab.StateReady {
			l.connect(c)
		} else {
			l.disconnect()
		}
		var lost <-chan struct{}
		if r := l.ready(); r != nil {
			lost = r.instance.Lost()
		}
		left, stop := l.nextLook(c)
		select {
		case <-next:
		case <-left:
			l.s.leave(l)
		case <-l.nudge:
			l.disconnect()
		case <-lost:
			l.disconnect()
			if !l.leaves(c, lost) {
				stop()
				return
			}
		case <-l.ctx.Done():
			stop()
			return
		}
		stop()
	}
}

// leaves waits until a cluster no longer counts the lost instance as its
// running one; false when the session closes first.
func (l *live) leaves(c *cluster.Cluster, lost <-chan struct{}) bool {
	for {
		changed := c.Changes()
		inst, ok := c.Running()
		if !ok || inst.Lost() != lost {
			return true
		}
		select {
		case <-changed:
		case <-l.nudge:
			return true
		case <-l.ctx.Done():
			return false
		}
	}
}

// tell makes a lab event of a change of state, and of the warning before sleep.
func (l *live) tell(c *cluster.Cluster) {
	st, soon := c.Status(), c.SleepsSoon()
	l.mu.Lock()
	l.signal()
	was := l.told
	moved := was.State != st.State || was.Why != st.Why || was.Stage != st.Stage
	warn := soon && !l.warned
	l.told, l.warned = st, soon
	l.mu.Unlock()
	if moved {
		l.feed.Lab(l.stateEvent(st, string(st.State), stateText(st)))
	}
	if warn {
		l.feed.Lab(l.stateEvent(st, "sleeps_soon", &lab.Text{
			ZhTW: "這裡很久沒有動靜了，叢集即將休眠；按任何一個鍵就能讓它醒著。",
			En:   "Nothing has happened here for a while: the cluster will go to sleep soon. Any key press keeps it awake.",
		}))
	}
}

func (l *live) stateEvent(st lab.Status, reason string, text *lab.Text) lab.Event {
	state, err := json.Marshal(st)
	if err != nil {
		l.log.Error("status not encoded", "error", err)
	}
	return lab.Event{Verb: "state", Reason: reason, Text: text, State: state}
}

func stateText(st lab.Status) *lab.Text {
	switch st.State {
	case lab.StateReady:
		return &lab.Text{ZhTW: "叢集準備好了。", En: "The cluster is ready."}
	case lab.StateAsleep:
		return &lab.Text{ZhTW: "叢集休眠了，內容都保留著。", En: "The cluster is asleep; everything in it is kept."}
	case lab.StateFailed:
		if st.Problem != nil {
			return st.Problem
		}
		return &lab.Text{ZhTW: "叢集啟動失敗，可以再試一次。", En: "The cluster didn't start. It can be tried again."}
	case lab.StateQueued:
		return &lab.Text{ZhTW: "正在排隊等候空位。", En: "Waiting for a free place."}
	}
	switch st.Why {
	case "wake":
		return &lab.Text{ZhTW: "叢集正在醒來。", En: "The cluster is waking up."}
	case "restart":
		return &lab.Text{ZhTW: "叢集意外停止，正在重新啟動。", En: "The cluster stopped unexpectedly and is restarting."}
	case "reset":
		return &lab.Text{ZhTW: "正在換上全新的叢集。", En: "A fresh cluster is coming."}
	}
	return &lab.Text{ZhTW: "叢集正在啟動。", En: "The cluster is starting."}
}

// close ends everything of the session in this process; it can be opened again later.
func (l *live) close() {
	l.closing.Do(func() {
		l.cancel()
		l.progress.dismissGuests("")
		l.works.wait()
		l.edits.close()
		l.tabs.close()
		l.following.Wait()
		l.feed.Close()
		l.record.Close()
		l.home.close()
	})
}

// end is close for good.
func (l *live) end() {
	l.mu.Lock()
	l.ended = true
	l.signal()
	l.mu.Unlock()
	l.close()
}
