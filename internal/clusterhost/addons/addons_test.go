package addons

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kubistro/internal/clusterhost/kubelet"
	"kubistro/internal/clusterhost/pantry"
)

func noNodes() []*kubelet.Kubelet { return nil }

func TestManifestsAreCreatedWhereTheyBelong(t *testing.T) {
	paths := map[string]bool{}
	for _, file := range waves {
		objects, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.name == "" {
				t.Errorf("%s: an object without a name goes to %s", file, o.path)
			}
			paths[o.path+"/"+o.name] = true
		}
	}
	for _, want := range []string{
		"/api/v1/namespaces/kube-system/services/kube-dns",
		"/apis/apps/v1/namespaces/kube-system/deployments/coredns",
		"/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/system:coredns",
		"/apis/storage.k8s.io/v1/storageclasses/standard",
		"/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io",
	} {
		if !paths[want] {
			t.Errorf("nothing creates %s", want)
		}
	}
}

// TestEveryImageExists fails when a Pod of the cluster's own names an image that nobody provides.
func TestEveryImageExists(t *testing.T) {
	r := pantry.NewRegistry()
	for _, img := range Images(noNodes) {
		if err := r.Add(img); err != nil {
			t.Fatal(err)
		}
	}
	used := []string{}
	for _, p := range StaticPods("office") {
		if p.Namespace != metav1.NamespaceSystem || !strings.HasSuffix(p.Name, "-office") || !p.Spec.HostNetwork {
			t.Errorf("static Pod %s/%s", p.Namespace, p.Name)
		}
		used = append(used, p.Spec.Containers[0].Image)
	}
	var objects []object
	for _, file := range waves {
		part, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, part...)
	}
	for _, o := range objects {
		var w struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(o.body, &w); err != nil {
			t.Fatal(err)
		}
		for _, c := range w.Spec.Template.Spec.Containers {
			used = append(used, c.Image)
		}
	}
	if len(used) < 8 {
		t.Fatalf("only %v", used)
	}
	for _, ref := range used {
		if _, err := r.Pull(ref); err != nil {
			t.Error(err)
		}
	}
}

func TestMetricsAPI(t *testing.T) {
	m := &Metrics{Nodes: noNodes}
	for path, want := range map[string]struct {
		code int
		kind string
	}{
		"/apis/metrics.k8s.io/v1beta1":                           {200, "APIResourceList"},
		"/apis/metrics.k8s.io/v1beta1/nodes":                     {200, "NodeMetricsList"},
		"/apis/metrics.k8s.io/v1beta1/namespaces/x/pods":         {200, "PodMetricsList"},
		"/apis/metrics.k8s.io/v1beta1/nodes/kitchen-9":           {404, "Status"},
		"/apis/metrics.k8s.io/v1beta1/pods?labelSelector=%21%21": {400, "Status"},
		"/apis/other/v1": {404, "Status"},
	} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		var got metav1.TypeMeta
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != want.code || got.Kind != want.kind {
			t.Errorf("%s: %d %s %v, want %d %s", path, w.Code, got.Kind, err, want.code, want.kind)
		}
	}
}
