package kind

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/embedded"
	"kubistro/internal/lab"
)

// realAPI is a real API server: an embedded cluster's, whose owner may do everything.
func realAPI(t *testing.T) cluster.Instance {
	t.Helper()
	path := os.Getenv("KUBISTRO_CLUSTERHOST")
	if path == "" {
		t.Fatal("KUBISTRO_CLUSTERHOST isn't set: run the tests with make test, or build bin/clusterhost and set it to its path")
	}
	d, err := embedded.New(embedded.Options{Dir: t.TempDir(), Program: path})
	if err != nil {
		t.Fatal(err)
	}
	inst, err := d.Create(t.Context(), "api", lab.ClusterSpec{Kitchens: lab.DefaultClusterSpec().Kitchens[:1]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Delete(context.Background(), "api"); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return inst
}

// as is a configuration that acts as somebody.
func as(cfg *rest.Config, user string, groups ...string) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return c
}

func clientsOf(t *testing.T, cfg *rest.Config) (kubernetes.Interface, dynamic.Interface) {
	t.Helper()
	api, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return api, dyn
}

// TestConfinement tries to leave a cluster in the ways that its administrator has.
func TestConfinement(t *testing.T) {
	inst := realAPI(t)
	admin, adminDyn := clientsOf(t, as(inst.REST(), labUser, adminGroup))
	learner, dyn := clientsOf(t, as(inst.REST(), learnerUser, learnerGroup))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := applyConfinement(ctx, adminDyn, admin, learner); err != nil {
		t.Fatal(err)
	}
	d := &Driver{log: discard}
	follow, stop := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		d.followDefinitions(follow, as(inst.REST(), labUser, adminGroup), "api")
	}()
	defer func() {
		stop()
		<-followed
	}()

	yes := true
	pod := func(name string, change func(*corev1.PodSpec)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}}}
		change(&p.Spec)
		return p
	}
	create := func(p *corev1.Pod) error {
		_, err := learner.CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{})
		return err
	}
	context0 := func(s *corev1.SecurityContext) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) { p.Containers[0].SecurityContext = s }
	}
	storage := func(name string, source corev1.PersistentVolumeSource) error {
		_, err := learner.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, PersistentVolumeSource: source,
		}}, metav1.CreateOptions{})
		return err
	}
	role := func(name string, rule rbacv1.PolicyRule) error {
		_, err := learner.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
		return err
	}
	if err := create(pod("honest", func(*corev1.PodSpec) {})); err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func() error{
		"a privileged container": func() error {
			return create(pod("a", context0(&corev1.SecurityContext{Privileged: &yes})))
		},
		"a privileged init container": func() error {
			return create(pod("b", func(p *corev1.PodSpec) {
				p.InitContainers = []corev1.Container{{Name: "i", Image: "nginx", SecurityContext: &corev1.SecurityContext{Privileged: &yes}}}
			}))
		},
		"a privileged ephemeral container": func() error {
			_, err := learner.CoreV1().Pods("default").Patch(ctx, "honest", types.StrategicMergePatchType,
				[]byte(`{"spec":{"ephemeralContainers":[{"name":"e","image":"nginx","securityContext":{"privileged":true}}]}}`), metav1.PatchOptions{}, "ephemeralcontainers")
			return err
		},
		"the node's network":   func() error { return create(pod("c", func(p *corev1.PodSpec) { p.HostNetwork = true })) },
		"the node's processes": func() error { return create(pod("d", func(p *corev1.PodSpec) { p.HostPID = true })) },
		"the node's disk": func() error {
			return create(pod("e", func(p *corev1.PodSpec) {
				p.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			}))
		},
		"a capability": func() error {
			return create(pod("f", context0(&corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}})))
		},
		"no seccomp": func() error {
			return create(pod("g", context0(&corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}})))
		},
		"a volume of the node's disk": func() error {
			return storage("h", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}})
		},
		"a local volume": func() error {
			return storage("i", corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/"}})
		},
		"a Pod in kube-system": func() error {
			_, err := learner.CoreV1().Pods("kube-system").Create(ctx, pod("j", func(*corev1.PodSpec) {}), metav1.CreateOptions{})
			return err
		},
		"a token of kube-system": func() error {
			_, err := learner.CoreV1().ServiceAccounts("kube-system").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
			return err
		},
		"another kube-proxy": func() error {
			_, err := learner.AppsV1().DaemonSets("kube-system").Patch(ctx, "kube-proxy", types.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"labels":{"x":"y"}}}}}`), metav1.PatchOptions{})
			return err
		},
		"a role for kubelets": func() error {
			return role("k", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/proxy"}, Verbs: []string{"get"}})
		},
		"a role for everything": func() error {
			return role("l", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
		},
		"cluster-admin for oneself": func() error {
			_, err := learner.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "m"},
				RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects: []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: learnerUser}}}, metav1.CreateOptions{})
			return err
		},
		"the end of the policies": func() error {
			return learner.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, policyPods, metav1.DeleteOptions{})
		},
		"a node of one's own": func() error {
			_, err := learner.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
			return err
		},
		"another address of a kubelet": func() error {
			_, err := learner.CoreV1().Nodes().Patch(ctx, "kitchen-1", types.MergePatchType, []byte(`{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}]}}`), metav1.PatchOptions{}, "status")
			return err
		},
		"a conversion webhook": func() error {
			crd := definition("evil.test", "things")
			crd.Object["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1/x"}}}
			_, err := dyn.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
			return err
		},
		"a label that turns a policy off": func() error {
			p := pod("o", context0(&corev1.SecurityContext{Privileged: &yes}))
			_, err := learner.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "free", Labels: map[string]string{
				"pod-security.kubernetes.io/enforce": "privileged", "kubernetes.io/metadata.name": "kube-system"}}}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			_, err = learner.CoreV1().Pods("free").Create(ctx, p, metav1.CreateOptions{})
			return err
		},
	} {
		if err := try(); err == nil || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want it forbidden", what, err)
		}
	}

	// Controllers make Pods for learners, and are no way around.
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "roundabout"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: pod("", context0(&corev1.SecurityContext{Privileged: &yes})).Spec},
	}}
	if _, err := learner.AppsV1().Deployments("default").Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		t.Errorf("a Deployment: %v", err)
	}
	err := awaitThat(ctx, "the Deployment's Pod isn't refused", func(ctx context.Context) bool {
		got, err := learner.AppsV1().Deployments("default").Get(ctx, "roundabout", metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, c := range got.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && strings.Contains(c.Message, "can't be privileged") {
				return true
			}
		}
		return false
	})
	if err != nil {
		t.Error(err)
	}

	for what, try := range map[string]func() error{
		"delete a system Pod": func() error {
			return learner.CoreV1().Pods("kube-system").DeleteCollection(ctx, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
		},
		"scale CoreDNS": func() error {
			s, err := learner.AppsV1().Deployments("kube-system").GetScale(ctx, "coredns", metav1.GetOptions{})
			if err != nil {
				return err
			}
			_, err = learner.AppsV1().Deployments("kube-system").UpdateScale(ctx, "coredns", s, metav1.UpdateOptions{})
			return err
		},
		"label a node": func() error {
			_, err := learner.CoreV1().Nodes().Patch(ctx, "kitchen-1", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}},"spec":{"unschedulable":false}}`), metav1.PatchOptions{})
			return err
		},
		"make a role": func() error {
			return role("reader", rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "deployments"}, Verbs: []string{"*"}})
		},
		"define a resource and use it": func() error {
			if _, err := dyn.Resource(definitions).Create(ctx, definition("menu.test", "dishes"), metav1.CreateOptions{}); err != nil {
				return err
			}
			dish := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "menu.test/v1", "kind": "Thing", "metadata": map[string]any{"name": "soup"}}}
			return awaitThat(ctx, "the resource can't be used", func(ctx context.Context) bool {
				_, err := dyn.Resource(schema.GroupVersionResource{Group: "menu.test", Version: "v1", Resource: "dishes"}).Namespace("default").Create(ctx, dish, metav1.CreateOptions{})
				return err == nil || apierrors.IsAlreadyExists(err)
			})
		},
		"act as a ServiceAccount of default": func() error {
			waiter, _ := clientsOf(t, as(inst.REST(), learnerUser, learnerGroup))
			_, err := waiter.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "waiter"}}, metav1.CreateOptions{})
			return err
		},
	} {
		if err := try(); err != nil {
			t.Errorf("a learner can't %s: %v", what, err)
		}
	}
}

// definition is a small CustomResourceDefinition.
func definition(group, plural string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": plural, "singular": "thing", "kind": "Thing"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		},
	}}
}
