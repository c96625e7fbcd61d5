package kubelet

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"kubistro/internal/clusterhost/vnet"
)

// boot is the node from power-on to power-off (or the end of the process).
type boot struct {
	k       *Kubelet
	log     *slog.Logger
	iface   *vnet.Interface
	id      string // boot ID
	started time.Time
	frozen  map[types.UID]*frozenPod // Pods to go on with
	ctx     context.Context          // ends first: nothing is decided or reported any more
	cancel  context.CancelFunc
	procs   context.Context // ends then: SIGKILL for all programs
	killAll context.CancelFunc
	wg      sync.WaitGroup
	dark    atomic.Bool // the power is off: nothing leaves the node

	events         events
	statuses       *statusQueue
	objects        *objectCache
	addresses      addresses
	serviceLister  corelisters.ServiceLister
	servicesSynced func() bool
	node           nodeState
	groups         *groups
	evictor        *evictor

	mu      sync.Mutex
	workers map[types.UID]*worker  // static Pods by the node's own UID
	static  map[string]*corev1.Pod // by name_namespace; nil until Pods are watched

	admission sync.Mutex // Pods are admitted one after the other
	rebooted  sync.Once
}

func newBoot(k *Kubelet, iface *vnet.Interface, cp *checkpoint) *boot {
	b := &boot{
		k: k, log: k.log, iface: iface, id: newBootID(), started: k.clock.Now(),
		workers: map[types.UID]*worker{}, frozen: map[types.UID]*frozenPod{},
	}
	if cp != nil {
		b.id = cp.BootID
		for _, name := range cp.Images {
			if err := k.images.restore(name, cp.Access[name]); err != nil {
				b.log.Debug("an image is no longer there", "image", name, "err", err)
			}
		}
		for _, p := range cp.Pods {
			b.frozen[p.UID] = p
		}
	}
	b.groups = newGroups(k)
	b.evictor = &evictor{seen: map[corev1.NodeConditionType]time.Time{}, now: k.clock.Now}
	b.groups.node.OnOOM(func() { b.outOfMemory(b.all(), true) })
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.procs, b.killAll = context.WithCancel(context.Background())
	b.statuses = newStatusQueue(b)
	b.objects = newObjectCache(k.cfg.Client, k.clock)
	b.serviceLister, b.servicesSynced = k.cfg.Services, k.cfg.ServicesSynced
	return b
}

// run works until ctx is done or the power goes off; off says which. Containers still run then.
func (b *boot) run(ctx context.Context, power <-chan struct{}) (off bool) {
	stop := context.AfterFunc(ctx, b.cancel)
	defer stop()
	go func() {
		select {
		case <-power:
			b.dark.Store(true)
			b.iface.SetDown(true)
			b.podInterfaces(func(i *vnet.Interface) { i.SetDown(true) })
			b.cancel()
		case <-b.ctx.Done():
		}
	}()
	b.startEvents(b.ctx)
	b.wg.Go(b.serve)
	b.wg.Go(func() { b.statuses.run(b.ctx) })
	b.wg.Go(b.keepNode)
	b.wg.Go(b.watchUse)
	b.wg.Go(b.followPace)
	if b.serviceLister == nil {
		b.watchServices()
	}
	b.wg.Go(b.watchPods)
	<-b.ctx.Done()
	b.mu.Lock()
	workers := make([]*worker, 0, len(b.workers))
	for _, w := range b.workers {
		workers = append(workers, w)
	}
	b.mu.Unlock()
	for _, w := range workers {
		<-w.gone
	}
	return b.dark.Load()
}

// end kills all programs and waits for everything that the boot started.
func (b *boot) end() {
	b.cancel()
	b.killAll()
	b.events.broadcaster.Shutdown()
	b.wg.Wait()
}

// freeze writes down what runs, then ends it without a trace.
func (b *boot) freeze() *checkpoint {
	cp := b.checkpoint()
	b.end()
	b.closeInterfaces()
	return cp
}

// cut is what a loss of power does: programs end in the middle of a word.
func (b *boot) cut() { b.end() }

