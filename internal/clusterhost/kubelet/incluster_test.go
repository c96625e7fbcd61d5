package kubelet_test

import (
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Pod talks to the API server as any in-cluster client: by the Service
// kubernetes, with the mounted token, within its ServiceAccount's rights.
func TestAPIServerFromAPod(t *testing.T) {
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: toolbox}
spec:
  containers:
  - {name: c, image: toolbox, command: [sleep, infinity]}
`)
	h.pod(t, ns, "toolbox", running)
	script := `
D=/var/run/secrets/kubernetes.io/serviceaccount
curl -sS --cacert $D/ca.crt -H "Authorization: Bearer $(cat $D/token)" https://kubernetes.default.svc/api/v1/namespaces/$(cat $D/namespace)/pods
`
	curl := func() string { return h.mustExec(t, ns, "toolbox", "sh", "-c", script) }
	want := `pods is forbidden: User \"system:serviceaccount:` + ns + `:default\" cannot list resource \"pods\" in API group \"\" in the namespace \"` + ns + `\"`
	if got := curl(); !strings.Contains(got, want) {
		t.Errorf("without a role: %s", got)
	}
	_, err := h.client.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: ns}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	within(t, func() string {
		if got := curl(); !strings.Contains(got, `"kind": "PodList"`) {
			return "with the role view: " + got
		}
		return ""
	})
	if got := h.mustExec(t, ns, "toolbox", "sh", "-c", `curl -sS -k https://kubernetes.default/api`); !strings.Contains(got, `forbidden: User \"system:anonymous\" cannot get path`) {
		t.Errorf("without a token: %s", got)
	}
	if got := h.mustExec(t, ns, "toolbox", "sh", "-c", `curl -sS https://kubernetes.default/api || echo code $?`); !strings.Contains(got, "code 60") {
		t.Errorf("without the CA: %s", got)
	}
}

// within asks again until check finds nothing wrong.
func within(t *testing.T, check func() string) {
	t.Helper()
	late := time.After(patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		wrong := check()
		if wrong == "" {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(wrong)
		}
	}
}
