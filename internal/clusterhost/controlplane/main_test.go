package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kubistro/internal/lab"
)

// shared is the one real control plane of this package's tests.
var shared *testHost

// testHost is a cluster that runs.
type testHost struct {
	*Host
	dir    string
	rest   *rest.Config // as the learner
	client *kubernetes.Clientset
	ended  chan error
}

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	utilruntime.ReallyCrash = false
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	CloseHostNetwork()
	dir, err := os.MkdirTemp("", "controlplane")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared, err = startTestHost(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the control plane can't start:", err)
		return 1
	}
	code := m.Run()
	shared.Shutdown()
	if err := <-shared.ended; err != nil {
		fmt.Fprintln(os.Stderr, "the control plane ended badly:", err)
		return 1
	}
	return code
}

func startTestHost(dir string) (*testHost, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	h, err := New(Config{ID: "test", Dir: dir, Spec: lab.DefaultClusterSpec(), EtcdQuota: 64 << 20, Clock: clock.RealClock{}, Log: log})
	if err != nil {
		return nil, err
	}
	t := &testHost{Host: h, dir: dir, ended: make(chan error, 1)}
	go func() { t.ended <- h.Run(context.Background()) }()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := h.WaitReady(ctx); err != nil {
		h.Shutdown()
		return nil, errors.Join(err, <-t.ended)
	}
	a, _ := h.Access()
	t.rest = a.RESTConfig()
	t.client, err = kubernetes.NewForConfig(t.rest)
	return t, err
}
