package controlplane

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientretry "k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// hookRBAC is the API server's own way to make the default roles. It waits a second
// before it begins and makes them one by one, so ensureRBAC takes its place.
const hookRBAC = rbacrest.PostStartHookName

// rbacParallel bounds the requests at a time.
const rbacParallel = 8

// ensureRBAC creates the default roles and bindings that are missing and adds to the
// others what they lack, as every start of an API server does. What upgrades
// from Kubernetes 1.8 need besides isn't done.
func ensureRBAC(ctx context.Context, loopback *rest.Config) error {
	client, err := kubernetes.NewForConfig(loopback)
	if err != nil {
		return fmt.Errorf("default roles: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(rbacParallel)
	do := func(name string, create, reconcile func() error) {
		g.Go(func() error {
			err := create()
			if apierrors.IsAlreadyExists(err) {
				err = clientretry.OnError(clientretry.DefaultBackoff, func(err error) bool {
					return apierrors.IsConflict(err) || apierrors.IsServiceUnavailable(err)
				}, reconcile)
			}
			if err != nil {
				return fmt.Errorf("default role %s: %w", name, err)
			}
			return nil
		})
	}
	have, err := presentRBAC(ctx, client)
	if err != nil {
		return errors.Join(err, g.Wait())
	}
	clusterRoles(ctx, client, have, do)
	clusterBindings(ctx, client, have, do)
	namespaced(ctx, client, do)
	return g.Wait()
}

// rbacNames are the names of the cluster-wide roles and bindings that exist.
type rbacNames struct{ roles, bindings map[string]bool }

func presentRBAC(ctx context.Context, c kubernetes.Interface) (rbacNames, error) {
	have := rbacNames{map[string]bool{}, map[string]bool{}}
	roles, err := c.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return have, fmt.Errorf("default roles: %w", err)
	}
	bindings, err := c.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return have, fmt.Errorf("default roles: %w", err)
	}
	for _, r := range roles.Items {
		have.roles[r.Name] = true
	}
	for _, b := range bindings.Items {
		have.bindings[b.Name] = true
	}
	return have, nil
}

// exists is the answer that a create of something present would give.
func exists(resource, name string) error {
	return apierrors.NewAlreadyExists(rbacv1.Resource(resource), name)
}

type rbacTask = func(name string, create, reconcile func() error)

func clusterRoles(ctx context.Context, c kubernetes.Interface, have rbacNames, do rbacTask) {
	for _, r := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		do(r.Name, func() error {
			if have.roles[r.Name] {
				return exists("clusterroles", r.Name)
			}
			_, err := c.RbacV1().ClusterRoles().Create(ctx, &r, metav1.CreateOptions{})
			return err
		}, func() error {
			_, err := (&reconciliation.ReconcileRoleOptions{
				Role:    reconciliation.ClusterRoleRuleOwner{ClusterRole: &r},
				Client:  reconciliation.ClusterRoleModifier{Client: c.RbacV1().ClusterRoles()},
				Confirm: true,
			}).Run()
			return err
		})
	}
}

func clusterBindings(ctx context.Context, c kubernetes.Interface, have rbacNames, do rbacTask) {
	for _, b := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		do(b.Name, func() error {
			if have.bindings[b.Name] {
				return exists("clusterrolebindings", b.Name)
			}
			_, err := c.RbacV1().ClusterRoleBindings().Create(ctx, &b, metav1.CreateOptions{})
			return err
		}, func() error {
			_, err := (&reconciliation.ReconcileRoleBindingOptions{
				RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &b},
				Client:      reconciliation.ClusterRoleBindingClientAdapter{Client: c.RbacV1().ClusterRoleBindings()},
				Confirm:     true,
			}).Run()
			return err
		})
	}
}

// namespaced reconciles the few roles of kube-system and kube-public; the
// reconciliation creates the namespaces if need be.
func namespaced(_ context.Context, c kubernetes.Interface, do rbacTask) {
	always := func() error { return exists("roles", "") }
	for _, roles := range bootstrappolicy.NamespaceRoles() {
		for _, r := range roles {
			do(r.Name, always, func() error {
				_, err := (&reconciliation.ReconcileRoleOptions{
					Role:    reconciliation.RoleRuleOwner{Role: &r},
					Client:  reconciliation.RoleModifier{Client: c.RbacV1(), NamespaceClient: c.CoreV1().Namespaces()},
					Confirm: true,
				}).Run()
				return err
			})
		}
	}
	for _, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, b := range bindings {
			do(b.Name, always, func() error {
				_, err := (&reconciliation.ReconcileRoleBindingOptions{
					RoleBinding: reconciliation.RoleBindingAdapter{RoleBinding: &b},
					Client:      reconciliation.RoleBindingClientAdapter{Client: c.RbacV1(), NamespaceClient: c.CoreV1().Namespaces()},
					Confirm:     true,
				}).Run()
				return err
			})
		}
	}
}
