package kubelet

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// logOptions are the query of containerLogs: server/server.go, getContainerLogs.
type logOptions struct {
	follow, previous, timestamps bool
	stdout, stderr               bool
	tail                         int // -1: everything
	limit                        int64
	since                        time.Time
}

func parseLogOptions(q url.Values, now time.Time) (o logOptions, err error) {
	o = logOptions{tail: -1, limit: -1, stdout: true, stderr: true}
	flag := func(name string, to *bool) {
		if v := q.Get(name); v != "" && err == nil {
			*to, err = strconv.ParseBool(v)
		}
	}
	flag("follow", &o.follow)
	flag("previous", &o.previous)
	flag("timestamps", &o.timestamps)
	number := func(name string, use func(int64)) {
		if v := q.Get(name); v != "" && err == nil {
			var n int64
			if n, err = strconv.ParseInt(v, 10, 64); err == nil {
				use(n)
			}
		}
	}
	number("tailLines", func(n int64) { o.tail = int(n) })
	number("limitBytes", func(n int64) { o.limit = n })
	number("sinceSeconds", func(n int64) { o.since = now.Add(-time.Duration(n) * time.Second) })
	if v := q.Get("sinceTime"); v != "" && err == nil {
		o.since, err = time.Parse(time.RFC3339, v)
	}
	switch q.Get("stream") {
	case corev1.LogStreamStdout:
		o.stderr = false
	case corev1.LogStreamStderr:
		o.stdout = false
	}
	return o, err
}

func (b *boot) serveLogs(rw http.ResponseWriter, r *http.Request) {
	o, err := parseLogOptions(r.URL.Query(), b.k.clock.Now())
	if err != nil {
		http.Error(rw, `{"message": "Unable to decode query."}`, http.StatusBadRequest)
		return
	}
	name, container := r.PathValue("pod"), r.PathValue("container")
	w := b.find(r.PathValue("namespace"), name, "")
	if w == nil {
		http.Error(rw, fmt.Sprintf("pod %q does not exist\n", name), http.StatusNotFound)
		return
	}
	buf, err := w.logs(container, o.previous)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	rw.Header().Set("Content-Type", "text/plain")
	rw.Header().Set("Transfer-Encoding", "chunked")
	send := &logSender{w: rw, o: o, left: o.limit}
	flusher, _ := rw.(http.Flusher)
	next := buf.start(o)
	for {
		entries, n, changed, end := buf.from(next)
		next = n
		if !send.entries(entries) {
			return
		}
		if flusher != nil {
			flusher.Flush()
		}
		if !o.follow || end {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// start finds the number of the first entry to send.
func (b *logBuffer) start(o logOptions) int {
	entries, next, _, _ := b.from(0)
	first := next - len(entries)
	if o.tail < 0 {
		return first
	}
	i, lines := len(entries), 0
	for i > 0 {
		if e := entries[i-1]; o.has(e) && (!e.partial || lines == 0 && i == len(entries)) {
			if lines == o.tail {
				break
			}
			lines++
		}
		i--
	}
	return first + i
}

func (o logOptions) has(e logEntry) bool { return e.stderr && o.stderr || !e.stderr && o.stdout }

// logSender writes entries as the real kubelet does: kuberuntime/logs.
type logSender struct {
	w    io.Writer
	o    logOptions
	left int64
}

// entries reports whether more may follow.
func (s *logSender) entries(list []logEntry) bool {
	for _, e := range list {
		if !s.o.has(e) || e.at.Before(s.o.since) {
			continue
		}
		var line []byte
		if s.o.timestamps {
			line = append(e.at.UTC().AppendFormat(line, "2006-01-02T15:04:05.000000000Z07:00"), ' ')
		}
		line = append(line, e.text...)
		if !e.partial {
			line = append(line, '\n')
		}
		if s.left >= 0 {
			line = line[:min(int64(len(line)), s.left)]
			s.left -= int64(len(line))
		}
		if _, err := s.w.Write(line); err != nil || s.left == 0 {
			return false
		}
	}
	return true
}

// logs finds the container's output, or says why there is none, as
// kubelet_pods.go's validateContainerLogStatus.
func (w *worker) logs(container string, previous bool) (*logBuffer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := w.incoming.Name
	s := w.byName[container]
	switch {
	case s == nil:
		return nil, fmt.Errorf("container %q in pod %q is not available", container, name)
	case previous:
		old := s.prev
		if s.waiting != nil && s.cur != nil && s.cur.state.Phase == containerExited {
			old = s.cur // the API shows its end as the last state
		}
		if old == nil {
			return nil, fmt.Errorf("previous terminated container %q in pod %q not found", container, name)
		}
		return old.log, nil
	case s.cur != nil && s.cur.state.Phase != containerCreated && !(s.cur.hookRunning && s.prev == nil):
		return s.cur.log, nil
	case s.cur != nil && s.prev != nil:
		return s.prev.log, nil
	}
	reason := "ContainerCreating"
	if len(w.incoming.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	if s.waiting != nil {
		reason = s.waiting.Reason
	}
	switch reason {
	case "ErrImagePull":
		reason = "image can't be pulled"
	case "ImagePullBackOff":
		reason = "trying and failing to pull image"
	}
	return nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, name, reason)
}
