package kind

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// confinement is the learners' role and the admission policies: nodes are privileged
// containers, so that who is root on a node is root on the machine.
//
//go:embed confinement.yaml
var confinement string

// resources are those of the kinds in confinement.
var resources = map[string]schema.GroupVersionResource{
	"ClusterRole":                      {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding":               {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"RoleBinding":                      {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	"ValidatingAdmissionPolicy":        {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	"ValidatingAdmissionPolicyBinding": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
}

// confine gives learners their role, and takes away what leads out of the cluster.
// The API server enforces a policy some moments after it was written: confine
// waits until it does.
func (in *instance) confine(ctx context.Context) error {
	dyn, err := dynamic.NewForConfig(in.rest(in.record.LabToken))
	if err != nil {
		return err
	}
	objects, err := readObjects(confinement)
	if err != nil {
		return err
	}
	for _, o := range objects {
		gvr, ok := resources[o.GetKind()]
		if !ok {
			return fmt.Errorf("confinement has a %s", o.GetKind())
		}
		client := dynamic.ResourceInterface(dyn.Resource(gvr))
		if ns := o.GetNamespace(); ns != "" {
			client = dyn.Resource(gvr).Namespace(ns)
		}
		if _, err := client.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: labUser, Force: true}); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	api, err := in.admin()
	if err != nil {
		return err
	}
	if err := removeBootstrapTokens(ctx, api); err != nil {
		return err
	}
	learner, err := kubernetes.NewForConfig(in.REST())
	if err != nil {
		return err
	}
	return awaitConfined(ctx, learner)
}

func readObjects(text string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// removeBootstrapTokens removes kind's, which is the same in all clusters: who has one
// becomes a node.
func removeBootstrapTokens(ctx context.Context, api kubernetes.Interface) error {
	return api.CoreV1().Secrets(metav1.NamespaceSystem).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken)})
}

// awaitConfined waits until a Pod that would be root on its node is refused to the learner.
func awaitConfined(ctx context.Context, learner kubernetes.Interface) error {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kubistro-probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "probe", Image: "probe", SecurityContext: &corev1.SecurityContext{Privileged: &yes},
	}}}}
	return awaitThat(ctx, "admission policies aren't enforced", func(ctx context.Context) bool {
		_, err := learner.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), policyPods)
	})
}

// policyPods is the name of the policy for Pods.
const policyPods = "kubistro-pods"
