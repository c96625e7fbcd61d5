// Package localpath is the provisioner rancher.io/local-path, which kind clusters
// have: it makes a folder on the node that the scheduler chose for the first Pod of
// a claim, and a PersistentVolume for it, and removes both when the claim is gone.
//
// It runs as an ordinary program in a Pod and does its work on the nodes by
// helper Pods, as the original does (github.com/rancher/local-path-provisioner
// with sigs.k8s.io/sig-storage-lib-external-provisioner, which give the order, the
// names and the texts); it never touches a node's disk by itself.
package localpath

import (
	"context"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pantry"
)

// Name is the provisioner's name in StorageClasses.
const Name = "rancher.io/local-path"

const (
	namespace   = "local-path-storage"
	account     = "local-path-provisioner-service-account"
	folder      = "/var/local-path-provisioner" // of the volumes on every node
	memory      = 8 << 20
	parallel    = 4
	retryFirst  = 15 * time.Second // sig-storage-lib's rate limiter
	retryMax    = 1000 * time.Second
	helperLimit = 120 * time.Second
	lostMax     = 1000 // volumes; more than that are left behind
)

// HelperImage is what the helper Pods run.
const HelperImage = "docker.io/kindest/local-path-helper:v20260131"

// provisioner works on claims and volumes, each by one goroutine at a time.
type provisioner struct {
	client  kubernetes.Interface
	clock   clock.Clock
	out     io.Writer
	events  record.EventRecorder
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	wake    chan struct{}
	slots   chan struct{} // bounds what runs at a time
	wg      sync.WaitGroup

	mu      sync.Mutex
	tasks   map[types.UID]*task                    // what runs or has failed
	cleared map[types.UID]bool                     // volumes without a folder, until they are gone
	lost    map[types.UID]*corev1.PersistentVolume // volumes that somebody else deleted
}

// task is the work on one claim or volume.
type task struct {
	running bool
	done    bool // successful: kept until the object no longer needs it
	delay   time.Duration
	again   time.Time // not before
}

// Program runs the provisioner in its Pod until it is told to end.
func Program(ctx context.Context, p *pantry.Process) int {
	p.Usage.SetMemory(memory)
	cfg, err := p.InClusterConfig()
	if err != nil {
		fmt.Fprintf(p.Stderr, "Error starting daemon: unable to get client config: %v\n", err)
		return 1
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		fmt.Fprintf(p.Stderr, "Error starting daemon: unable to get k8s client: %v\n", err)
		return 1
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	f := informers.NewSharedInformerFactory(client, 0)
	defer f.Shutdown()
	defer cancel()
	core := f.Core().V1()
	pr := &provisioner{
		client: client, clock: p.Clock, out: p.Stdout,
		events:  broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: fmt.Sprintf("%s_%s_%s", Name, p.PodName, uuid.NewUUID())}),
		claims:  core.PersistentVolumeClaims().Lister(),
		volumes: core.PersistentVolumes().Lister(),
		wake:    make(chan struct{}, 1), slots: make(chan struct{}, parallel), tasks: map[types.UID]*task{},
		cleared: map[types.UID]bool{}, lost: map[types.UID]*corev1.PersistentVolume{},
	}
	for _, inf := range []cache.SharedIndexInformer{core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer()} {
		inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { pr.poke() },
			UpdateFunc: func(any, any) { pr.poke() },
			DeleteFunc: func(o any) { pr.gone(o); pr.poke() },
		})
	}
	f.Start(ctx.Done())
	pr.logf("Provisioner started, folder %s of every node", folder)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		for _, ok := range f.WaitForCacheSync(ctx.Done()) {
			if !ok {
				return
			}
		}
		pr.run(ctx)
	}()
	code := waitSignal(ctx, p.Signals)
	cancel()
	<-worked
	return code
}

func waitSignal(ctx context.Context, signals <-chan syscall.Signal) int {
	for {
		select {
		case <-ctx.Done():
			return 137
		case s := <-signals:
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				return 0
			}
		}
	}
}

func (p *provisioner) logf(format string, args ...any) {
	fmt.Fprintf(p.out, "time=%q level=info msg=%q\n", p.clock.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

func (p *provisioner) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// gone notes a volume that was deleted before its folder was cleared away: the
// reclaim policy holds for it all the same.
func (p *provisioner) gone(o any) {
	if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = t.Obj
	}
	v, ok := o.(*corev1.PersistentVolume)
	if !ok || !ours(v) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cleared[v.UID] && len(p.lost) < lostMax {
		p.lost[v.UID] = v
	}
	delete(p.cleared, v.UID)
}

// run begins what there is to do whenever something has changed or a retry is due.
func (p *provisioner) run(ctx context.Context) {
	defer p.wg.Wait()
	for ctx.Err() == nil {
		var timer <-chan time.Time
		stop := func() bool { return true }
		if at := p.begin(ctx); !at.IsZero() {
			t := p.clock.NewTimer(max(0, at.Sub(p.clock.Now())))
			timer, stop = t.C(), t.Stop
		}
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-timer:
		}
		stop()
	}
}

// begin starts a goroutine for each object that needs work and returns when the
// next one that has failed is due; zero: none.
func (p *provisioner) begin(ctx context.Context) (next time.Time) {
	jobs := p.jobs()
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, t := range p.tasks {
		if jobs[uid] == nil && !t.running {
			delete(p.tasks, uid)
		}
	}
	for uid, work := range jobs {
		t := p.tasks[uid]
		if t == nil {
			t = &task{}
			p.tasks[uid] = t
		}
		switch {
		case t.running || t.done:
		case p.clock.Now().Before(t.again):
			if next.IsZero() || t.again.Before(next) {
				next = t.again
			}
		default:
			t.running = true
			p.wg.Go(func() { p.do(ctx, t, work) })
		}
	}
	return next
}

func (p *provisioner) do(ctx context.Context, t *task, work func(context.Context) error) {
	defer p.poke()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return
	}
	err := work(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	t.running, t.done = false, err == nil
	if err != nil && ctx.Err() == nil {
		t.delay = min(max(2*t.delay, retryFirst), retryMax)
		t.again = p.clock.Now().Add(t.delay)
		p.logf("%v; again in %v", err, t.delay)
	}
}

// jobs is what the objects need now, by UID.
func (p *provisioner) jobs() map[types.UID]func(context.Context) error {
	out := map[types.UID]func(context.Context) error{}
	p.mu.Lock()
	for uid, v := range p.lost {
		out[uid] = func(ctx context.Context) error { return p.clear(ctx, v) }
	}
	p.mu.Unlock()
	claims, volumes := p.list()
	for _, c := range claims {
		if wanted(c) {
			out[c.UID] = func(ctx context.Context) error { return p.provision(ctx, c) }
		}
	}
	for _, v := range volumes {
		if unwanted(v) {
			out[v.UID] = func(ctx context.Context) error { return p.remove(ctx, v) }
		}
	}
	return out
}
