package controlplane

import (
	"context"
	"fmt"
	"sync"
	"time"

	etcdkubernetes "go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	registry "k8s.io/apiserver/pkg/registry/generic"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// cacheGrain is how finely the timers of the watch caches are told apart. Each of
// the sixty caches looks once a second whether a watch is to get its bookmark of
// the minute; the bookmark that ends a watch's initial events doesn't wait for that.
const cacheGrain = 5 * time.Second

// directStorage gives the API server's built-in resources an etcd client that calls
// the member in this process. The API server's own way is a gRPC connection for
// each of its sixty resources, both ends of which would be kept here: their
// buffers and goroutines took more memory than all objects of a cluster.
type directStorage struct {
	registry.RESTOptionsGetter
	etcd  *etcdMember
	sizes map[schema.GroupResource]int

	compactor func() etcd3.Compactor
}

// newDirectStorage takes the place of the getter that the API server has by o.
func newDirectStorage(ctx context.Context, own registry.RESTOptionsGetter, o *genericoptions.EtcdOptions, m *etcdMember) (*directStorage, error) {
	sizes, err := genericoptions.ParseWatchCacheSizes(o.WatchCacheSizes)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	d := &directStorage{RESTOptionsGetter: own, etcd: m, sizes: sizes}
	interval := o.StorageConfig.CompactionInterval
	d.compactor = sync.OnceValue(func() etcd3.Compactor {
		c := etcd3.NewCompactor(m.client().Client, interval, clock.RealClock{}, nil)
		context.AfterFunc(ctx, c.Stop)
		return c
	})
	return d, nil
}

// GetRESTOptions is the original's answer with another way to the storage.
func (d *directStorage) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (registry.RESTOptions, error) {
	o, err := d.RESTOptionsGetter.GetRESTOptions(resource, example)
	size, set := d.sizes[resource]
	uncached := set && size <= 0
	o.Decorator = func(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error), newFunc, newList func() runtime.Object,
		attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		raw, destroy, err := d.open(config, prefix, newFunc, newList)
		if err != nil || uncached {
			return raw, destroy, err
		}
		return cached(cacher.Config{
			Storage: raw, Versioner: storage.APIObjectVersioner{}, GroupResource: config.GroupResource,
			EventsHistoryWindow: config.EventsHistoryWindow, ResourcePrefix: prefix, KeyFunc: key, NewFunc: newFunc, NewListFunc: newList,
			GetAttrsFunc: attrs, IndexerFuncs: triggers, Indexers: indexers, Codec: config.Codec,
			Clock: sharedTicks{clock.RealClock{}, cacheGrain},
		}, destroy)
	}
	return o, err
}

// cached is registry.StorageWithCacher over a storage that is there.
func cached(c cacher.Config, destroy factory.DestroyFunc) (storage.Interface, factory.DestroyFunc, error) {
	cache, err := cacher.NewCacherFromConfig(c)
	if err != nil {
		destroy()
		return nil, func() {}, err
	}
	out := cacher.NewCacheDelegator(cache, c.Storage)
	return out, sync.OnceFunc(func() {
		out.Stop()
		cache.Stop()
		destroy()
	}), nil
}

// open is storagebackend's newETCD3Storage with a client of the member itself.
func (d *directStorage) open(c *storagebackend.ConfigForResource, prefix string, newFunc, newList func() runtime.Object) (storage.Interface, factory.DestroyFunc, error) {
	client := d.etcd.client()
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	versioner := storage.APIObjectVersioner{}
	transformer := c.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	store, err := etcd3.New(client, d.compactor(), c.Codec, newFunc, newList, c.Prefix, prefix, c.GroupResource,
		transformer, c.LeaseManagerConfig, etcd3.NewDefaultDecoder(c.Codec, versioner), versioner)
	if err != nil {
		return nil, nil, fmt.Errorf("storage: %w", err)
	}
	return store, sync.OnceFunc(func() {
		store.Close()
		client.Watcher.Close()
	}), nil
}

// client is a client of the member without a connection, with a watch stream of its
// own. It waits until the member serves, or has ended.
func (m *etcdMember) client() *etcdkubernetes.Client {
	select {
	case <-m.embed.Server.ReadyNotify():
	case <-m.embed.Server.StopNotify():
	}
	c := &etcdkubernetes.Client{Client: v3client.New(m.embed.Server)}
	c.Kubernetes = c
	return c
}
