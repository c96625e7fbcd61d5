package kind

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// customRole gives learners what they define themselves. RBAC can't say "all but": the
// resources of CustomResourceDefinitions are added as they appear.
const customRole = "kubistro:custom"

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// followDefinitions keeps customRole until ctx ends.
func (d *Driver) followDefinitions(ctx context.Context, cfg *rest.Config, id string) {
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		d.log.Error("custom resources aren't followed", "cluster", id, "err", err)
		return
	}
	api, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		d.log.Error("custom resources aren't followed", "cluster", id, "err", err)
		return
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0)
	informer := factory.ForResource(definitions).Informer()
	// Names are all that is needed of what may be a megabyte.
	if err := informer.SetTransform(reduceDefinition); err != nil {
		d.log.Error("custom resources aren't followed", "cluster", id, "err", err)
		return
	}
	kick := make(chan struct{}, 1)
	changed := func() {
		select {
		case kick <- struct{}{}:
		default:
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		d.log.Error("custom resources aren't followed", "cluster", id, "err", err)
		return
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for {
		select {
		case <-kick:
		case <-ctx.Done():
			return
		}
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return
		}
		if err := writeCustomRole(ctx, api, informer.GetStore().List()); err != nil && ctx.Err() == nil {
			d.log.Warn("role for custom resources", "cluster", id, "err", err)
		}
	}
}

func reduceDefinition(o any) (any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetName(u.GetName())
	for _, path := range [][]string{{"spec", "group"}, {"spec", "names", "plural"}} {
		if s, found, err := unstructured.NestedString(u.Object, path...); err == nil && found {
			if err := unstructured.SetNestedField(out.Object, s, path...); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// customRules are the rules for definitions. Groups of Kubernetes' own aren't among them: a
// definition may name one, and the rule would be for what is really there.
func customRules(list []any) []rbacv1.PolicyRule {
	groups := map[string][]string{}
	for _, o := range list {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
		if !strings.Contains(group, ".") || plural == "" || strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".kubernetes.io") {
			continue
		}
		groups[group] = append(groups[group], plural, plural+"/status", plural+"/scale")
	}
	rules := []rbacv1.PolicyRule{}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		slices.Sort(groups[g])
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{g}, Resources: groups[g],
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}})
	}
	return rules
}

func writeCustomRole(ctx context.Context, api kubernetes.Interface, list []any) error {
	role, err := json.Marshal(rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: customRole}, Rules: customRules(list),
	})
	if err != nil {
		return err
	}
	force := true
	_, err = api.RbacV1().ClusterRoles().Patch(ctx, customRole, "application/apply-patch+yaml", role, metav1.PatchOptions{FieldManager: labUser, Force: &force})
	return err
}
