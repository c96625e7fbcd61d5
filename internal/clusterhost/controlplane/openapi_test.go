package controlplane

import (
	"encoding/json"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// TestOpenAPI reads the documents that are built when they are asked for, as kubectl does.
func TestOpenAPI(t *testing.T) {
	raw, err := shared.client.RESTClient().Get().AbsPath(pathOpenAPIV3).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1", "apis/apiregistration.k8s.io/v1", "version"} {
		if list.Paths[name].ServerRelativeURL == "" {
			t.Errorf("the index lacks %s", name)
		}
	}
	for _, path := range []string{list.Paths["apis/apps/v1"].ServerRelativeURL, "/openapi/v3/apis/apps/v1", "/openapi/v3/apis/apps/v1?hash=another"} {
		raw, err := shared.client.RESTClient().Get().RequestURI(path).DoRaw(t.Context())
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var doc spec3.OpenAPI
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Components.Schemas["io.k8s.api.apps.v1.Deployment"] == nil || doc.Paths.Paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"] == nil {
			t.Errorf("%s doesn't describe Deployments", path)
		}
	}
	paths, err := shared.client.Discovery().OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := paths["api/v1"].Schema(openapi.ContentTypeOpenAPIV3PB); err != nil || len(b) < 100_000 {
		t.Errorf("kubectl's form of api/v1: %d bytes, %v", len(b), err)
	}
	var code int
	shared.client.RESTClient().Get().AbsPath("/openapi/v3/apis/nothing/v1").Do(t.Context()).StatusCode(&code)
	if code != http.StatusNotFound {
		t.Errorf("a document that isn't there: status %d", code)
	}
}

// TestDefaultRoles: a new cluster has all of them, and a start gives back what a learner took.
func TestDefaultRoles(t *testing.T) {
	roles, bindings := shared.client.RbacV1().ClusterRoles(), shared.client.RbacV1().ClusterRoleBindings()
	for _, r := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		if _, err := roles.Get(t.Context(), r.Name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	for _, b := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		if _, err := bindings.Get(t.Context(), b.Name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	view, err := roles.Get(t.Context(), "system:node-proxier", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole := len(view.Rules)
	view.Rules = view.Rules[:1]
	if _, err := roles.Update(t.Context(), view, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := bindings.Delete(t.Context(), "system:discovery", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if err := ensureRBAC(t.Context(), shared.api.loopback); err != nil {
		t.Fatal(err)
	}
	if view, err = roles.Get(t.Context(), view.Name, metav1.GetOptions{}); err != nil || len(view.Rules) < whole { // what is missing comes back verb by verb
		t.Errorf("a role has %d rules of %d: %v", len(view.Rules), whole, err)
	}
	if _, err := bindings.Get(t.Context(), "system:discovery", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