func (b *boot) podInterfaces(f func(*vnet.Interface)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.workers {
		w.mu.Lock()
		if w.ownIface && w.iface != nil {
			f(w.iface)
		}
		w.mu.Unlock()
	}
}

func (b *boot) closeInterfaces() { b.podInterfaces(func(i *vnet.Interface) { i.Close() }) }

// add starts a Pod's worker.
func (b *boot) add(w *worker) {
	b.mu.Lock()
	if b.ctx.Err() != nil {
		b.mu.Unlock()
		close(w.gone)
		return
	}
	b.workers[w.uid] = w
	b.mu.Unlock()
	b.wg.Go(func() { w.loop(b.ctx) })
}

func (b *boot) forget(w *worker) {
	b.mu.Lock()
	delete(b.workers, w.uid)
	b.mu.Unlock()
	b.statuses.forget(w.uid)
}

func (b *boot) get(uid types.UID) *worker {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.workers[uid]
}

// find finds a Pod by name, the living one of several; uid may be empty, a
// mirror Pod's, or the node's own.
func (b *boot) find(namespace, name string, uid types.UID) *worker {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found *worker
	for _, w := range b.workers {
		w.mu.Lock()
		match := w.incoming.Namespace == namespace && w.incoming.Name == name
		if match && uid != "" && w.uid != uid && (w.mirror == nil || w.mirror.UID != uid) {
			match = false
		}
		dead := w.deleted
		w.mu.Unlock()
		if match && (found == nil || !dead) {
			found = w
		}
	}
	return found
}

// all lists the workers, ordered by namespace and name.
func (b *boot) all() []*worker {
	b.mu.Lock()
	out := make([]*worker, 0, len(b.workers))
	for _, w := range b.workers {
		out = append(out, w)
	}
	b.mu.Unlock()
	slices.SortFunc(out, func(a, c *worker) int {
		return cmpStrings(podName(a.spec()), podName(c.spec()))
	})
	return out
}

// spec is the Pod as last seen, for readers outside the worker.
func (w *worker) spec() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.incoming
}

// watchServices follows all Services when nobody shares an informer.
func (b *boot) watchServices() {
	f := informers.NewSharedInformerFactory(b.k.cfg.Client, 0)
	inf := f.Core().V1().Services()
	b.serviceLister, b.servicesSynced = inf.Lister(), inf.Informer().HasSynced
	f.Start(b.ctx.Done())
	b.wg.Go(func() {
		<-b.ctx.Done()
		f.Shutdown()
	})
}

// watchPods follows the Pods that are bound to this node, once it has an address range.
func (b *boot) watchPods() {
	if !b.node.waitCIDR(b.ctx) {
		return
	}
	f := informers.NewSharedInformerFactoryWithOptions(b.k.cfg.Client, 0,
		informers.WithTransform(stripManaged),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", b.k.cfg.Name).String()
		}))
	inf := f.Core().V1().Pods().Informer()
	b.readStatic()
	inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { b.seen(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { b.seen(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = t.Obj
			}
			if p, ok := o.(*corev1.Pod); ok {
				b.removed(p)
			}
		},
	})
	f.Start(b.ctx.Done())
	if cache.WaitForCacheSync(b.ctx.Done(), inf.HasSynced) {
		b.startStatic(inf.GetStore())
	}
	<-b.ctx.Done()
	f.Shutdown()
}

// stripManaged drops what the node never reads.
func stripManaged(o any) (any, error) {
	if m, err := metaOf(o); err == nil {
		m.SetManagedFields(nil)
	}
	return o, nil
}

func (b *boot) seen(pod *corev1.Pod) {
	if isMirror(pod) {
		b.mirrorSeen(pod)
		return
	}
	if w := b.get(pod.UID); w != nil {
		w.update(pod)
		return
	}
	b.add(newWorker(b, pod, false))
}

func (b *boot) removed(pod *corev1.Pod) {
	if isMirror(pod) {
		b.mirrorRemoved(pod)
		return
	}
	if w := b.get(pod.UID); w != nil {
		w.remove()
	}
}
