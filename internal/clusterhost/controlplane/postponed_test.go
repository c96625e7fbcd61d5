package controlplane

import (
	"context"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/controlapi"
)

// TestPostponedController creates the first policy that the postponed controller is there for.
func TestPostponedController(t *testing.T) {
	const name = names.ValidatingAdmissionPolicyStatusController
	if slices.Contains(shared.manager.names(), name) {
		t.Fatalf("%s works without any policy", name)
	}
	policies := shared.client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "misspelt"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "object.spec.replicass > 1"}},
		},
	}
	if _, err := policies.Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := policies.Delete(context.Background(), policy.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	warned := func() bool {
		w, err := policies.Watch(t.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", policy.Name).String()})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			p, ok := e.Object.(*admissionv1.ValidatingAdmissionPolicy)
			if ok && e.Type != watch.Deleted && p.Status.TypeChecking != nil {
				return len(p.Status.TypeChecking.ExpressionWarnings) == 1 && strings.Contains(p.Status.TypeChecking.ExpressionWarnings[0].Warning, "replicass")
			}
		}
		return false
	}
	if !warned() {
		t.Error("the policy's status doesn't name the misspelt field")
	}
	for _, home := range []bool{true, false} {
		if err := shared.SetLoop(t.Context(), controlapi.LoopRequest{Name: name, Home: home}); err != nil {
			t.Fatal(err)
		}
		if working := slices.Contains(shared.manager.names(), name); working == home {
			t.Errorf("sent home: %v, and works: %v", home, working)
		}
	}
}
