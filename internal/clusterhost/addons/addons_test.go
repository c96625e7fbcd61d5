package addons

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kubistro/internal/clusterhost/kubelet"
	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/lab"
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
	for _, img := range Images(noNodes, nil) {
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
		"/apis/other/v1":   {404, "Status"},
		"/openapi/v3/apis": {404, "Status"},
	} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		var got metav1.TypeMeta
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != want.code || got.Kind != want.kind {
			t.Errorf("%s: %d %s %v, want %d %s", path, w.Code, got.Kind, err, want.code, want.kind)
		}
	}
}

// TestMetricsOpenAPI: each document refers to schemas that it has.
func TestMetricsOpenAPI(t *testing.T) {
	m := &Metrics{Nodes: noNodes}
	for path, part := range map[string]string{"/openapi/v2": "definitions", "/openapi/v3/apis/metrics.k8s.io/v1beta1": "components"} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		var doc map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Code != 200 || doc["paths"] == nil {
			t.Fatalf("%s: %d %v", path, w.Code, err)
		}
		schemas, _ := doc[part].(map[string]any)
		if inner, ok := schemas["schemas"].(map[string]any); ok {
			schemas = inner
		}
		refs := regexp.MustCompile(`"\$ref":"#/[a-z/]+/([^"]+)"`).FindAllStringSubmatch(w.Body.String(), -1)
		if len(refs) < 6 {
			t.Errorf("%s: only %d references", path, len(refs))
		}
		for _, r := range refs {
			if schemas[r[1]] == nil {
				t.Errorf("%s: nothing is at %s", path, r[0])
			}
		}
	}
}

// store is an etcd with a few keys.
type store []lab.EtcdValue

func (s store) EtcdKeys(_ context.Context, prefix, after string, limit int) (lab.EtcdKeys, error) {
	var out lab.EtcdKeys
	for _, v := range s {
		if strings.HasPrefix(v.Key, prefix) && v.Key > after {
			if len(out.Keys) == 2 { // pages are short, whatever was asked for
				out.More = true
				break
			}
			out.Keys = append(out.Keys, v.EtcdKey)
		}
	}
	return out, nil
}

func (s store) EtcdValue(_ context.Context, key string) (lab.EtcdValue, bool, error) {
	for _, v := range s {
		if v.Key == key {
			return v, true, nil
		}
	}
	return lab.EtcdValue{}, false, nil
}

func TestEtcdctl(t *testing.T) {
	var s store
	for _, key := range []string{"/a/1", "/a/2", "/a/3", "/b/1"} {
		s = append(s, lab.EtcdValue{EtcdKey: lab.EtcdKey{Key: key, ModRevision: 7}, Value: []byte("value of " + key), Size: 13})
	}
	for _, tc := range []struct {
		args, want string
		code       int
	}{
		{"get /a/1", "/a/1\nvalue of /a/1\n", 0},
		{"--cacert=/pki/ca.crt --cert x --key y --endpoints=https://127.0.0.1:2379 get /a --prefix --keys-only", "/a/1\n\n/a/2\n\n/a/3\n\n", 0},
		{"get / --prefix --print-value-only --limit=2", "value of /a/1\nvalue of /a/2\n", 0},
		{"get / --prefix --count-only", "4\n", 0},
		{"get /none", "", 0},
		{"get /b/1 -w json", `{"count":1,"kvs":[{"key":"L2IvMQ==","create_revision":0,"mod_revision":7,"version":0,"value":"dmFsdWUgb2YgL2IvMQ=="}]}` + "\n", 0},
		{"put /a/1 x", "", 1},
		{"get", "", 1},
		{"get /a --no-such-flag", "", 1},
		{"endpoint health", "127.0.0.1:2379 is healthy: successfully committed proposal: took = 1ms\n", 0},
	} {
		var out bytes.Buffer
		p := &pantry.Process{Args: append([]string{"etcdctl"}, strings.Fields(tc.args)...), Stdout: &out, Stderr: io.Discard}
		if code := etcdctlProgram(s)(t.Context(), p); code != tc.code || out.String() != tc.want {
			t.Errorf("etcdctl %s: %d %q, want %d %q", tc.args, code, out.String(), tc.code, tc.want)
		}
	}
}
