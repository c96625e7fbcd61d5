package terminal

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/restmapper"
	clienttesting "k8s.io/client-go/testing"
)

// TestDiscoveryLooksAnew installs a kind after the first command of a terminal: the next one knows it.
func TestDiscoveryLooksAnew(t *testing.T) {
	api := &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}}},
	}}
	d := &sharedDiscovery{CachedDiscoveryInterface: memory.NewMemCacheClient(&fakediscovery.FakeDiscovery{Fake: api})}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(d)
	kind := schema.GroupKind{Group: "kitchen.example", Kind: "Recipe"}

	d.begin()
	if _, err := mapper.RESTMapping(kind, "v1"); !meta.IsNoMatchError(err) {
		t.Fatalf("before the kind is installed: %v, want no match", err)
	}
	looked := len(api.Actions())
	if _, err := mapper.RESTMapping(kind, "v1"); !meta.IsNoMatchError(err) {
		t.Fatalf("in the same command: %v, want no match", err)
	}
	if n := len(api.Actions()); n != looked {
		t.Errorf("a command looked %d times more for what isn't there", n-looked)
	}
	api.Resources = append(api.Resources, &metav1.APIResourceList{
		GroupVersion: "kitchen.example/v1", APIResources: []metav1.APIResource{{Name: "recipes", Kind: "Recipe"}},
	})
	d.begin()
	m, err := mapper.RESTMapping(kind, "v1")
	if err != nil {
		t.Fatalf("in the next command: %v", err)
	}
	if m.Resource.Resource != "recipes" {
		t.Errorf("resource %q, want recipes", m.Resource.Resource)
	}
}
