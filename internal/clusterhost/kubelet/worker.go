package kubelet

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/pantry/cgroup"
	"kubistro/internal/clusterhost/vnet"
)

type containerKind int

const (
	kindRegular containerKind = iota
	kindInit                  // init containers and sidecars
	kindEphemeral
)

// slot is one container of the spec through all its lives.
type slot struct {
	name     string
	kind     containerKind
	spec     *corev1.Container
	cur      *instance
	prev     *instance // its state and logs only
	restarts int32
	rerun    bool // an init container that must run again in a new sandbox
	thaw     *frozenContainer
	waiting  *corev1.ContainerStateWaiting
	later    *corev1.ContainerStateWaiting // shown from the next sync on
	crash    backoff
}

// worker looks after one Pod. Its goroutine alone decides; state that others
// read or set (process ends, probe results) is guarded by mu.
type worker struct {
	b      *boot
	uid    types.UID // the node's own name of the Pod: for static Pods not the mirror's
	static bool
	wake   chan struct{}
	gone   chan struct{} // closed when the goroutine has ended

	mu        sync.Mutex
	incoming  *corev1.Pod // newest from the API, taken over at the next sync
	mirror    *corev1.Pod // the mirror Pod of a static one
	deleted   bool        // the object is gone from the API
	slots     []*slot
	byName    map[string]*slot
	status    corev1.PodStatus // the newest, perhaps not sent yet
	dirty     bool
	relabel   bool // labels or annotations have changed: the downward API shows them at once
	finished  bool // everything has stopped for good
	terminal  bool
	evict     *podRejection
	sandbox   bool
	admitted  bool
	group     *cgroup.Group     // of a Pod that has a sandbox
	tmpfs     *cgroup.Group     // in it: what is in emptyDirs of memory
	emptyDirs map[string]*layer // mounted ones
	alloc     *allocation       // what the node has given to the Pod; nil: not yet
	resizing  resizeState

	// Only the worker's goroutine uses what follows.
	taken      *corev1.Pod // what pod was made of
	pod        *corev1.Pod // with the allocated resources; read by others with mu
	frozen     *frozenPod
	first      bool
	completing bool // the Pod is done; what still runs is ended
	ip         netip.Addr
	iface      *vnet.Interface
	ownIface   bool
	volumes    map[string]*volume
	mountDelay map[string]time.Duration
	mountAt    map[string]time.Time
	refreshAt  time.Time
	certs      map[string]*podCert // by volume and source
	pulls      map[string]*pullState
	nextAt     time.Time
	grace      int64
	killStart  time.Time
}

func newWorker(b *boot, pod *corev1.Pod, static bool) *worker {
	w := &worker{
		b: b, uid: pod.UID, static: static, pod: pod, incoming: pod, first: true,
		wake: make(chan struct{}, 1), gone: make(chan struct{}),
		byName: map[string]*slot{}, volumes: map[string]*volume{},
		mountDelay: map[string]time.Duration{}, mountAt: map[string]time.Time{}, emptyDirs: map[string]*layer{}, certs: map[string]*podCert{},
		pulls: map[string]*pullState{}, status: *pod.Status.DeepCopy(), grace: -1,
	}
	w.takeSpec(pod)
	return w
}

