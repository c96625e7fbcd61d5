package kubelet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// post creates an object of any kind from YAML.
func (h *host) post(t *testing.T, path, manifest string) {
	t.Helper()
	if err := h.tryPost(t.Context(), path, manifest); err != nil {
		t.Fatalf("POST %s: %v", path, err)
	}
}

func (h *host) tryPost(ctx context.Context, path, manifest string) error {
	raw, err := yaml.YAMLToJSONStrict([]byte(manifest))
	if err != nil {
		return err
	}
	return h.client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(raw).Do(ctx).Error()
}

// eventually tries until f says that nothing is wrong any more.
func eventually(t *testing.T, f func(context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		wrong := f(ctx)
		if wrong == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(wrong)
		}
	}
}

// TestAdmissionWebhooks: the API server asks a Pod of the pantry, through the
// cluster's own network and with the CA of the configuration.
func TestAdmissionWebhooks(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	const admission = "/apis/admissionregistration.k8s.io/v1/"
	hook := func(kind, path string) string {
		return fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: %sWebhookConfiguration, metadata: {name: inspector-%s}, webhooks: [{
name: inspector.kubistro.test, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Fail, timeoutSeconds: 10,
objectSelector: {matchExpressions: [{key: inspected, operator: Exists}]},
namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}},
rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}],
clientConfig: {service: {namespace: %[2]s, name: inspector, path: %s}}}]}`, kind, ns, path)
	}
	t.Cleanup(func() {
		api := h.client.AdmissionregistrationV1()
		api.ValidatingWebhookConfigurations().Delete(context.Background(), "inspector-"+ns, metav1.DeleteOptions{})
		api.MutatingWebhookConfigurations().Delete(context.Background(), "inspector-"+ns, metav1.DeleteOptions{})
		h.client.RbacV1().ClusterRoleBindings().Delete(context.Background(), "inspector-"+ns, metav1.DeleteOptions{})
	})
	h.post(t, admission+"validatingwebhookconfigurations", hook("Validating", "/validate"))
	h.post(t, admission+"mutatingwebhookconfigurations", hook("Mutating", "/mutate"))
	h.post(t, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: inspector-%s},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: default, namespace: %[1]s}]}`, ns))
	h.post(t, "/api/v1/namespaces/"+ns+"/services", `{apiVersion: v1, kind: Service, metadata: {name: inspector}, spec: {selector: {app: inspector}, ports: [{port: 443, targetPort: 8443}]}}`)
	h.post(t, "/api/v1/namespaces/"+ns+"/pods", fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: inspector, labels: {app: inspector}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: kubistro/inspector,
args: [--self-signed=inspector.%s.svc, --inject-ca=validatingwebhookconfigurations/inspector-%[1]s, --inject-ca=mutatingwebhookconfigurations/inspector-%[1]s, --deny-latest, "--deny-image=redis:*", --set-label=seen/by=inspector],
readinessProbe: {periodSeconds: 1, httpGet: {path: /healthz, port: 8443, scheme: HTTPS}}}]}}`, ns))
	h.pod(t, ns, "inspector", ready)
	guest := func(name, image string) error {
		return h.tryPost(t.Context(), "/api/v1/namespaces/"+ns+"/pods", fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {inspected: "yes"}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: %q, command: [sleep, "600"]}]}}`, name, image))
	}
	// The API server learns the CA, and the Service its endpoint, a moment after they are written.
	eventually(t, func(context.Context) string {
		err := guest("late", "nginx")
		if err == nil {
			return "a Pod without a tag was let in"
		}
		if want := `admission webhook "inspector.kubistro.test" denied the request: image "nginx": a tag other than latest must be named`; err.Error() != want {
			return err.Error()
		}
		return ""
	})
	if err := guest("redis", "redis:7"); err == nil || !strings.Contains(err.Error(), `image "redis:7" isn't allowed here`) {
		t.Errorf("a forbidden image: %v", err)
	}
	if err := guest("good", "busybox:1.37"); err != nil {
		t.Fatal(err)
	}
	if p := h.pod(t, ns, "good", ready); p.Labels["seen/by"] != "inspector" {
		t.Errorf("labels of a Pod that was changed on its way in: %v", p.Labels)
	}
	if log := h.logs(t, ns, "inspector", corev1.PodLogOptions{}); !strings.Contains(log, "/validate CREATE Pod "+ns+"/good by learner: allowed") {
		t.Errorf("the inspector's log: %q", log)
	}
	if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), "inspector", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.gone(t, ns, "inspector")
	eventually(t, func(context.Context) string {
		if err := guest("alone", "busybox:1.37"); err == nil || !strings.Contains(err.Error(), `failed calling webhook "inspector.kubistro.test"`) {
			return fmt.Sprintf("without the inspector: %v", err)
		}
		return ""
	})
}

