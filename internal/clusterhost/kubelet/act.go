package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/clusterhost/pantry/cgroup"
	"kubistro/internal/clusterhost/vnet"
)

// plegPeriod is how long a real kubelet takes to notice what the runtime did
// (pleg relist): it spaces the looks at a container that can't start.
const plegPeriod = time.Second

// Delays of a mount that fails: pkg/util/goroutinemap/exponentialbackoff.
const (
	mountDelayFirst = 500 * time.Millisecond
	mountDelayMax   = 2*time.Minute + 2*time.Second
)

func (w *worker) facts() podFacts {
	f := podFacts{pod: w.pod, hostIP: w.b.k.cfg.IP.String(), allocatable: w.b.k.cfg.Allocatable}
	if w.ip.IsValid() {
		f.podIP = w.ip.String()
	}
	return f
}

// mountVolumes mounts what isn't mounted yet and reports whether all is.
func (w *worker) mountVolumes(ctx context.Context) bool {
	all := true
	now := w.b.k.clock.Now()
	for _, v := range usedVolumes(w.pod) {
		if w.volumes[v.Name] != nil {
			continue
		}
		if at := w.mountAt[v.Name]; now.Before(at) {
			w.at(at)
			all = false
			continue
		}
		vol, err := volumeMaker{b: w.b, facts: w.facts(), age: freshAge, certs: w.certs}.mount(ctx, v)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			all = false
			d := min(2*w.mountDelay[v.Name], mountDelayMax)
			if d == 0 {
				d = mountDelayFirst
			}
			w.mountDelay[v.Name], w.mountAt[v.Name] = d, now.Add(d)
			w.at(now.Add(d))
			w.b.podEvent(w.pod, "", corev1.EventTypeWarning, "FailedMount", "%s", mountEvent(v.Name, err))
			continue
		}
		w.volumes[v.Name] = vol
		if vol.layer != nil {
			w.mu.Lock()
			w.emptyDirs[v.Name] = vol.layer
			w.mu.Unlock()
		}
		w.refreshAt = now.Add(jitter(w.b.k.cfg.Pace.Of(pace.ConfigRefresh)))
	}
	return all
}

// refreshVolumes brings files of ConfigMaps and Secrets up to date about once a minute.
func (w *worker) refreshVolumes(ctx context.Context) {
	m := volumeMaker{b: w.b, facts: w.facts(), age: w.b.k.cfg.Pace.Of(pace.ConfigRefresh) / 3, certs: w.certs}
	dynamic := false
	for _, v := range w.volumes {
		dynamic = dynamic || v.objects()
	}
	if !dynamic {
		return
	}
	now := w.b.k.clock.Now()
	w.mu.Lock()
	relabel := w.relabel
	w.relabel = false
	w.mu.Unlock()
	period := w.b.k.cfg.Pace.Of(pace.ConfigRefresh)
	w.refreshAt = minTime(w.refreshAt, now.Add(2*period)) // the clock may have been changed
	if now.Before(w.refreshAt) && !relabel {
		w.at(w.refreshAt)
		return
	}
	for _, v := range w.volumes {
		files, ok := m.refresh(ctx, v)
		if !ok {
			continue
		}
		if err := v.show(files); err != nil {
			w.b.log.Warn("volume can't be brought up to date", "pod", podName(w.pod), "volume", v.spec.Name, "err", err)
		}
	}
	w.refreshAt = now.Add(jitter(period))
	w.at(w.refreshAt)
}

