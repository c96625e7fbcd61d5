package stream

import (
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// ErrNotWatched means that a cache can't answer: the kind isn't watched, its
// contents aren't kept, or its first list hasn't come.
var ErrNotWatched = errors.New("not in the watch cache")

// Cache holds the full objects of one cluster as its watches deliver them.
type Cache struct{ kinds map[string]*kindCache }

type objectKey struct{ namespace, name string }

// kindCache is the store of one reflector. Objects in it are never changed.
type kindCache struct {
	resource Resource
	feed     *Feed
	synced   chan struct{}

	telling sync.Mutex // held until a change is with the feed

	mu      sync.RWMutex
	listed  bool
	objects map[objectKey]*unstructured.Unstructured
}

func newCache(feed *Feed) *Cache {
	c := &Cache{kinds: map[string]*kindCache{}}
	for _, r := range Resources() {
		c.kinds[r.Kind] = &kindCache{resource: r, feed: feed, synced: make(chan struct{}), objects: map[objectKey]*unstructured.Unstructured{}}
	}
	return c
}

func (c *Cache) kind(kind string) (*kindCache, error) {
	k := c.kinds[kind]
	if k == nil || k.resource.MetadataOnly {
		return nil, ErrNotWatched
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	if !k.listed {
		return nil, ErrNotWatched
	}
	return k, nil
}

// Get returns an object, nil when there is none, or ErrNotWatched. The caller must not change it.
func (c *Cache) Get(kind, namespace, name string) (map[string]any, error) {
	k, err := c.kind(kind)
	if err != nil {
		return nil, err
	}
	if !k.resource.Namespaced {
		namespace = ""
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	if o := k.objects[objectKey{namespace, name}]; o != nil {
		return o.Object, nil
	}
	return nil, nil
}

// List returns the objects that a selector picks (namespace "" for all), or
// ErrNotWatched. The caller must not change them.
func (c *Cache) List(kind, namespace string, selector labels.Selector) ([]map[string]any, error) {
	k, err := c.kind(kind)
	if err != nil {
		return nil, err
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	var out []map[string]any
	for key, o := range k.objects {
		if k.resource.Namespaced && namespace != "" && key.namespace != namespace {
			continue
		}
		if selector.Matches(labels.Set(o.GetLabels())) {
			out = append(out, o.Object)
		}
	}
	return out, nil
}

// has reports whether the watch has handed over what a list holds, and nothing that it doesn't.
func (k *kindCache) has(list []metav1.PartialObjectMetadata) bool {
	k.telling.Lock()
	defer k.telling.Unlock()
	k.mu.RLock()
	defer k.mu.RUnlock()
	for i := range list {
		o := k.objects[objectKey{list[i].Namespace, list[i].Name}]
		if o == nil || o.GetUID() != list[i].UID {
			return false
		}
		newer, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), list[i].ResourceVersion)
		if err != nil || newer < 0 {
			return false
		}
	}
	return len(k.objects) == len(list)
}

// The methods below make a kindCache a reflector's store.

func (k *kindCache) Add(o any) error    { return k.put(o) }
func (k *kindCache) Update(o any) error { return k.put(o) }
func (k *kindCache) Resync() error      { return nil }

func (k *kindCache) put(o any) error {
	k.telling.Lock()
	defer k.telling.Unlock()
	u, err := k.object(o)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.objects[objectKey{u.GetNamespace(), u.GetName()}] = u
	k.mu.Unlock()
	k.feed.Change(Change{Kind: k.resource.Kind, Object: u})
	return nil
}

func (k *kindCache) Delete(o any) error {
	k.telling.Lock()
	defer k.telling.Unlock()
	u, err := k.object(o)
	if err != nil {
		return err
	}
	k.mu.Lock()
	delete(k.objects, objectKey{u.GetNamespace(), u.GetName()})
	k.mu.Unlock()
	k.feed.Change(Change{Kind: k.resource.Kind, Object: u, Removed: true})
	return nil
}

// Replace takes a list: the first one, or that after a watch broke.
func (k *kindCache) Replace(list []any, _ string) error {
	k.telling.Lock()
	defer k.telling.Unlock()
	objects := make(map[objectKey]*unstructured.Unstructured, len(list))
	ordered := make([]*unstructured.Unstructured, 0, len(list))
	for _, o := range list {
		u, err := k.object(o)
		if err != nil {
			return err
		}
		objects[objectKey{u.GetNamespace(), u.GetName()}] = u
		ordered = append(ordered, u)
	}
	k.mu.Lock()
	before, first := k.objects, !k.listed
	k.objects, k.listed = objects, true
	k.mu.Unlock()
	for _, u := range ordered {
		old := before[objectKey{u.GetNamespace(), u.GetName()}]
		if old == nil || old.GetResourceVersion() != u.GetResourceVersion() {
			k.feed.Change(Change{Kind: k.resource.Kind, Object: u, Found: true})
		}
	}
	if first {
		k.feed.Listed(k.resource.Kind, ordered)
		close(k.synced)
		return nil
	}
	for key, old := range before {
		if objects[key] == nil {
			k.feed.Change(Change{Kind: k.resource.Kind, Object: old, Removed: true, Found: true})
		}
	}
	return nil
}

// object strips what nobody needs and makes metadata-only objects look like others.
func (k *kindCache) object(o any) (*unstructured.Unstructured, error) {
	u, ok := o.(*unstructured.Unstructured)
	if p, partial := o.(*metav1.PartialObjectMetadata); partial {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		if err != nil {
			return nil, err
		}
		u, ok = &unstructured.Unstructured{Object: content}, true
	}
	if !ok {
		return nil, errors.New("unexpected object in a watch")
	}
	u.SetManagedFields(nil)
	return u, nil
}
