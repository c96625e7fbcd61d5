package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/pantry/memfs"
)

// How long the eviction manager waits for Pods that it ended: eviction_manager.go.
const (
	cleanupPatience = 30 * time.Second
	cleanupLook     = time.Second
)

// layer is a part of the node's disk: a container's writable layer or an emptyDir.
type layer struct {
	budget *memfs.Budget
	bytes  int64 // what was there from the beginning
	files  int
	memory bool // a tmpfs
}

func newLayer(b *memfs.Budget) *layer {
	l := &layer{budget: b}
	l.bytes, l.files = b.Used()
	return l
}

func (l *layer) used() (bytes, files int64) {
	if l == nil {
		return 0, 0
	}
	b, n := l.budget.Used()
	return max(b-l.bytes, 0), int64(max(n-l.files, 0))
}

// stats is what the Pod uses now; ok is false for one that has no sandbox.
func (w *worker) stats() (p podStats, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished || w.terminal || w.group == nil {
		return p, false
	}
	p = podStats{pod: w.pod, pids: w.group.Pids(), memory: w.group.Memory(), emptyDirs: map[string]int64{}}
	for _, s := range w.slots {
		if !s.running() || s.cur.proc.Usage == nil {
			continue
		}
		c := containerStats{name: s.name, memory: s.cur.proc.Usage.Memory()}
		bytes, files := s.cur.layer.used()
		c.disk = bytes + s.cur.log.size()
		p.disk += c.disk
		p.inodes += files
		p.containers = append(p.containers, c)
	}
	for name, l := range w.emptyDirs {
		bytes, files := l.used()
		p.emptyDirs[name] = bytes
		if !l.memory {
			p.disk += bytes
			p.inodes += files
		}
	}
	return p, true
}

// relieve evicts what must go, one Pod after the other, until the node has enough of everything.
func (b *boot) relieve() {
	for b.ctx.Err() == nil {
		var pods []podStats
		for _, w := range b.all() {
			if p, ok := w.stats(); ok {
				pods = append(pods, p)
			}
		}
		starved, victims := b.evictor.synchronize(b.observe(), pods)
		if starved != "" {
			b.nodeEvent(corev1.EventTypeWarning, "EvictionThresholdMet", "Attempting to reclaim "+string(starved))
		}
		if len(victims) == 0 {
			return
		}
		var ending []*worker
		for _, v := range victims {
			if w := b.get(v.pod.UID); w != nil {
				b.annotatedPodEvent(v.pod, v.annotations, corev1.EventTypeWarning, "Evicted", v.message)
				w.expel(v)
				ending = append(ending, w)
			}
		}
		if !b.awaitEnd(ending) {
			return
		}
	}
}

// observe is what the node has left.
func (b *boot) observe() map[evictionSignal]observation {
	memory, pids := b.k.cfg.Capacity.Memory().Value(), b.groups.node.Pids()
	bytes, files := b.k.disk.Used()
	return map[evictionSignal]observation{
		memoryAvailable: {memory - b.groups.node.Memory(), memory},
		nodefsAvailable: {nodeDiskBytes - bytes, nodeDiskBytes},
		inodesFree:      {int64(nodeDiskFiles - files), nodeDiskFiles},
		pidAvailable:    {nodePids - pids, nodePids},
	}
}

// expel ends the Pod for good.
func (w *worker) expel(v eviction) {
	w.mu.Lock()
	if w.evict == nil {
		w.evict = &podRejection{reason: "Evicted", message: v.message, grace: ptr.To(int64(evictionGrace)), disruption: v.disruption}
	}
	w.mu.Unlock()
	w.poke()
}

// awaitEnd waits until the Pods have ended; false: they take too long, or the node ends.
func (b *boot) awaitEnd(workers []*worker) bool {
	end := b.k.clock.Now().Add(cleanupPatience)
	for _, w := range workers {
		for !w.isFinished() {
			if b.k.clock.Now().After(end) || !sleepClock(b.ctx, b.k, cleanupLook) {
				return false
			}
		}
	}
	return true
}

// condemned says that the node ends the Pod, for whatever reason.
func (w *worker) condemned() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.evict != nil
}

// disrupted is the condition of a Pod that was evicted for the node's sake.
func disrupted(pod *corev1.Pod, message string) corev1.PodCondition {
	return corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
		Reason: corev1.PodReasonTerminationByKubelet, Message: message,
	}
}
