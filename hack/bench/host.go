package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
	"kubistro/internal/testprocess"
)

// host is a cluster host without a server, on a throw-away folder.
type host struct {
	*controlapi.Client
	kube  kubernetes.Interface
	dir   string
	cmd   *exec.Cmd
	ended chan struct{}
}

// startHost starts a cluster of the office and n kitchens and returns when it is
// ready. close ends it; it also ends with this process.
func startHost(ctx context.Context, o options, n int) (h *host, err error) {
	dir, err := os.MkdirTemp("", "kubistro-bench-")
	if err != nil {
		return nil, err
	}
	h = &host{Client: controlapi.New(dir), dir: dir}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	var spec lab.ClusterSpec
	for i := range n {
		spec.Kitchens = append(spec.Kitchens, lab.Kitchen{Name: fmt.Sprintf("kitchen-%d", i+1), CPU: "4", Memory: "8Gi"})
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, controlapi.FileSpec), text, 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, controlapi.FileLog))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := []string{"run", "--dir", dir}
	if o.pprof != "" {
		args = append(args, "--pprof", o.pprof)
	}
	h.cmd = exec.Command(filepath.Join(filepath.Dir(o.labserver), "clusterhost"), args...)
	h.cmd.Stderr = log
	wait, err := testprocess.Start(h.cmd, syscall.SIGTERM)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	h.ended = ended
	go func() { _ = wait(); close(ended) }()
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	config, err := h.RESTConfig(ctx)
	if err != nil {
		return nil, err
	}
	h.kube, err = kubernetes.NewForConfig(config)
	return h, err
}

func (h *host) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if s, err := h.Status(ctx); err == nil && s.Ready {
			return nil
		}
		select {
		case <-tick.C:
		case <-h.ended:
			text, _ := os.ReadFile(filepath.Join(h.dir, controlapi.FileLog))
			return fmt.Errorf("the cluster host has ended: %v\n%s", h.cmd.ProcessState, text)
		case <-ctx.Done():
			return fmt.Errorf("the cluster isn't ready: %w", ctx.Err())
		}
	}
}

// idle watches the process for the given time; memory is read at its end.
func (h *host) idle(ctx context.Context, d time.Duration) (pss int64, percent float64, err error) {
	before, err := h.Usage(ctx)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	after, err := h.Usage(ctx)
	if err != nil {
		return 0, 0, err
	}
	return after.PSSBytes, 100 * float64(after.CPUNanos-before.CPUNanos) / float64(time.Since(began)), nil
}

// spent is the processor time that the host has taken so far.
func (h *host) spent(ctx context.Context) (time.Duration, error) {
	u, err := h.Usage(ctx)
	return time.Duration(u.CPUNanos), err
}

// close ends the host, by force after 30 s, and removes its folder.
func (h *host) close() {
	h.Close()
	if h.ended != nil {
		if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			fmt.Fprintln(os.Stderr, "bench: end the cluster host:", err)
		}
		select {
		case <-h.ended:
		case <-time.After(30 * time.Second):
			_ = h.cmd.Process.Kill() // fails when it has ended
			<-h.ended
		}
	}
	_ = os.RemoveAll(h.dir)
}
