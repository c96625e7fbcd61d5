package cleanup_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/embedded"
	"kubistro/internal/lab"
	"kubistro/internal/session/cleanup"
)

func start(t *testing.T) cluster.Instance {
	t.Helper()
	program := os.Getenv("KUBISTRO_CLUSTERHOST")
	if program == "" {
		t.Fatal("KUBISTRO_CLUSTERHOST names no clusterhost: run the tests with make test")
	}
	driver, err := embedded.New(embedded.Options{Dir: t.TempDir(), Program: program, Orphan: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	const id = "c-cleanup"
	inst, err := driver.Create(t.Context(), id, lab.DefaultClusterSpec(), func(lab.Stage) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := driver.Delete(context.Background(), id); err != nil {
			t.Error(err)
		}
		if err := driver.Close(); err != nil {
			t.Error(err)
		}
	})
	return inst
}

// mess is what a learner does to a cluster.
type mess struct {
	t   *testing.T
	k   kubernetes.Interface
	dyn dynamic.Interface
}

func (m mess) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m mess) create(group, version, resource, namespace string, o map[string]any) {
	m.t.Helper()
	r := m.dyn.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
	var err error
	if namespace == "" {
		_, err = r.Create(m.t.Context(), &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
	} else {
		_, err = r.Namespace(namespace).Create(m.t.Context(), &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
	}
	m.must(err)
}

func meta(name string) map[string]any { return map[string]any{"name": name} }

// make breaks everything that case 8 of the field's stories breaks, the hooks last.
func (m mess) make() {
	ctx := m.t.Context()
	_, err := m.k.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "grill"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"station": "grill"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"station": "grill"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "cook", Image: "registry.k8s.io/pause:3.10"}}},
			},
		},
	}, metav1.CreateOptions{})
	m.must(err)
	for _, name := range []string{"stuck", "plain"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name == "stuck" {
			ns.Finalizers = []string{"example.org/nobody"}
		}
		_, err := m.k.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		m.must(err)
	}
	_, err = m.k.CoreV1().ConfigMaps("plain").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.org/nobody"}}}, metav1.CreateOptions{})
	m.must(err)
	m.must(m.k.CoreV1().Namespaces().Delete(ctx, "stuck", metav1.DeleteOptions{}))
	for _, node := range []string{"kitchen-1", "kitchen-2", "kitchen-3"} {
		_, err := m.k.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType,
			[]byte(`{"metadata":{"labels":{"kitchen":"wrong","mine":"yes"}},"spec":{"unschedulable":true,"taints":[{"key":"closed","value":"yes","effect":"NoExecute"}]}}`), metav1.PatchOptions{})
		m.must(err)
	}
	m.create("", "v1", "resourcequotas", "default", map[string]any{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta("none"), "spec": map[string]any{"hard": map[string]any{"pods": "0"}}})
	m.create("scheduling.k8s.io", "v1", "priorityclasses", "", map[string]any{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta("first"), "value": int64(1000), "globalDefault": true})
	m.create("apiextensions.k8s.io", "v1", "customresourcedefinitions", "", map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta("dishes.example.org"),
		"spec": map[string]any{
			"group": "example.org", "scope": "Namespaced", "names": map[string]any{"plural": "dishes", "singular": "dish", "kind": "Dish"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		},
	})
	m.create("apiregistration.k8s.io", "v1", "apiservices", "", map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": meta("v1.nowhere.example.org"),
		"spec": map[string]any{"group": "nowhere.example.org", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true, "service": map[string]any{"name": "nowhere", "namespace": "default"}},
	})
	m.must(m.k.RbacV1().ClusterRoles().Delete(ctx, "view", metav1.DeleteOptions{}))
	m.must(m.k.CoreV1().ServiceAccounts("default").Delete(ctx, "default", metav1.DeleteOptions{}))
	m.must(m.k.CoreV1().Services("kube-system").Delete(ctx, "kube-dns", metav1.DeleteOptions{}))
	m.must(m.k.AppsV1().Deployments("kube-system").Delete(ctx, "coredns", metav1.DeleteOptions{}))
	m.create("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "", map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": meta("no"),
		"spec": map[string]any{
			"matchConstraints": map[string]any{"resourceRules": []any{everythingRule()}},
			"validations":      []any{map[string]any{"expression": "false"}},
		},
	})
	m.create("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "", map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": meta("no"),
		"spec": map[string]any{"policyName": "no", "validationActions": []any{"Deny"}},
	})
	m.create("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "", map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": meta("no"),
		"webhooks": []any{map[string]any{
			"name": "no.example.org", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": int64(30),
			"clientConfig": map[string]any{"url": "https://nowhere.example.org/"}, "rules": []any{everythingRule()},
		}},
	})
}

func everythingRule() map[string]any {
	return map[string]any{"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*/*"}, "operations": []any{"CREATE", "UPDATE", "DELETE"}}
}

func TestRestore(t *testing.T) {
	inst := start(t)
	cfg := inst.REST()
	cfg.QPS = -1
	path := filepath.Join(t.TempDir(), "baseline")
	began := time.Now()
	if err := cleanup.Keep(t.Context(), cfg, path); err != nil {
		t.Fatal(err)
	}
	t.Logf("baseline kept in %s", time.Since(began))
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	restore := func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a busy machine; the lab itself gives 5 s
		defer cancel()
		began := time.Now()
		if err := cleanup.Restore(ctx, cfg, path, nil, log); err != nil {
			t.Fatal(err)
		}
		t.Logf("restored in %s", time.Since(began))
	}
	t.Run("nothing to do", restore)
	k, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mess{t, k, dyn}.make()
	t.Run("everything broken", restore)

	ctx := t.Context()
	if _, err := k.RbacV1().ClusterRoles().Get(ctx, "view", metav1.GetOptions{}); err != nil {
		t.Errorf("ClusterRole view: %v", err)
	}
	if _, err := k.CoreV1().Services("kube-system").Get(ctx, "kube-dns", metav1.GetOptions{}); err != nil {
		t.Errorf("Service kube-dns: %v", err)
	}
	namespaces, err := k.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range namespaces.Items {
		if ns.Name == "stuck" || ns.Name == "plain" {
			t.Errorf("namespace %s is still there", ns.Name)
		}
	}
	nodes, err := k.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "kitchen=1"})
	if err != nil || len(nodes.Items) != 1 || nodes.Items[0].Spec.Unschedulable || len(nodes.Items[0].Spec.Taints) > 0 || nodes.Items[0].Labels["mine"] != "" {
		t.Errorf("kitchen-1 isn't as it was: %v %+v", err, nodes.Items)
	}
	// The proof: a Pod can be made and gets scheduled.
	_, err = k.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "proof"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "cook", Image: "registry.k8s.io/pause:3.10"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("a Pod after the reset: %v", err)
	}
}

func TestNoBaseline(t *testing.T) {
	if err := cleanup.Restore(t.Context(), nil, filepath.Join(t.TempDir(), "none"), nil, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("restored from nothing")
	}
}
