package controlplane

import (
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindIndex finds the kind of a resource without asking the API server.
type kindIndex struct {
	mu    sync.RWMutex
	kinds map[schema.GroupResource]string
}

// newKindIndex knows the kinds of the given schemes.
func newKindIndex(schemes ...*runtime.Scheme) *kindIndex {
	x := &kindIndex{kinds: map[schema.GroupResource]string{}}
	for _, s := range schemes {
		for gvk := range s.AllKnownTypes() {
			plural, _ := meta.UnsafeGuessKindToResource(gvk)
			gr := plural.GroupResource()
			if _, known := x.kinds[gr]; !known && gvk.Version != runtime.APIVersionInternal {
				x.kinds[gr] = gvk.Kind
			}
		}
	}
	return x
}

// kind is the kind of a resource; empty when it isn't known.
func (x *kindIndex) kind(group, resource string) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.kinds[schema.GroupResource{Group: group, Resource: resource}]
}

// learn takes the names from a CustomResourceDefinition in JSON.
func (x *kindIndex) learn(crd []byte) {
	var d struct {
		Spec struct {
			Group string
			Names struct{ Plural, Kind string }
		}
	}
	if json.Unmarshal(crd, &d) != nil || d.Spec.Names.Plural == "" {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kinds[schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural}] = d.Spec.Names.Kind
}
