package stream

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kubistro/internal/lab"
)

// Source is a running cluster as a Watch needs it.
type Source interface {
	REST() *rest.Config
	Audit(ctx context.Context, after uint64) (<-chan lab.AuditEntry, error)
}

// Watch follows one running cluster until Stop: a watch per resource and the audit
// stream, all into one feed.
type Watch struct {
	cache  *Cache
	feed   *Feed
	meta   metadata.Interface
	synced chan struct{}
	stop   context.CancelFunc
	wait   sync.WaitGroup
}

const catchUpEvery = 20 * time.Millisecond

// Start begins to follow a cluster; audited says whether it tells who wrote what.
func Start(cluster string, src Source, feed *Feed, audited bool, log *slog.Logger) (*Watch, error) {
	cfg := src.REST()
	cfg.UserAgent = LabUserAgent + "/watch"
	cfg.QPS, cfg.Burst = -1, 0
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client for watches: %w", err)
	}
	meta, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client for watches: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{cache: newCache(feed), feed: feed, meta: meta, synced: make(chan struct{}), stop: cancel}
	// Older audit entries are no news.
	since := feed.Follow(cluster)
	quiet := logr.Discard()
	for _, k := range w.cache.kinds {
		lw, expected := listWatch(dyn, meta, k.resource)
		r := cache.NewReflectorWithOptions(lw, expected, k, cache.ReflectorOptions{
			Name: k.resource.Kind, TypeDescription: k.resource.Kind, Logger: &quiet,
		})
		w.wait.Go(func() { r.RunWithContext(ctx) })
	}
	if audited {
		w.wait.Go(func() { follow(ctx, src, feed, since, log) })
	}
	w.wait.Go(func() {
		for _, k := range w.cache.kinds {
			select {
			case <-k.synced:
			case <-ctx.Done():
				return
			}
		}
		feed.Synced()
		close(w.synced)
	})
	return w, nil
}

// Cache is what the watches have delivered.
func (w *Watch) Cache() *Cache { return w.cache }

// Synced is closed when all first lists have come.
func (w *Watch) Synced() <-chan struct{} { return w.synced }

// CatchUp waits until the record holds all that the cluster's objects are now: what is
// written afterwards comes behind it. Kubernetes Events aren't waited for.
func (w *Watch) CatchUp(ctx context.Context) error {
	for _, k := range w.cache.kinds {
		for k.resource.Kind != "Event" {
			list, err := w.meta.Resource(k.resource.GroupVersionResource).List(ctx, metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("catch up with %s: %w", k.resource.Resource, err)
			}
			if k.has(list.Items) {
				break
			}
			select {
			case <-time.After(catchUpEvery):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return w.feed.Told(ctx)
}

// Stop ends the watches and waits for them.
func (w *Watch) Stop() {
	w.stop()
	w.wait.Wait()
}

func listWatch(dyn dynamic.Interface, meta metadata.Interface, r Resource) (cache.ListerWatcher, any) {
	if r.MetadataOnly {
		return &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return meta.Resource(r.GroupVersionResource).List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return meta.Resource(r.GroupVersionResource).Watch(ctx, o)
			},
		}, &metav1.PartialObjectMetadata{}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return dyn.Resource(r.GroupVersionResource).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return dyn.Resource(r.GroupVersionResource).Watch(ctx, o)
		},
	}, &unstructured.Unstructured{}
}

// follow passes the audit stream on and opens it again when it breaks.
func follow(ctx context.Context, src Source, feed *Feed, since time.Time, log *slog.Logger) {
	defer feed.Audited(false)
	seen := newTaken(since)
	for ctx.Err() == nil {
		entries, err := src.Audit(ctx, 0)
		if err != nil {
			feed.Audited(false)
			log.Debug("audit stream", "error", err)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			continue
		}
		feed.Audited(true)
		for e := range entries {
			if seen.adds(e) {
				feed.Audit(e)
			}
		}
		seen.broken()
	}
}

// taken tells the audit entries that were passed on from new ones. Each stream begins
// with all that the cluster's process has kept, and each process numbers anew: an
// entry is known when it is old and its number was passed on. Entries come
// as requests end, so within a stream their times aren't in order.
type taken struct {
	since  time.Time // the newest entry of earlier streams
	passed uint64    // the last number of the last stream that brought something
	newest time.Time
	last   uint64
}

// newTaken begins with everything up to since known.
func newTaken(since time.Time) *taken {
	return &taken{since: since, newest: since, passed: math.MaxUint64}
}

// adds reports whether the entry is new.
func (k *taken) adds(e lab.AuditEntry) bool {
	if !e.Time.After(k.since) && e.N <= k.passed {
		return false
	}
	k.last = e.N
	if e.Time.After(k.newest) {
		k.newest = e.Time
	}
	return true
}

// broken is told when a stream ends.
func (k *taken) broken() {
	if k.last > 0 {
		k.since, k.passed, k.last = k.newest, k.last, 0
	}
}