// TestCustomResource: a definition, a controller in a Pod, and objects that it looks after.
func TestCustomResource(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	group := ns + ".kubistro.test"
	t.Cleanup(func() {
		h.client.CoreV1().RESTClient().Delete().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/banquets." + group).Do(context.Background())
		h.client.RbacV1().ClusterRoleBindings().Delete(context.Background(), "operator-"+ns, metav1.DeleteOptions{})
	})
	h.post(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: banquets.%s}, spec: {group: %[1]s, scope: Namespaced,
names: {plural: banquets, singular: banquet, kind: Banquet}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}},
schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer, minimum: 0}, image: {type: string}}}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}]}}`, group))
	h.post(t, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: operator-%s},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: default, namespace: %[1]s}]}`, ns))
	h.apply(t, ns, podYAML("operator", fmt.Sprintf(`{terminationGracePeriodSeconds: 1, containers: [{name: c, image: kubistro/operator, args: ["--resource=banquets.v1.%s"]}]}`, group)))
	h.pod(t, ns, "operator", ready)
	path := "/apis/" + group + "/v1/namespaces/" + ns + "/banquets"
	eventually(t, func(ctx context.Context) string { // the definition is served a moment later
		if err := h.tryPost(ctx, path, fmt.Sprintf(`{apiVersion: %s/v1, kind: Banquet, metadata: {name: wedding}, spec: {replicas: 2, image: "busybox:1.37"}}`, group)); err != nil && !strings.Contains(err.Error(), "already exists") {
			return err.Error()
		}
		return ""
	})
	custom, err := dynamic.NewForConfig(h.rest)
	if err != nil {
		t.Fatal(err)
	}
	api := custom.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "banquets"}).Namespace(ns)
	// busybox without a command ends at once, so its Deployment never gets ready; the cook does.
	eventually(t, func(ctx context.Context) string {
		d, err := h.client.AppsV1().Deployments(ns).Get(ctx, "wedding", metav1.GetOptions{})
		if err != nil || *d.Spec.Replicas != 2 || d.Spec.Template.Spec.Containers[0].Image != "busybox:1.37" {
			return fmt.Sprintf("the operator's Deployment: %v %v", d.Spec.Replicas, err)
		}
		return ""
	})
	if _, err := api.Patch(t.Context(), "wedding", "application/merge-patch+json", []byte(`{"spec":{"image":"grill-cook:1.5","replicas":1}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		b, err := api.Get(ctx, "wedding", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		status, _ := b.Object["status"].(map[string]any)
		if status["phase"] != "Ready" || status["readyReplicas"] != int64(1) || status["observedGeneration"] != int64(2) {
			return fmt.Sprintf("status: %v", status)
		}
		return ""
	})
	background := metav1.DeletePropagationBackground
	if err := api.Delete(t.Context(), "wedding", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		if _, err := h.client.AppsV1().Deployments(ns).Get(ctx, "wedding", metav1.GetOptions{}); err == nil {
			return "the Deployment outlives its owner"
		}
		return ""
	})
}
