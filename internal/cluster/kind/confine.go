package kind

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	admin := in.rest(in.record.LabToken)
	dyn, err := dynamic.NewForConfig(admin)
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	learner, err := kubernetes.NewForConfig(in.REST())
	if err != nil {
		return err
	}
	return applyConfinement(ctx, dyn, api, learner)
}

func applyConfinement(ctx context.Context, dyn dynamic.Interface, api, learner kubernetes.Interface) error {
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
	if err := removeBootstrapTokens(ctx, api); err != nil {
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

// The policies' names.
const (
	policyPods    = "kubistro-pods"
	policySystem  = "kubistro-system"
	policyCluster = "kubistro-cluster"
)

// awaitConfined waits until each policy refuses what the learner tries.
func awaitConfined(ctx context.Context, learner kubernetes.Interface) error {
	const name = "kubistro-probe"
	yes, meta, dry := true, metav1.ObjectMeta{Name: name}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for policy, try := range map[string]func(context.Context) error{
		policyPods: func(ctx context.Context) error {
			_, err := learner.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: name, Image: name, SecurityContext: &corev1.SecurityContext{Privileged: &yes},
			}}}}, dry)
			return err
		},
		policySystem: func(ctx context.Context) error {
			_, err := learner.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, dry)
			return err
		},
		policyCluster: func(ctx context.Context) error {
			_, err := learner.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{ObjectMeta: meta, Spec: corev1.PersistentVolumeSpec{
				Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
			}}, dry)
			return err
		},
	} {
		err := awaitThat(ctx, "policy "+policy+" isn't enforced", func(ctx context.Context) bool {
			err := try(ctx)
			return err != nil && strings.Contains(err.Error(), policy)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