// ensureSandbox gives the Pod its place in the network.
func (w *worker) ensureSandbox() bool {
	if w.sandbox {
		return true
	}
	if w.pod.Spec.HostNetwork {
		w.ip = w.b.k.cfg.IP
		w.iface = w.b.iface.WithDNS(w.dns())
	} else {
		ip, err := w.b.addresses.take(w.ip)
		if err != nil {
			w.b.podEvent(w.pod, "", corev1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox %q: %v", newContainerID(), err)
			w.after(jitter(retryPeriod))
			return false
		}
		iface, err := w.b.k.cfg.Network.Attach(podName(w.pod), ip)
		if err != nil {
			w.b.addresses.give(ip)
			w.b.podEvent(w.pod, "", corev1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox %q: %v", newContainerID(), err)
			w.after(plegPeriod)
			return false
		}
		w.iface, w.ip, w.ownIface = iface, ip, true
		iface.SetNode(w.b.iface)
		iface.SetPod(w.pod.Namespace, w.pod.Name)
		w.mapHostPorts(iface)
		iface.SetDNS(w.dns())
	}
	group := w.b.groups.pod(w.pod)
	group.OnOOM(func() { w.b.outOfMemory([]*worker{w}, false) })
	w.mu.Lock()
	w.sandbox, w.group, w.tmpfs = true, group, group.Child(cgroup.Limits{})
	w.mu.Unlock()
	w.push()
	return true
}

// mapHostPorts has ports of the node lead to the Pod's, as the portmap plugin does.
func (w *worker) mapHostPorts(iface *vnet.Interface) {
	for _, c := range w.pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.HostPort == 0 {
				continue
			}
			hostIP, _ := netip.ParseAddr(p.HostIP) // none: all addresses
			iface.MapHostPort(w.b.iface, string(cmp.Or(p.Protocol, corev1.ProtocolTCP)), hostIP, uint16(p.HostPort), uint16(p.ContainerPort))
		}
	}
}

// act follows kuberuntime/kuberuntime_manager.go, computePodActions and SyncPod.
func (w *worker) act(ctx context.Context) {
	w.actuate(ctx)
	if w.busy() {
		return // a postStart hook holds the Pod's worker, as in a real kubelet
	}
	for _, s := range w.slots {
		if s.kind == kindEphemeral && s.cur == nil {
			w.tryStart(ctx, s)
		}
	}
	if !w.initialize(ctx) {
		return
	}
	for _, s := range w.slots {
		if s.kind != kindRegular {
			continue
		}
		w.restartUnhealthy(ctx, s, w.pod.Spec.RestartPolicy != corev1.RestartPolicyNever)
		if w.wants(s) {
			w.tryStart(ctx, s)
			if w.busy() {
				return
			}
		}
	}
	w.completing = w.completing || w.over()
}

// over says that no regular container runs or will run again: sidecars don't keep
// a Pod alive (computePodActions: nothing to keep, nothing to start, so KillPod).
func (w *worker) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.slots {
		if s.kind != kindRegular {
			continue
		}
		if s.cur == nil || s.rerun || s.cur.state.Phase != containerExited || s.cur.renewed || shouldRestart(w.pod, s.spec, s.cur.state.ExitCode) {
			return false
		}
	}
	return true
}

func (w *worker) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.slots, func(s *slot) bool {
		return s.cur != nil && s.cur.hookRunning && s.cur.state.Phase == containerRunning
	})
}

// wants says whether a container is to be started (again).
func (w *worker) wants(s *slot) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case s.cur == nil || s.rerun:
		return true
	case s.cur.state.Phase != containerExited:
		return false
	}
	return s.cur.renewed || shouldRestart(w.pod, s.spec, s.cur.state.ExitCode)
}

func (s *slot) running() bool { return s.cur != nil && s.cur.state.Phase == containerRunning }

// initialize runs init containers one after the other, sidecars beside them, and
// reports whether the regular containers may start.
func (w *worker) initialize(ctx context.Context) bool {
	started := false
	w.mu.Lock()
	for _, s := range w.slots {
		started = started || s.kind == kindRegular && s.cur != nil && !s.cur.stale
	}
	w.mu.Unlock()
	for _, s := range w.slots {
		if s.kind != kindInit {
			continue
		}
		if sidecar(s.spec) {
			w.restartUnhealthy(ctx, s, true)
			if w.wants(s) {
				w.tryStart(ctx, s)
			}
			w.mu.Lock()
			up := s.running() && s.cur.startedOK && !s.cur.hookRunning
			w.mu.Unlock()
			if !up && !started {
				return false
			}
			continue
		}
		if started {
			continue
		}
		w.mu.Lock()
		done := !s.rerun && s.cur != nil && s.cur.state.Phase == containerExited && s.cur.state.ExitCode == 0
		runs := !s.rerun && s.running()
		w.mu.Unlock()
		if done {
			continue
		}
		if !runs && w.wants(s) {
			w.tryStart(ctx, s)
		}
		return false
	}
	return true
}

