package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/clusterhost/controlplane"
	"kubistro/internal/clusterhost/controlserver"
	"kubistro/internal/lab"
)

// settings are the flags of clusterhost run.
type settings struct {
	dir               string
	orphan            time.Duration
	memory, etcdQuota int64
	pprof             string
}

// host runs the cluster in a folder until ctx is done, the control API asks for
// the end, or nobody needs it any more.
func host(ctx context.Context, s settings, stderr io.Writer) error {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	prepareProcess(log)
	limitProcess(s.memory, log)
	spec, err := readSpec(s.dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, controlapi.FilePID), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return fmt.Errorf("pid file: %w", err)
	}
	defer os.Remove(filepath.Join(s.dir, controlapi.FilePID))
	abs, err := filepath.Abs(s.dir)
	if err != nil {
		return err
	}
	h, err := controlplane.New(controlplane.Config{
		ID: filepath.Base(abs), Dir: abs, Spec: spec, EtcdQuota: s.etcdQuota, Clock: clock.RealClock{}, Log: log,
	})
	if err != nil {
		return err
	}
	klog.OsExit = func(code int) {
		if h.Stopping() { // the API server calls it fatal that its start was broken off
			runtime.Goexit()
		}
		os.Exit(code)
	}
	stopServing, err := serveControl(ctx, h, s, abs, log)
	if err != nil {
		return err
	}
	defer stopServing()
	if err := serveProfiles(ctx, s.pprof); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := collector{calm: func() { giveBack(log) }}
	go watchMemory(ctx, s.memory, func(err error) {
		log.Error("too much memory; the process ends without ceremony", "err", err)
		os.Exit(1)
	}, c.second)
	go func() {
		if h.WaitReady(ctx) == nil {
			settleMemory(ctx, log)
			c.settled.Store(true)
		}
	}()
	return h.Run(ctx)
}

// prepareProcess sets what belongs to the process, not to a cluster.
func prepareProcess(log *slog.Logger) {
	utilruntime.ReallyCrash = false // one controller's panic is logged and doesn't end the cluster
	klog.SetSlogLogger(slog.New(quiet{log.Handler()}))
	controlplane.CloseHostNetwork()
}

func readSpec(dir string) (lab.ClusterSpec, error) {
	b, err := os.ReadFile(filepath.Join(dir, controlapi.FileSpec))
	if errors.Is(err, os.ErrNotExist) {
		return lab.DefaultClusterSpec(), nil
	}
	var spec lab.ClusterSpec
	if err == nil {
		err = json.Unmarshal(b, &spec)
	}
	if err != nil {
		return spec, fmt.Errorf("%s: %w", controlapi.FileSpec, err)
	}
	return spec, nil
}

// serveControl answers on the control socket from now on until the returned function is called.
func serveControl(ctx context.Context, h *controlplane.Host, s settings, dir string, log *slog.Logger) (func(), error) {
	sockets, err := controlapi.OpenSocketDir(dir)
	if err != nil {
		return nil, err
	}
	l, err := sockets.Listen(controlapi.FileControl)
	if err != nil {
		return nil, fmt.Errorf("control API: %w", err)
	}
	srv := controlserver.New(h, h, clock.RealClock{}, log)
	srv.ServeWhiteboard(h)
	srv.Operate(h, h)
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := srv.Serve(l); err != nil {
			log.Error("control API ended", "err", err)
			h.Shutdown()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	orphan := make(chan struct{})
	go func() {
		defer close(orphan)
		if s.orphan > 0 && srv.Orphaned(ctx, s.orphan) == nil {
			log.Warn("nobody has used the control API; the cluster stops", "for", s.orphan)
			h.Shutdown()
		}
	}()
	return func() {
		cancel()
		srv.Close()
		<-served
		<-orphan
		sockets.Close()
	}, nil
}

// serveProfiles serves runtime profiles on a unix socket, for measuring.
func serveProfiles(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("profiles: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	srv := &http.Server{Handler: mux}
	context.AfterFunc(ctx, func() { srv.Close() })
	go srv.Serve(l)
	return nil
}

// quiet passes warnings and errors of Kubernetes on and drops its chatter.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (q quiet) WithAttrs(a []slog.Attr) slog.Handler         { return quiet{q.Handler.WithAttrs(a)} }
func (q quiet) WithGroup(n string) slog.Handler              { return quiet{q.Handler.WithGroup(n)} }
