package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// probeError is a probe that couldn't be done at all: it counts as neither success nor failure.
type probeError struct{ err error }

func (e *probeError) Error() string { return e.err.Error() }
func (e *probeError) Unwrap() error { return e.err }

// firstProbe is how long after a container's start it is probed first: a real
// kubelet sees the start up to a second later.
const firstProbe = 300 * time.Millisecond

type probeKind string

const (
	probeLiveness  probeKind = "Liveness"
	probeReadiness probeKind = "Readiness"
	probeStartup   probeKind = "Startup"
)

// startProbes starts a container's probes; each ends with the container.
func (w *worker) startProbes(s *slot, inst *instance) {
	if s.kind == kindInit && !sidecar(s.spec) {
		return
	}
	begin := make(chan struct{}) // closed when startup is over
	if s.spec.StartupProbe == nil {
		close(begin)
	} else {
		w.b.wg.Go(func() { w.probeLoop(s, inst, probeStartup, s.spec.StartupProbe, nil, begin) })
	}
	if p := s.spec.LivenessProbe; p != nil {
		w.b.wg.Go(func() { w.probeLoop(s, inst, probeLiveness, p, begin, nil) })
	}
	if p := s.spec.ReadinessProbe; p != nil {
		w.b.wg.Go(func() { w.probeLoop(s, inst, probeReadiness, p, begin, nil) })
	}
}

// probeLoop follows prober/worker.go: the first probe soon, then one each
// period; not before initialDelaySeconds; a result counts from its threshold on.
func (w *worker) probeLoop(s *slot, inst *instance, kind probeKind, p *corev1.Probe, begin <-chan struct{}, started chan<- struct{}) {
	ctx, clock := inst.ctx, w.b.k.clock
	period := time.Duration(max(p.PeriodSeconds, 1)) * time.Second
	if begin != nil {
		select {
		case <-begin:
		case <-ctx.Done():
			return
		}
	}
	wait := firstProbe
	if inst.thawed {
		wait = rand.N(period)
	}
	if !sleepClock(ctx, w.b.k, wait) {
		return
	}
	run, last := int32(0), false
	for w.b.k.work.wait(ctx) {
		now := clock.Now()
		if kind != probeReadiness && w.ending() {
			return
		}
		if int32(now.Sub(inst.state.Started).Seconds()) >= p.InitialDelaySeconds {
			ok, err := w.probe(ctx, s, inst, kind, p)
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				if ok == last {
					run++
				} else {
					last, run = ok, 1
				}
				if ok && run >= max(p.SuccessThreshold, 1) || !ok && run >= max(p.FailureThreshold, 1) {
					if w.probed(s, inst, kind, ok) {
						if started != nil && ok {
							close(started)
						}
						return
					}
				}
			}
		}
		t := clock.NewTimer(max(time.Millisecond, period-clock.Since(now)))
		select {
		case <-t.C():
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

func sleepClock(ctx context.Context, k *Kubelet, d time.Duration) bool {
	t := k.clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *worker) ending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.incoming.DeletionTimestamp != nil || w.deleted
}

// probed takes a result over its threshold and reports whether probing ends.
func (w *worker) probed(s *slot, inst *instance, kind probeKind, ok bool) (over bool) {
	w.mu.Lock()
	changed := false
	switch kind {
	case probeReadiness:
		changed = inst.readyOK != ok
		inst.readyOK = ok
	case probeStartup:
		over, changed = true, true
		if ok {
			inst.startedOK = true
		} else {
			inst.unhealthy = "startup"
		}
	case probeLiveness:
		if !ok {
			over, changed = true, true
			inst.unhealthy = "liveness"
		}
	}
	w.mu.Unlock()
	if changed {
		w.poke()
	}
	return over
}

// probe does one probe and records what went wrong: prober/prober.go.
func (w *worker) probe(ctx context.Context, s *slot, inst *instance, kind probeKind, p *corev1.Probe) (bool, error) {
	path := containerPath(s.kind, s.name)
	ok, warning, output, err := w.probeOnce(ctx, s, inst, p)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		w.b.podEvent(w.pod, path, corev1.EventTypeWarning, "Unhealthy", "%s probe errored and resulted in %s state: %s", kind, "unknown", err)
		return false, err
	case !ok:
		w.b.podEvent(w.pod, path, corev1.EventTypeWarning, "Unhealthy", "%s probe failed: %s", kind, output)
	case warning:
		w.b.podEvent(w.pod, path, corev1.EventTypeWarning, "ProbeWarning", "%s probe warning: %s", kind, output)
	}
	return ok, nil
}

func (w *worker) probeOnce(ctx context.Context, s *slot, inst *instance, p *corev1.Probe) (ok, warning bool, output string, err error) {
	timeout := time.Duration(max(p.TimeoutSeconds, 1)) * time.Second
	switch {
	case p.Exec != nil:
		return w.probeExec(ctx, inst, p.Exec.Command, timeout)
	case p.HTTPGet != nil:
		status, body, err := w.httpGet(ctx, s.spec, p.HTTPGet, "kube-probe/1.37", timeout)
		var pe *probeError
		switch {
		case errors.As(err, &pe):
			return false, false, "", pe
		case err != nil:
			return false, false, err.Error(), nil
		case status >= 200 && status < 300:
			return true, false, body, nil
		case status >= 300 && status < 400:
			return true, true, "Probe terminated redirects, Response body: " + body, nil
		}
		return false, false, fmt.Sprintf("HTTP probe failed with statuscode: %d", status), nil
	case p.TCPSocket != nil:
		port, err := portNumber(p.TCPSocket.Port, s.spec)
		if err != nil {
			return false, false, "", err
		}
		return w.probeTCP(ctx, p.TCPSocket.Host, port, timeout)
	case p.GRPC != nil:
		return w.probeGRPC(ctx, ptr.Deref(p.GRPC.Service, ""), int(p.GRPC.Port), timeout)
	}
	return false, false, "", fmt.Errorf("missing probe handler for %s:%s", podName(w.pod), s.name)
}

func (w *worker) probeTCP(ctx context.Context, host string, port int, timeout time.Duration) (ok, warning bool, output string, err error) {
	if host == "" {
		host = w.ip.String()
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := w.b.iface.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false, false, err.Error(), nil
	}
	conn.Close()
	return true, false, "", nil
}

// probeExec runs a command in the container; only its exit code counts: probe/exec/exec.go.
func (w *worker) probeExec(ctx context.Context, inst *instance, cmd []string, timeout time.Duration) (ok, warning bool, output string, err error) {
	tctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out cappedBuffer
	code, err := w.exec(tctx, inst, cmd, execStreams{out: &out, err: &out})
	switch {
	case tctx.Err() != nil && ctx.Err() == nil:
		return false, false, fmt.Sprintf("command timed out: %q timed out after %v", strings.Join(cmd, " "), timeout), nil
	case err != nil:
		return false, false, "", fmt.Errorf("rpc error: code = Unknown desc = %w", err)
	}
	return code == 0, false, out.String(), nil
}

// cappedBuffer keeps the first 10 KiB.
type cappedBuffer struct{ bytes.Buffer }

func (b *cappedBuffer) Write(p []byte) (int, error) {
	if room := bodyMax - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