// restartUnhealthy ends a container that a probe condemned, or whose image was changed, which
// starts it again whatever the restart policy says: kuberuntime_manager.go, computePodActions.
func (w *worker) restartUnhealthy(ctx context.Context, s *slot, again bool) {
	w.mu.Lock()
	inst := s.cur
	if inst == nil || inst.killing || inst.state.Phase != containerRunning {
		w.mu.Unlock()
		return
	}
	changed := inst.asked != "" && inst.asked != s.spec.Image
	if !changed && inst.unhealthy == "" {
		w.mu.Unlock()
		return
	}
	msg := fmt.Sprintf("Container %s failed %s probe", s.name, inst.unhealthy)
	grace := w.probeGrace(s, inst.unhealthy)
	if changed {
		msg = fmt.Sprintf("Container %s definition changed", s.name)
		grace = ptr.Deref(w.pod.Spec.TerminationGracePeriodSeconds, minimumGrace)
		inst.renewed, again = true, true
	}
	if again {
		msg += ", will be restarted"
	}
	w.mu.Unlock()
	w.kill(ctx, s, inst, msg, grace)
}

// probeGrace: kuberuntime_container.go, setTerminationGracePeriod.
func (w *worker) probeGrace(s *slot, kind string) int64 {
	p := s.spec.LivenessProbe
	if kind == "startup" {
		p = s.spec.StartupProbe
	}
	if p != nil && p.TerminationGracePeriodSeconds != nil {
		return *p.TerminationGracePeriodSeconds
	}
	if g := w.pod.Spec.TerminationGracePeriodSeconds; g != nil {
		return *g
	}
	return minimumGrace
}

// tryStart starts a container unless it must wait: doBackOff of kuberuntime_manager.go.
func (w *worker) tryStart(ctx context.Context, s *slot) bool {
	now := w.b.k.clock.Now()
	w.mu.Lock()
	var ended *containerState
	if s.cur != nil && s.cur.state.Phase == containerExited && !s.cur.stale && !s.cur.renewed {
		st := s.cur.state
		ended = &st
	}
	w.mu.Unlock()
	if ended != nil {
		limits := w.b.k.restartBackoff()
		if until, wait := s.crash.since(ended.Finished, now, limits); wait {
			w.b.podEvent(w.pod, containerPath(s.kind, s.name), corev1.EventTypeWarning, "BackOff",
				"Back-off restarting failed container %s in pod %s(%s)", s.name, podName(w.pod), w.pod.UID)
			w.wait(s, &startProblem{
				reason:  "CrashLoopBackOff",
				message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s(%s)", s.crash.wait(limits), s.name, podName(w.pod), w.pod.UID),
				until:   until,
			})
			return false
		}
		s.crash.next(ended.Finished, now, limits)
	}
	problem := w.start(ctx, s)
	if problem != nil {
		w.wait(s, problem)
		return false
	}
	w.push()
	return true
}

// wait notes why a container doesn't run and when to look again.
func (w *worker) wait(s *slot, p *startProblem) {
	now := w.b.k.clock.Now()
	state := &corev1.ContainerStateWaiting{Reason: p.reason, Message: p.message}
	w.mu.Lock()
	known := s.waiting != nil && s.waiting.Reason == p.reason
	switch {
	case p.reason == "CrashLoopBackOff" && !known, p.later && !known:
		s.later = state // the status shows the end (or the failed pull) first
	default:
		s.waiting = state
	}
	w.mu.Unlock()
	switch {
	case p.reason == "CrashLoopBackOff" && !known:
		w.after(plegPeriod)
	case p.reason == "CrashLoopBackOff":
		w.at(minTime(p.until, now.Add(pace.Real(pace.ConfigRefresh))))
	case p.reason == "ErrImagePull":
		w.after(plegPeriod)
	default:
		w.after(jitter(retryPeriod))
	}
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
