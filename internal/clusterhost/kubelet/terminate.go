package kubelet

import (
	"context"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// minimumGrace gives containers a small window even with a grace period of 0: kuberuntime_container.go.
const minimumGrace = 2

// terminate ends a Pod's containers and, when none is left, tells the final
// status: kubelet.go, SyncTerminatingPod and SyncTerminatedPod.
func (w *worker) terminate(ctx context.Context, deleted bool) {
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	switch {
	case w.pod.DeletionGracePeriodSeconds != nil && w.pod.DeletionTimestamp != nil:
		grace = *w.pod.DeletionGracePeriodSeconds
	case w.pod.Spec.TerminationGracePeriodSeconds != nil:
		grace = *w.pod.Spec.TerminationGracePeriodSeconds
	}
	w.mu.Lock()
	if w.evict != nil && w.evict.grace != nil {
		grace = min(grace, *w.evict.grace)
	}
	w.mu.Unlock()
	now := w.b.k.clock.Now()
	if w.grace < 0 {
		w.grace, w.killStart = grace, now
		w.push()
	} else if grace < w.grace {
		w.grace = grace
		w.hurry()
	}
	w.mu.Lock()
	var regular, sidecars []*slot
	for _, s := range w.slots {
		if !s.running() {
			continue
		}
		if s.kind == kindInit && sidecar(s.spec) {
			sidecars = append(sidecars, s)
		} else {
			regular = append(regular, s)
		}
	}
	w.mu.Unlock()
	left := max(0, w.grace-int64(now.Sub(w.killStart)/time.Second))
	for _, s := range regular {
		w.kill(ctx, s, s.cur, "", left)
	}
	if len(regular) == 0 && len(sidecars) > 0 {
		last := sidecars[len(sidecars)-1] // sidecars end in reverse order
		w.kill(ctx, last, last.cur, "", left)
	}
	if len(regular)+len(sidecars) > 0 {
		w.push()
		return
	}
	w.finish()
}

// hurry shortens what running terminations may still take.
func (w *worker) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := w.killStart.Add(time.Duration(max(w.grace, minimumGrace)) * time.Second)
	for _, s := range w.slots {
		if s.cur != nil && s.cur.killing {
			s.cur.deadline = end
			select {
			case s.cur.hurry <- struct{}{}:
			default:
			}
		}
	}
}

// finish records that nothing of the Pod runs any more.
func (w *worker) finish() {
	w.mu.Lock()
	w.terminal = true
	for _, s := range w.slots {
		s.waiting, s.later = nil, nil
	}
	w.mu.Unlock()
	w.release()
	w.push()
	w.mu.Lock()
	w.finished = true
	if !w.static && !terminalPhase(w.status.Phase) {
		w.status.Phase = corev1.PodFailed // status/status_manager.go, TerminatePod
	}
	w.mu.Unlock()
	w.b.statuses.enqueue(w)
	w.b.retryResizes(w)
	w.poke()
}

// release gives back address and memory; logs stay until the Pod is forgotten.
func (w *worker) release() {
	w.mu.Lock()
	iface, own, group, tmpfs := w.iface, w.ownIface, w.group, w.tmpfs
	w.iface, w.ownIface, w.sandbox, w.group, w.tmpfs = nil, false, false, nil, nil
	clear(w.emptyDirs)
	for _, s := range w.slots {
		if s.cur != nil {
			s.cur.discard()
		}
	}
	w.mu.Unlock()
	for _, v := range w.volumes {
		v.discard()
	}
	w.volumes = map[string]*volume{}
	if group != nil {
		tmpfs.Close()
		w.b.groups.end(group, w.pod)
	}
	if iface != nil && own {
		iface.Close()
		w.b.addresses.give(w.ip)
	}
}

// kill stops a container in the background: preStop, SIGTERM, SIGKILL
// (kuberuntime_container.go, killContainer). A second call changes nothing.
func (w *worker) kill(ctx context.Context, s *slot, inst *instance, message string, grace int64) {
	now := w.b.k.clock.Now()
	w.mu.Lock()
	if inst.killing || inst.state.Phase != containerRunning {
		w.mu.Unlock()
		return
	}
	inst.killing = true
	inst.deadline = now.Add(time.Duration(max(grace, minimumGrace)) * time.Second)
	w.mu.Unlock()
	if message == "" {
		message = "Stopping container " + s.name
	}
	pod, spec := w.pod, s.spec
	w.b.podEvent(pod, containerPath(s.kind, s.name), corev1.EventTypeNormal, "Killing", "%s", message)
	w.b.wg.Go(func() {
		if h := spec.Lifecycle; h != nil && h.PreStop != nil && grace > 0 {
			w.preStop(ctx, pod, s, inst, h.PreStop)
		}
		inst.signal(stopSignal(spec))
		w.waitEnd(ctx, inst)
	})
}

func stopSignal(c *corev1.Container) syscall.Signal {
	if c.Lifecycle != nil && ptr.Deref(c.Lifecycle.StopSignal, "") == "SIGINT" {
		return syscall.SIGINT
	}
	return syscall.SIGTERM
}

// untilDeadline waits until inst's grace period is over; false: something else happened first.
func (w *worker) untilDeadline(ctx context.Context, inst *instance, done <-chan struct{}) bool {
	for {
		w.mu.Lock()
		left := inst.deadline.Sub(w.b.k.clock.Now())
		w.mu.Unlock()
		if left <= 0 {
			return true
		}
		t := w.b.k.clock.NewTimer(left)
		select {
		case <-ctx.Done():
		case <-done:
		case <-inst.done:
		case <-inst.hurry:
			t.Stop()
			continue
		case <-t.C():
			return true
		}
		t.Stop()
		return false
	}
}

// waitEnd waits for the container's end and kills it at the deadline.
func (w *worker) waitEnd(ctx context.Context, inst *instance) {
	if w.untilDeadline(ctx, inst, nil) {
		w.mu.Lock()
		inst.killed = inst.state.Phase == containerRunning
		w.mu.Unlock()
		inst.stop()
	}
	select {
	case <-inst.done:
	case <-ctx.Done():
	}
}
