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
	t.Parallel()
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

// kubectl in a container: within the ServiceAccount's rights, on files of the container.
func TestKubectlInAPod(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: toolbox, labels: {app: box}}
spec:
  containers:
  - {name: c, image: toolbox, command: [sleep, infinity]}
`)
	h.pod(t, ns, "toolbox", running)
	sh := func(script string) string {
		out, errs, err := h.exec(t, ns, "toolbox", nil, false, "sh", "-c", script)
		if err != nil {
			out += " " + err.Error()
		}
		return out + errs
	}
	who := "system:serviceaccount:" + ns + ":default"
	if got := sh("kubectl get pods"); !strings.Contains(got, `Error from server (Forbidden): pods is forbidden: User "`+who+`" cannot list resource "pods" in API group "" in the namespace "`+ns+`"`) {
		t.Errorf("without a role: %s", got)
	}
	if got := sh("kubectl auth can-i delete pods; kubectl auth whoami"); !strings.Contains(got, "no\n") || !strings.Contains(got, who) {
		t.Errorf("auth: %s", got)
	}
	_, err := h.client.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "admin"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: ns}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	within(t, func() string {
		if got := sh("kubectl auth can-i delete pods"); got != "yes\n" {
			return "with the role admin: " + got
		}
		return ""
	})
	for _, tc := range []struct{ script, want string }{
		{"kubectl get po --no-headers", "toolbox   1/1   Running   0     "},
		{"kubectl get pods,sa", "NAME          READY   STATUS    RESTARTS   AGE\npod/toolbox   1/1"},
		{"kubectl get pod toolbox -o jsonpath='{.metadata.labels.app}'", "box"},
		{"kubectl get pods -l app=box -o name", "pod/toolbox\n"},
		{"kubectl get pods -l app=none", "No resources found in " + ns + " namespace.\n"},
		{"kubectl get pod nobody; echo code $?", "Error from server (NotFound): pods \"nobody\" not found\n"},
		{"kubectl get nodes", "nodes is forbidden"},
		{"kubectl get gadgets; echo code $?", "code 1\nerror: the server doesn't have a resource type \"gadgets\""},
		{"printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: menu}\\ndata: {soup: tomato}\\n' > /tmp/m.yaml; kubectl apply -f /tmp/m.yaml; kubectl apply -f /tmp/m.yaml; sed -i s/tomato/onion/ /tmp/m.yaml; cat /tmp/m.yaml | kubectl apply -f -; kubectl get cm menu -o jsonpath='{.data.soup}'",
			"configmap/menu created\nconfigmap/menu unchanged\nconfigmap/menu configured\nonion"},
		{"kubectl apply -f /etc/shadow; kubectl apply -f https://example.com/x.yaml", "error: the path \"/etc/shadow\" does not exist\nerror: unable to read URL"},
		{"kubectl label cm menu a=b; kubectl label cm menu a=c; kubectl label cm menu a-; kubectl annotate cm menu x=y", "configmap/menu labeled\nconfigmap/menu labeled\nconfigmap/menu annotated\nerror: 'a' already has a value (b), and --overwrite is false"},
		{"kubectl patch cm menu --type=merge -p '{\"data\":{\"soup\":\"pea\"}}'; kubectl get cm menu -o yaml | grep soup:", "configmap/menu patched\n  soup: pea"},
		{"printf 'apiVersion: apps/v1\\nkind: Deployment\\nmetadata: {name: web}\\nspec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: traefik/whoami}]}}}\\n' | kubectl create -f - && kubectl scale deploy web --replicas=2 && kubectl rollout status deployment/web --timeout=80s && kubectl rollout restart deployment web && kubectl wait --for=condition=Available deployment/web --timeout=80s",
			"deployment.apps/web created\ndeployment.apps/web scaled\n"},
		{"kubectl get deploy web -o jsonpath='{.spec.replicas}'", "2"},
		{"kubectl logs toolbox --tail=1; echo code $?", "code 0"},
		{"kubectl delete deploy/web cm/menu --wait=false", "deployment.apps \"web\" deleted from " + ns + " namespace\nconfigmap \"menu\" deleted from " + ns + " namespace\n"},
		{"kubectl version", "Server Version: v1.37.2"},
		{"kubectl run x --image=y; echo code $?", "isn't among the commands of kubectl in this simulated container"},
		{"env -u KUBERNETES_SERVICE_HOST kubectl get pods; echo code $?", "The connection to the server localhost:8080 was refused"},
	} {
		if got := sh(tc.script); !strings.Contains(got, tc.want) {
			t.Errorf("%s\n got %q\nwant %q", tc.script, got, tc.want)
		}
	}
}
