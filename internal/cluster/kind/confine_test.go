package kind

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestLearnersRoleHasNoWayOut(t *testing.T) {
	objects, err := readObjects(confinement)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	var role rbacv1.ClusterRole
	for _, o := range objects {
		kinds[o.GetKind()]++
		if _, ok := resources[o.GetKind()]; !ok {
			t.Errorf("nobody knows where a %s is written to", o.GetKind())
		}
		if o.GetKind() == "ClusterRole" && o.GetName() == "kubistro:learner" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
				t.Fatal(err)
			}
		}
	}
	if kinds["ValidatingAdmissionPolicy"] != 3 || kinds["ValidatingAdmissionPolicyBinding"] != 3 {
		t.Errorf("objects = %v", kinds)
	}
	may := func(group, resource, verb string) bool {
		for _, r := range role.Rules {
			if (slices.Contains(r.APIGroups, group) || slices.Contains(r.APIGroups, "*")) && (slices.Contains(r.Resources, resource) || slices.Contains(r.Resources, "*")) &&
				(slices.Contains(r.Verbs, verb) || slices.Contains(r.Verbs, "*")) {
				return true
			}
		}
		return false
	}
	for _, x := range [][3]string{
		{"", "nodes/proxy", "get"}, {"", "nodes/proxy", "create"}, {"", "nodes", "create"}, {"", "nodes", "proxy"}, {"", "nodes/status", "patch"}, {"", "pods/status", "patch"},
		{"", "users", "impersonate"}, {"", "groups", "impersonate"}, {"", "serviceaccounts", "impersonate"},
		{"rbac.authorization.k8s.io", "clusterroles", "escalate"}, {"rbac.authorization.k8s.io", "clusterroles", "bind"},
		{"admissionregistration.k8s.io", "validatingadmissionpolicies", "delete"}, {"admissionregistration.k8s.io", "validatingwebhookconfigurations", "create"},
		{"apiregistration.k8s.io", "apiservices", "create"}, {"certificates.k8s.io", "certificatesigningrequests/approval", "update"},
		{"certificates.k8s.io", "signers", "approve"}, {"certificates.k8s.io", "clustertrustbundles", "create"},
	} {
		if may(x[0], x[1], x[2]) {
			t.Errorf("a learner may %s %s of %q", x[2], x[1], x[0])
		}
	}
	for _, x := range [][3]string{
		{"", "pods", "create"}, {"", "pods/exec", "create"}, {"", "pods/exec", "get"}, {"", "nodes", "patch"}, {"", "namespaces", "delete"}, {"apps", "deployments", "create"}, {"apps", "deployments/scale", "patch"},
		{"rbac.authorization.k8s.io", "clusterroles", "create"}, {"networking.k8s.io", "ingresses", "create"}, {"admissionregistration.k8s.io", "validatingadmissionpolicies", "get"},
		{"apiextensions.k8s.io", "customresourcedefinitions", "create"}, {"batch", "cronjobs", "create"}, {"policy", "poddisruptionbudgets", "create"},
	} {
		if !may(x[0], x[1], x[2]) {
			t.Errorf("a learner may not %s %s of %q", x[2], x[1], x[0])
		}
	}
}

func TestCustomRulesLeaveKubernetesGroupsOut(t *testing.T) {
	crd := func(group, plural string) any {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"group": group, "names": map[string]any{"plural": plural}, "versions": []any{"much"}}}}
	}
	var list []any
	for _, o := range []any{
		crd("kubistro.test", "menus"), crd("kubistro.test", "dishes"), crd("admissionregistration.k8s.io", "validatingadmissionpolicies"),
		crd("rbac.authorization.k8s.io", "clusterroles"), crd("apps", "deployments"), crd("x.kubernetes.io", "y"), crd("other.example", "things"),
	} {
		r, err := reduceDefinition(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, found, _ := unstructured.NestedFieldNoCopy(r.(*unstructured.Unstructured).Object, "spec", "versions"); found {
			t.Error("the schema is kept")
		}
		list = append(list, r)
	}
	got := map[string][]string{}
	for _, r := range customRules(list) {
		got[r.APIGroups[0]] = r.Resources
	}
	want := map[string][]string{
		"kubistro.test": {"dishes", "dishes/scale", "dishes/status", "menus", "menus/scale", "menus/status"},
		"other.example": {"things", "things/scale", "things/status"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// allowed walks through the rules as a packet does.
func allowed(t *testing.T, rules, from, to string) bool {
	t.Helper()
	in := func(cidr, ip string) bool {
		if !strings.Contains(cidr, "/") {
			return cidr == ip
		}
		_, n, err := net.ParseCIDR(cidr)
		if err != nil {
			t.Fatal(err)
		}
		return n.Contains(net.ParseIP(ip))
	}
	for _, line := range strings.Split(rules, "\n") {
		f := strings.Fields(line)
		if len(f) < 6 || f[0] != "-A" || f[2] == "-m" {
			continue
		}
		if f[2] == "-d" && in(f[3], to) || f[2] == "-s" && in(f[3], from) {
			return f[5] == "RETURN"
		}
	}
	return true
}

func TestFilterClosesTheNetwork(t *testing.T) {
	rules := filterRules([]string{"172.18.0.2", "172.18.0.3"})
	const node, pod = "172.18.0.2", "10.244.1.5"
	for _, tc := range []struct {
		from, to string
		want     bool
	}{
		{pod, "10.244.2.7", true}, {pod, "172.18.0.2", true}, {pod, "10.96.0.99", false}, {node, "10.96.0.99", false},
		{pod, "172.18.0.1", false}, {pod, "172.18.0.4", false}, {pod, "192.168.1.1", false}, {pod, "169.254.169.254", false}, {pod, "8.8.8.8", false},
		{node, "172.18.0.3", true}, {node, "8.8.8.8", true}, {node, "172.18.0.1", false}, {node, "172.18.0.4", false}, {node, "10.0.0.1", false}, {node, "169.254.169.254", false},
	} {
		if got := allowed(t, rules, tc.from, tc.to); got != tc.want {
			t.Errorf("from %s to %s: allowed is %v", tc.from, tc.to, got)
		}
	}
}
