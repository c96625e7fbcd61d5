package stream

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metafake "k8s.io/client-go/metadata/fake"

	"kubistro/internal/lab"
)

func version(v string) option { return func(u *unstructured.Unstructured) { u.SetResourceVersion(v) } }

func TestCacheHas(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	k := newCache(r.feed).kinds["Deployment"]
	if err := k.put(object("Deployment", "grill", "d", version("9")).Object); err != nil {
		t.Fatal(err)
	}
	item := func(name, uid, version string) metav1.PartialObjectMetadata {
		o := object("Deployment", name, uid).Object
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: name, UID: o.GetUID(), ResourceVersion: version}}
	}
	for name, tt := range map[string]struct {
		list []metav1.PartialObjectMetadata
		want bool
	}{
		"the same":        {[]metav1.PartialObjectMetadata{item("grill", "d", "9")}, true},
		"an older list":   {[]metav1.PartialObjectMetadata{item("grill", "d", "8")}, true},
		"a newer version": {[]metav1.PartialObjectMetadata{item("grill", "d", "10")}, false},
		"made again":      {[]metav1.PartialObjectMetadata{item("grill", "e", "9")}, false},
		"one more":        {[]metav1.PartialObjectMetadata{item("grill", "d", "9"), item("soup", "s", "3")}, false},
		"gone":            {nil, false},
	} {
		if got := k.has(tt.list); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// Whatever comes first, when CatchUp returns the record tells the objects' present state, also
// what still waited for its audit entry.
func TestCatchUp(t *testing.T) {
	scheme := metafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	grill := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "grill", UID: "d", ResourceVersion: "7"},
	}
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1")
	w := &Watch{cache: newCache(r.feed), feed: r.feed, meta: metafake.NewSimpleMetadataClient(scheme, grill)}
	caughtUp := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() { caughtUp <- w.CatchUp(ctx) }()
	for i, v := range []string{"5", "7"} {
		if err := w.cache.kinds["Deployment"].put(object("Deployment", "grill", "d", version(v), set(int64(i+1), "spec", "replicas")).Object); err != nil {
			t.Fatal(err)
		}
	}
	for {
		select {
		case err := <-caughtUp:
			if err != nil {
				t.Fatal(err)
			}
			events, err := r.rec.Since(ctx, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, e := range events {
				if e.Type == lab.EventObject && e.Object.Name == "grill" {
					n++
				}
			}
			if n != 2 {
				t.Errorf("%d changes of grill are told, want both:\n%+v", n, events)
			}
			return
		case <-time.After(time.Millisecond):
			r.clock.Step(podWait) // what waits for its entry
		}
	}
}

func TestCatchUpGivesUp(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1")
	r.feed.Change(object("Pod", "waits", "p"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.feed.Told(ctx); err == nil {
		t.Error("told, though the Pod's change waits for its entry")
	}
}
