// Package clusterautoscaler is the contractor in the manner of Cluster Autoscaler: it
// opens machines of node groups for Pods that the scheduler finds no room for, and closes
// those that nobody needs, with the flags, events, taints, annotations and the status of
// kubernetes/autoscaler (cluster-autoscaler 1.3x), whose files comments name. The machines come
// from the simulated cloud (package cloud).
//
// Its scheduling simulation is its own: resources, taints, node affinity, ports, Pod
// (anti-)affinity and topology spread; volumes aren't looked at.
package clusterautoscaler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"runtime"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/cloud"
	"kubistro/internal/clusterhost/pace"
)

const (
	component  = "cluster-autoscaler"
	healthPort = ":8085"
	batch      = time.Second // how long Pods that come together are waited for
)

// Env is the system as the program sees it. All fields but Pace are needed.
type Env struct {
	Args     []string
	ReadFile func(string) ([]byte, error)
	Config   func() (*rest.Config, error)
	Listen   func(address string) (net.Listener, error)
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	Stdout   io.Writer
	Stderr   io.Writer
	Clock    clock.Clock
	Pace     *pace.Clock // compresses the defaults of periods
	Stop     <-chan struct{}
}

// autoscaler is the state of a run; only its loop touches what has no lock.
type autoscaler struct {
	env      Env
	o        options
	client   kubernetes.Interface
	machines *cloud.Client
	events   record.EventRecorder

	pods       corelisters.PodLister
	nodes      corelisters.NodeLister
	namespaces corelisters.NamespaceLister
	budgets    policylisters.PodDisruptionBudgetLister
	daemons    appslisters.DaemonSetLister

	wake    chan struct{}
	wg      sync.WaitGroup // drains
	cleaned bool

	unneeded  map[string]time.Time // since when, by node
	lastAdd   time.Time
	backoff   map[string]time.Time // until when, by group
	told      map[types.UID]string // what a Pod was told last
	status    statusKeeper
	instances []cloud.Instance // of this pass

	mu         sync.Mutex
	deleting   map[string]bool // nodes that go
	lastDelete time.Time
	lastFail   time.Time
}

// Run works until ctx or Stop ends it and returns the exit code.
func Run(ctx context.Context, env Env) int {
	o, err := parse(env.Args[1:], env.Stderr, env.ReadFile, env.Pace)
	switch {
	case errors.Is(err, errUsage):
		return 0
	case err != nil:
		fmt.Fprintf(env.Stderr, "Failed to create cloud provider: %v\n", err)
		return 1
	}
	cfg, err := env.Config()
	if err != nil {
		fmt.Fprintf(env.Stderr, "Failed to build config: %v\n", err)
		return 1
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		fmt.Fprintf(env.Stderr, "Failed to build config: %v\n", err)
		return 1
	}
	l, err := env.Listen(healthPort)
	if err != nil {
		fmt.Fprintf(env.Stderr, "Failed to start metrics: %v\n", err)
		return 1
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/health-check", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "OK") })
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	var served sync.WaitGroup
	served.Go(func() { srv.Serve(l) })
	defer served.Wait()
	defer srv.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-env.Stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	a := &autoscaler{
		env: env, o: o, client: client, machines: cloud.NewClient(o.endpoint, env.Dial), wake: make(chan struct{}, 1),
		unneeded: map[string]time.Time{}, backoff: map[string]time.Time{}, told: map[types.UID]string{}, deleting: map[string]bool{},
	}
	defer a.machines.Close()
	a.work(ctx)
	if ctx.Err() != nil && !closed(env.Stop) {
		return 137
	}
	return 0
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// work watches the cluster and passes over it whenever something has changed, at most
// every scan interval, and when a period is over.
func (a *autoscaler) work(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: a.client.CoreV1().Events("")})
	a.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
	f := informers.NewSharedInformerFactoryWithOptions(a.client, 0, informers.WithTransform(trim))
	defer f.Shutdown()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	core := f.Core().V1()
	a.pods, a.nodes, a.namespaces = core.Pods().Lister(), core.Nodes().Lister(), core.Namespaces().Lister()
	a.budgets, a.daemons = f.Policy().V1().PodDisruptionBudgets().Lister(), f.Apps().V1().DaemonSets().Lister()
	core.Namespaces().Informer()
	f.Apps().V1().DaemonSets().Informer()
	for _, inf := range []cache.SharedIndexInformer{core.Pods().Informer(), core.Nodes().Informer(), f.Policy().V1().PodDisruptionBudgets().Informer()} {
		inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { a.poke() }, DeleteFunc: func(any) { a.poke() },
			UpdateFunc: func(old, new any) {
				if matters(old, new) {
					a.poke()
				}
			},
		})
	}
	f.Start(ctx.Done())
	for _, ok := range f.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return
		}
	}
	defer a.wg.Wait()
	a.logf("Cluster Autoscaler works with %d node groups of the simulated cloud", len(a.o.groups))
	for ctx.Err() == nil {
		next := a.pass(ctx)
		begin := a.env.Clock.Now()
		if !a.wait(ctx, next) || !a.sleep(ctx, batch) || !a.sleep(ctx, a.o.scan()-a.env.Clock.Since(begin)) {
			return
		}
	}
}

// trim drops what isn't looked at.
func trim(o any) (any, error) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
	}
	return o, nil
}

func (a *autoscaler) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// wait returns when something has changed or a time has come; zero: none will.
func (a *autoscaler) wait(ctx context.Context, until time.Time) bool {
	var due <-chan time.Time
	if !until.IsZero() {
		t := a.env.Clock.NewTimer(max(0, until.Sub(a.env.Clock.Now())))
		defer t.Stop()
		due = t.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-a.wake:
	case <-due:
	case <-a.env.Pace.Changed():
	}
	return true
}

func (a *autoscaler) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := a.env.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C():
		return true
	}
}

// matters reports whether a change of an object can change what is to be done.
func matters(old, new any) bool {
	switch o := old.(type) {
	case *corev1.Pod:
		n := new.(*corev1.Pod)
		return o.Spec.NodeName != n.Spec.NodeName || terminal(o) != terminal(n) || unschedulable(o) != unschedulable(n) ||
			(o.DeletionTimestamp == nil) != (n.DeletionTimestamp == nil) || o.Annotations[safeToEvict] != n.Annotations[safeToEvict]
	case *corev1.Node:
		n := new.(*corev1.Node)
		return ready(o) != ready(n) || o.Spec.Unschedulable != n.Spec.Unschedulable || len(o.Spec.Taints) != len(n.Spec.Taints) ||
			o.Annotations[scaleDownDisabled] != n.Annotations[scaleDownDisabled] || (o.DeletionTimestamp == nil) != (n.DeletionTimestamp == nil)
	}
	return true
}

// logf writes a line as klog does.
func (a *autoscaler) logf(format string, args ...any) {
	_, file, line, _ := runtime.Caller(1)
	fmt.Fprintf(a.env.Stdout, "I%s %7d %s:%d] %s\n", a.env.Clock.Now().UTC().Format("0102 15:04:05.000000"), 1, path.Base(file), line, fmt.Sprintf(format, args...))
}
