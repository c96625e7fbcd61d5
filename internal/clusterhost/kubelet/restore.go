package kubelet

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// restore takes up a Pod that ran before: from the checkpoint of a graceful
// stop, or after a crash from what the API says of it.
func (w *worker) restore() {
	w.restoreAllocation()
	if f := w.b.frozen[w.uid]; f != nil {
		w.restoreFrozen(f)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if terminalPhase(w.status.Phase) && !w.static {
		w.terminal, w.finished = true, true
		w.restoreStates(false)
		return
	}
	ran := w.restoreStates(true)
	if ran {
		w.b.podEvent(w.pod, "", corev1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
	}
}

// restoreAllocation finds what the node had given to the Pod: in the checkpoint, or
// in the status of its containers.
func (w *worker) restoreAllocation() {
	w.mu.Lock()
	if w.alloc == nil {
		w.alloc = allocationOf(w.taken)
		if f := w.b.frozen[w.uid]; f != nil && f.Allocation != nil {
			w.alloc = f.Allocation
		} else {
			for _, list := range [][]corev1.ContainerStatus{w.status.InitContainerStatuses, w.status.ContainerStatuses} {
				for i := range list {
					if r := list[i].Resources; r != nil && list[i].State.Running != nil {
						w.alloc.Containers[list[i].Name] = *r.DeepCopy()
					}
				}
			}
		}
	}
	w.mu.Unlock()
	w.takeSpec(w.taken)
}

// restoreStates makes the slots' past from the API's status; what ran has ended
// with the node (lost), as containerd finds after a reboot: reason Unknown, exit code 255.
func (w *worker) restoreStates(lost bool) (ran bool) {
	for _, list := range [][]corev1.ContainerStatus{w.status.InitContainerStatuses, w.status.ContainerStatuses, w.status.EphemeralContainerStatuses} {
		for i := range list {
			st := &list[i]
			s := w.byName[st.Name]
			if s == nil {
				continue
			}
			s.restarts = st.RestartCount
			last := w.past(st, st.LastTerminationState)
			switch {
			case st.State.Running != nil:
				s.cur = w.past(st, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					ExitCode: codeUnknown, Reason: "Unknown", StartedAt: st.State.Running.StartedAt,
					ContainerID: st.ContainerID,
				}})
				s.cur.state.Finished = w.b.k.clock.Now()
				s.prev, ran = last, true
			case st.State.Terminated != nil:
				s.cur, s.prev, ran = w.past(st, st.State), last, true
			case last != nil: // waiting for its next start
				s.cur, ran = last, true
			}
			if s.cur != nil {
				s.cur.stale = lost
				s.rerun = lost && s.kind == kindInit && !sidecar(s.spec)
			}
		}
	}
	return ran
}

// past makes the record of a container that another boot ran; nil if there was none.
func (w *worker) past(st *corev1.ContainerStatus, state corev1.ContainerState) *instance {
	t := state.Terminated
	if t == nil {
		return nil
	}
	i := w.record(st.Name, containerState{
		ID: strings.TrimPrefix(t.ContainerID, runtimePrefix), Phase: containerExited,
		Started: t.StartedAt.Time, Finished: t.FinishedAt.Time, ExitCode: t.ExitCode, Reason: t.Reason, Message: t.Message,
	})
	i.oldImage, i.oldImageID = st.Image, st.ImageID
	return i
}

// record is an instance without a process.
func (w *worker) record(name string, st containerState) *instance {
	i := &instance{name: name, state: st, log: newLogBuffer(w.b.k.clock), term: newTerminal(false, false), done: make(chan struct{}), hurry: make(chan struct{}, 1)}
	i.log.close()
	i.term.close()
	close(i.done)
	return i
}

func (w *worker) restoreFrozen(f *frozenPod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = f.Status
	w.finished, w.terminal = f.Finished, f.Finished
	w.ip = f.IP
	if f.Pulls != nil {
		w.pulls = f.Pulls
	}
	if f.Certs != nil {
		w.certs = f.Certs
	}
	w.frozen = f
	for _, c := range f.Containers {
		s := w.byName[c.Name]
		if s == nil {
			continue
		}
		s.restarts, s.crash, s.waiting = c.Restarts, c.Crash, c.Waiting
		s.cur, s.prev = w.unfreeze(c.Name, c.Cur), w.unfreeze(c.Name, c.Prev)
		if c.Cur != nil && c.Cur.State.Phase != containerExited {
			s.thaw = c
		}
	}
}

func (w *worker) unfreeze(name string, f *frozenInstance) *instance {
	if f == nil {
		return nil
	}
	i := w.record(name, f.State)
	i.oldImage, i.oldImageID = f.Image, f.ImageID
	i.startedOK, i.readyOK = f.Started, f.Ready
	i.log = thawLog(w, f)
	i.log.close()
	return i
}

func thawLog(w *worker, f *frozenInstance) *logBuffer {
	b := newLogBuffer(w.b.k.clock)
	for _, l := range f.Log {
		b.append(logEntry{l.At, l.Stderr, l.Partial, l.Text})
	}
	return b
}

// thaw starts the programs of containers that go on after a graceful stop: same
// ID, same start time, same restart count, no Event.
func (w *worker) thaw() {
	if w.frozen == nil {
		return
	}
	for name, files := range w.frozen.Volumes {
		if v := w.volumes[name]; v != nil && v.spec.EmptyDir != nil {
			thawFiles(v.fs, files)
		}
	}
	w.frozen = nil
	for _, s := range w.slots {
		if s.thaw == nil {
			continue
		}
		f := s.thaw.Cur
		s.thaw = nil
		if !w.thawContainer(s, f) {
			w.mu.Lock()
			s.cur.state.Phase, s.cur.state.ExitCode, s.cur.state.Reason = containerExited, codeUnknown, "Unknown"
			s.cur.state.Finished, s.cur.stale = w.b.k.clock.Now(), true
			w.mu.Unlock()
		}
	}
}

func (w *worker) thawContainer(s *slot, f *frozenInstance) bool {
	image, normal, err := withTag(s.spec.Image)
	if err != nil {
		return false
	}
	img := w.b.k.images.have(normal)
	if img == nil {
		if img, err = w.b.k.images.pull(image, normal); err != nil {
			return false
		}
	}
	inst, err := w.create(w.b.ctx, s.spec, img)
	if err != nil {
		w.b.log.Warn("container can't go on", "pod", podName(w.pod), "container", s.name, "err", err)
		return false
	}
	p, err := resolve(img.Programs, inst.fs, commandLine(s.spec, img, inst.proc.Env))
	if err != nil {
		inst.stop()
		inst.discard()
		return false
	}
	thawFiles(inst.fs, f.Files)
	inst.state, inst.thawed = f.State, true
	inst.startedOK, inst.readyOK = f.Started, f.Ready
	for _, l := range f.Log {
		inst.log.append(logEntry{l.At, l.Stderr, l.Partial, l.Text})
	}
	w.mu.Lock()
	s.cur = inst
	w.mu.Unlock()
	w.run(inst, p, s.spec)
	w.startProbes(s, inst)
	return true
}

// reserveFrozen keeps the addresses of Pods that will go on.
func (b *boot) reserveFrozen() {
	for _, f := range b.frozen {
		if f.IP.IsValid() && !f.Finished {
			b.addresses.hold(f.IP)
		}
	}
}
