package kubelet

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const bodyMax = 10 << 10 // what is read of an answer

// postStart runs the hook after a container's start: lifecycle/handlers.go.
func (w *worker) postStart(ctx context.Context, s *slot, inst *instance) {
	msg, err := w.hook(ctx, s, inst, s.spec.Lifecycle.PostStart)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	inst.hookRunning = false
	if err != nil {
		s.later = &corev1.ContainerStateWaiting{Reason: "PostStartHookError", Message: msg}
	}
	w.mu.Unlock()
	if err != nil {
		w.b.podEvent(w.pod, containerPath(s.kind, s.name), corev1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed")
		grace := int64(minimumGrace)
		if g := w.pod.Spec.TerminationGracePeriodSeconds; g != nil {
			grace = *g
		}
		w.kill(ctx, s, inst, "FailedPostStartHook", grace)
	} else {
		w.startProbes(s, inst)
	}
	w.poke()
}

// preStop runs the hook before SIGTERM, at most until the grace period is over.
func (w *worker) preStop(ctx context.Context, pod *corev1.Pod, s *slot, inst *instance, h *corev1.LifecycleHandler) {
	hctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	var err error
	w.b.wg.Go(func() {
		defer close(done)
		_, err = w.hook(hctx, s, inst, h)
	})
	if w.untilDeadline(ctx, inst, done) || ctx.Err() != nil {
		w.mu.Lock() // a hook that took all the time leaves the minimum for SIGTERM
		if end := w.b.k.clock.Now().Add(minimumGrace * time.Second); end.After(inst.deadline) {
			inst.deadline = end
		}
		w.mu.Unlock()
		return
	}
	select {
	case <-done:
		if err != nil {
			w.b.podEvent(pod, containerPath(s.kind, s.name), corev1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
		}
	default:
	}
}

// hook runs one lifecycle handler; the message is what the container's status may show.
func (w *worker) hook(ctx context.Context, s *slot, inst *instance, h *corev1.LifecycleHandler) (string, error) {
	pod := fmt.Sprintf("%s(%s)", podName(w.pod), w.pod.UID)
	switch {
	case h.Exec != nil:
		var out bytes.Buffer
		code, err := w.exec(ctx, inst, h.Exec.Command, execStreams{out: &out, err: &out})
		if err == nil && code != 0 {
			err = fmt.Errorf("command '%s' exited with %d: %s", strings.Join(h.Exec.Command, " "), code, out.String())
		}
		if err != nil {
			return fmt.Sprintf("Exec lifecycle hook (%v) for Container %q in Pod %q failed - error: %v, message: %q", h.Exec.Command, s.name, pod, err, out.String()), err
		}
	case h.HTTPGet != nil:
		if _, _, err := w.httpGet(ctx, s.spec, h.HTTPGet, "kube-lifecycle/1.37", 0); err != nil {
			return fmt.Sprintf("HTTP lifecycle hook (%s) for Container %q in Pod %q failed - error: %v", h.HTTPGet.Path, s.name, pod, err), err
		}
	case h.Sleep != nil:
		t := w.b.k.clock.NewTimer(time.Duration(h.Sleep.Seconds) * time.Second)
		defer t.Stop()
		select {
		case <-t.C():
		case <-inst.done:
			err := fmt.Errorf("container terminated before sleep hook finished")
			return fmt.Sprintf("Sleep lifecycle hook (%d) for Container %q in Pod %q failed - error: %v", h.Sleep.Seconds, s.name, pod, err), err
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "", nil
}

// port finds a port by number or by the name that the container gives it.
func portNumber(p intstr.IntOrString, c *corev1.Container) (int, error) {
	if p.Type == intstr.Int {
		return p.IntValue(), nil
	}
	for _, cp := range c.Ports {
		if cp.Name == p.StrVal {
			return int(cp.ContainerPort), nil
		}
	}
	if n, err := strconv.Atoi(p.StrVal); err == nil {
		return n, nil
	}
	return 0, fmt.Errorf("couldn't find port: %v in %s", p.StrVal, c.Name)
}

// httpGet asks a container from the node, as probe/http does: a new connection
// each time, redirects to other hosts not followed. The error has net/http's words.
func (w *worker) httpGet(ctx context.Context, c *corev1.Container, h *corev1.HTTPGetAction, agent string, timeout time.Duration) (status int, body string, err error) {
	port, err := portNumber(h.Port, c)
	if err != nil {
		return 0, "", &probeError{err}
	}
	host := h.Host
	if host == "" {
		host = w.ip.String()
	}
	scheme := strings.ToLower(string(h.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	u, err := url.Parse(h.Path)
	if err != nil {
		u = &url.URL{Path: h.Path}
	}
	u.Scheme, u.Host = scheme, net.JoinHostPort(host, strconv.Itoa(port))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, "", &probeError{err}
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", "*/*")
	for _, kv := range h.HTTPHeaders {
		if strings.EqualFold(kv.Name, "Host") {
			req.Host = kv.Value
		} else {
			req.Header.Add(kv.Name, kv.Value)
		}
	}
	client := &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: w.b.iface.DialContext, DisableKeepAlives: true, DisableCompression: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // probes don't check certificates
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Hostname() != via[0].URL.Hostname() || len(via) >= 10 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, bodyMax))
	return res.StatusCode, string(b), err
}