// poke has the worker look at its Pod soon.
func (w *worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// update hands over a newer version of the Pod. A mere echo of the status that
// the node itself reported is no reason to look at the Pod: config/config.go
// calls it a reconcile.
func (w *worker) update(pod *corev1.Pod) {
	w.mu.Lock()
	old := w.incoming
	w.incoming = pod
	relabel := !maps.Equal(old.Labels, pod.Labels) || !maps.Equal(old.Annotations, pod.Annotations)
	w.relabel = w.relabel || relabel
	w.mu.Unlock()
	if relabel || old.Generation != pod.Generation || (old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		ptr.Deref(old.DeletionGracePeriodSeconds, -1) != ptr.Deref(pod.DeletionGracePeriodSeconds, -1) ||
		len(pod.Spec.ReadinessGates) > 0 || len(pod.Spec.EphemeralContainers) != len(old.Spec.EphemeralContainers) {
		w.poke()
	}
}

// remove says that the Pod's object is gone.
func (w *worker) remove() {
	w.mu.Lock()
	w.deleted = true
	w.mu.Unlock()
	w.poke()
}

// takeSpec makes the slots for the spec's containers and keeps those that are there.
func (w *worker) takeSpec(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken, pod = pod, w.alloc.apply(pod)
	w.pod = pod
	add := func(kind containerKind, c *corev1.Container) {
		s := w.byName[c.Name]
		if s == nil {
			s = &slot{name: c.Name, kind: kind}
			w.byName[c.Name] = s
			w.slots = append(w.slots, s)
		}
		s.spec = c
	}
	for i := range pod.Spec.InitContainers {
		add(kindInit, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		add(kindRegular, &pod.Spec.Containers[i])
	}
	eph := ephemeralContainers(pod)
	for i := range eph {
		add(kindEphemeral, &eph[i])
	}
}

// at has the worker look again at t.
func (w *worker) at(t time.Time) {
	if w.nextAt.IsZero() || t.Before(w.nextAt) {
		w.nextAt = t
	}
}

func (w *worker) after(d time.Duration) { w.at(w.b.k.clock.Now().Add(d)) }

// loop runs until the Pod is gone or ctx ends.
func (w *worker) loop(ctx context.Context) {
	defer close(w.gone)
	for w.b.k.work.wait(ctx) {
		w.nextAt = time.Time{}
		if done := w.sync(ctx); done {
			return
		}
		var timer <-chan time.Time
		stop := func() bool { return true }
		if !w.nextAt.IsZero() {
			t := w.b.k.clock.NewTimer(max(0, w.nextAt.Sub(w.b.k.clock.Now())))
			timer, stop = t.C(), t.Stop
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer:
		}
		stop()
	}
}

// sync brings the Pod a step nearer to its spec and reports whether there is nothing left to do ever.
func (w *worker) sync(ctx context.Context) (done bool) {
	w.mu.Lock()
	pod, deleted, finished := w.incoming, w.deleted, w.finished
	for _, s := range w.slots {
		if s.later != nil {
			s.waiting, s.later = s.later, nil
		}
	}
	w.mu.Unlock()
	if pod != w.taken {
		w.takeSpec(pod)
	}
	if w.first {
		w.first = false
		if w.admit() {
			w.restore()
		}
		w.mu.Lock()
		finished = w.finished
		w.mu.Unlock()
	}
	if finished {
		if deleted {
			w.release()
			w.b.forget(w)
			return true
		}
		if pod.DeletionTimestamp != nil {
			w.push() // the status queue deletes the object
		}
		return false
	}
	if deleted || pod.DeletionTimestamp != nil || w.completing || w.condemned() || w.pastDeadline() {
		w.terminate(ctx, deleted)
		return w.isFinished() && deleted && w.drop()
	}
	w.allocate()
	w.push()
	w.run1(ctx)
	w.push()
	if w.completing || w.condemned() || w.pastDeadline() {
		w.poke()
	}
	return false
}

// run1 does what a kubelet's SyncPod does for a Pod that is to run.
func (w *worker) run1(ctx context.Context) {
	if !w.mountVolumes(ctx) || !w.ensureSandbox() {
		return
	}
	w.thaw()
	w.refreshVolumes(ctx)
	w.act(ctx)
}

func (w *worker) drop() bool {
	w.b.forget(w)
	return true
}

func (w *worker) isFinished() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.finished
}

// pastDeadline follows active_deadline.go.
func (w *worker) pastDeadline() bool {
	d := w.pod.Spec.ActiveDeadlineSeconds
	if d == nil || w.status.StartTime.IsZero() {
		return false
	}
	end := w.status.StartTime.Add(time.Duration(*d) * time.Second)
	if w.b.k.clock.Now().Before(end) {
		w.at(end)
		return false
	}
	w.mu.Lock()
	fresh := w.evict == nil
	if fresh {
		w.evict = &podRejection{reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline"}
	}
	msg := w.evict.message
	w.mu.Unlock()
	if fresh {
		w.b.podEvent(w.pod, "", corev1.EventTypeNormal, "DeadlineExceeded", "%s", msg)
	}
	return true
}

// jitter spreads syncs as the pod workers do: up to half a period more.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/2+1) }

// view is the Pod as composeStatus wants it. The caller holds mu.
func (w *worker) viewLocked() podView {
	v := podView{
		sandbox: w.sandbox, hostIP: w.b.k.cfg.IP.String(), terminal: w.terminal, evict: w.evict, resize: w.resizing.conditions(),
		containers: make(map[string]containerView, len(w.slots)),
	}
	if w.ip.IsValid() {
		v.ips = []string{w.ip.String()}
	} else if w.status.PodIP != "" {
		v.ips = []string{w.status.PodIP}
	}
	for _, s := range w.slots {
		v.containers[s.name] = s.view()
	}
	return v
}

func (s *slot) view() containerView {
	c := containerView{restarts: s.restarts, waiting: s.waiting}
	if s.prev != nil {
		st := s.prev.state
		c.prev = &st
	}
	if s.cur == nil {
		return c
	}
	st := s.cur.state
	if s.cur.hookRunning && st.Phase == containerRunning {
		st.Phase = containerCreated
	}
	c.cur = &st
	if s.cur.image != nil {
		c.image, c.imageID, c.imageUser = s.cur.image.Name, imageID(s.cur.image), s.cur.image.User
	} else {
		c.image, c.imageID = s.cur.oldImage, s.cur.oldImageID
	}
	c.started, c.ready, c.renewed = s.cur.startedOK, s.cur.readyOK, s.cur.renewed
	if st.Phase == containerRunning {
		c.resources = &s.cur.resources
	}
	return c
}

// push composes the status and, when it is news, has it sent.
func (w *worker) push() {
	w.mu.Lock()
	api := w.pod
	if w.static && w.mirror != nil {
		api = w.mirror
	}
	base := keepForeign(api.Status, w.status)
	s := composeStatus(w.pod, w.viewLocked(), base, w.b.k.clock.Now())
	if terminalPhase(s.Phase) && !w.terminal && !terminalPhase(w.status.Phase) {
		// containers may still run: the terminal phase is told when they don't
		w.completing = true
		s.Phase, s.Reason, s.Message = w.status.Phase, w.status.Reason, w.status.Message
	}
	w.status = s
	w.dirty = true
	w.mu.Unlock()
	w.b.statuses.enqueue(w)
}
