package kubelet

import (
	"context"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pace"
)

// freshAge is how old an object may be when a container starts. Files of running
// containers may be brought up to date with older ones: they follow within about a minute.
const freshAge = time.Second

// authorizerDelay is how long a refusal may be the node authorizer's lag behind a new Pod.
const authorizerDelay = 2 * time.Second

// objectCache gets the ConfigMaps and Secrets that Pods of the node refer to. A
// watch for each, as the real kubelet has, would cost more than it is worth here.
type objectCache struct {
	client kubernetes.Interface
	clock  clock.PassiveClock

	mu   sync.Mutex
	seen map[objectKey]cachedObject
}

type objectKey struct{ kind, namespace, name string }

type cachedObject struct {
	at      time.Time
	config  *corev1.ConfigMap
	secret  *corev1.Secret
	bundles []certificatesv1.ClusterTrustBundle
}

func newObjectCache(c kubernetes.Interface, cl clock.PassiveClock) *objectCache {
	return &objectCache{client: c, clock: cl, seen: map[objectKey]cachedObject{}}
}

func (c *objectCache) lookup(k objectKey, age time.Duration) (cachedObject, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.seen[k]
	if !ok || c.clock.Since(o.at) > age {
		return cachedObject{}, false
	}
	return o, true
}

func (c *objectCache) store(k objectKey, o cachedObject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.at = c.clock.Now()
	for key, old := range c.seen {
		if o.at.Sub(old.at) > 2*pace.Real(pace.ConfigRefresh) {
			delete(c.seen, key)
		}
	}
	c.seen[k] = o
}

// configMap gets a ConfigMap not older than age. A missing one is a NotFound
// error with the kubelet's wording: util/manager/watch_based_manager.go.
func (c *objectCache) configMap(ctx context.Context, namespace, name string, age time.Duration) (*corev1.ConfigMap, error) {
	k := objectKey{"configmap", namespace, name}
	if o, ok := c.lookup(k, age); ok {
		return o.config, nil
	}
	cm, err := authorized(ctx, func() (*corev1.ConfigMap, error) {
		return c.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, notFound(k, err)
	}
	c.store(k, cachedObject{config: cm})
	return cm, nil
}

// secret gets a Secret as configMap gets ConfigMaps.
func (c *objectCache) secret(ctx context.Context, namespace, name string, age time.Duration) (*corev1.Secret, error) {
	k := objectKey{"secret", namespace, name}
	if o, ok := c.lookup(k, age); ok {
		return o.secret, nil
	}
	s, err := authorized(ctx, func() (*corev1.Secret, error) {
		return c.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, notFound(k, err)
	}
	c.store(k, cachedObject{secret: s})
	return s, nil
}

// authorized repeats for a while what the node authorizer forbids: it learns of a new
// Pod a moment after the node does. A real kubelet waits for its watch of the object in the
// same way: util/manager/watch_based_manager.go, Get.
func authorized[T any](ctx context.Context, get func() (T, error)) (T, error) {
	end := time.Now().Add(authorizerDelay)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		got, err := get()
		if !apierrors.IsForbidden(err) || time.Now().After(end) {
			return got, err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return got, err
		}
	}
}

func notFound(k objectKey, err error) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: k.kind}, k.name)
	}
	return err
}
