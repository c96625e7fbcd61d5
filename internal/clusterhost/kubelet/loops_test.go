package kubelet_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

func (h *host) sendHome(t *testing.T, name string, home bool) {
	t.Helper()
	if err := h.api.SetLoop(t.Context(), controlapi.LoopRequest{Name: name, Home: home}); err != nil {
		t.Fatalf("%s, home %v: %v", name, home, err)
	}
}

func (h *host) scale(t *testing.T, ns, deployment, replicas string) {
	t.Helper()
	if _, err := h.client.AppsV1().Deployments(ns).Patch(t.Context(), deployment, types.MergePatchType, []byte(`{"spec":{"replicas":`+replicas+`}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestControlLoops sends the control loops of one cluster home and calls them back.
func TestControlLoops(t *testing.T) {
	h := startFast(t, 30)
	ns := h.space(t)
	t.Run("scheduler", func(t *testing.T) { schedulerHome(t, h, ns) })
	t.Run("controller manager", func(t *testing.T) { managerHome(t, h, ns) })
	t.Run("one controller", func(t *testing.T) { controllerHome(t, h, ns) })
	t.Run("dns", func(t *testing.T) { dnsHome(t, h, ns) })
	t.Run("kube-proxy", func(t *testing.T) { proxyHome(t, h, ns) })
	t.Run("every controller comes back", func(t *testing.T) { everyController(t, h, ns) })
	t.Run("over a sleep", func(t *testing.T) {
		h.sendHome(t, "kube-scheduler", true)
		h.sendHome(t, "deployment", true)
		h.stop()
		h = startAgain(t, h.dir)
		loops, err := h.api.Loops(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		home := []string{}
		for _, l := range loops {
			if l.Home {
				home = append(home, l.Name)
			}
		}
		if got := strings.Join(home, " "); got != "kube-scheduler deployment-controller" {
			t.Errorf("home after a sleep: %s", got)
		}
		h.deploy(t, ns, "morning", "1", "")
		h.sendHome(t, "kube-scheduler", false)
		h.sendHome(t, "deployment-controller", false)
		h.readyPods(t, ns, "app=morning", 1)
	})
}

func schedulerHome(t *testing.T, h *host, ns string) {
	h.sendHome(t, "kube-scheduler", true)
	h.gone(t, "kube-system", "kube-scheduler-office")
	h.deploy(t, ns, "lunch", "2", "")
	var pods []corev1.Pod
	settles(t, func() string {
		if pods = h.labelled(t, ns, "app=lunch"); len(pods) != 2 {
			return "the controllers make no Pods"
		}
		return ""
	})
	h.apply(t, ns, podYAML("placed", `{nodeName: kitchen-1, containers: [{name: c, image: "grill-cook:1.4"}]}`))
	h.pod(t, ns, "placed", ready)
	for _, p := range h.labelled(t, ns, "app=lunch") {
		if p.Spec.NodeName != "" || len(p.Status.Conditions) > 0 {
			t.Errorf("without a scheduler Pod %s is on %q: %+v", p.Name, p.Spec.NodeName, p.Status.Conditions)
		}
	}
	h.sendHome(t, "kube-scheduler", false)
	h.readyPods(t, ns, "app=lunch", 2)
	h.pod(t, "kube-system", "kube-scheduler-office", ready)
}

func managerHome(t *testing.T, h *host, ns string) {
	pods := h.readyPods(t, ns, "app=lunch", 2)
	h.sendHome(t, "kube-controller-manager", true)
	h.gone(t, "kube-system", "kube-controller-manager-office")
	h.scale(t, ns, "lunch", "3")
	if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), pods[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.gone(t, ns, pods[0].Name) // the kubelet works
	h.apply(t, ns, podYAML("alone", `{containers: [{name: c, image: "grill-cook:1.4"}]}`))
	h.pod(t, ns, "alone", ready) // so does the scheduler
	if got := h.labelled(t, ns, "app=lunch"); len(got) != 1 || got[0].Name != pods[1].Name {
		t.Errorf("without controllers there are %d Pods", len(got))
	}
	loops, err := h.api.Loops(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range loops {
		if l.Part == lab.LoopController && !l.Home {
			t.Errorf("%s works without the controller manager", l.Name)
		}
	}
	h.sendHome(t, "kube-controller-manager", false)
	h.readyPods(t, ns, "app=lunch", 3)
	h.pod(t, "kube-system", "kube-controller-manager-office", ready)
}

func controllerHome(t *testing.T, h *host, ns string) {
	if err := h.api.SetLoop(t.Context(), controlapi.LoopRequest{Name: "no-such-controller", Home: true}); controlapi.StatusOf(err) != 404 {
		t.Errorf("an unknown loop: %v", err)
	}
	h.sendHome(t, "deployment", true) // by its alias
	h.deploy(t, ns, "dinner", "1", "")
	pods := h.readyPods(t, ns, "app=lunch", 3)
	if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), pods[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.gone(t, ns, pods[0].Name)
	h.readyPods(t, ns, "app=lunch", 3) // the ReplicaSet's controller works
	sets, err := h.client.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=dinner"})
	if err != nil || len(sets.Items) != 0 {
		t.Errorf("without its controller a Deployment has %d ReplicaSets, %v", len(sets.Items), err)
	}
	h.sendHome(t, "deployment-controller", false)
	h.readyPods(t, ns, "app=dinner", 1)
	h.pod(t, "kube-system", "kube-controller-manager-office", ready) // it never went
}

func dnsHome(t *testing.T, h *host, ns string) {
	h.apply(t, ns, podYAML("asks", `{containers: [{name: c, image: busybox, command: [sleep, "3600"]}]}`))
	h.pod(t, ns, "asks", running)
	ask := func() error {
		_, _, err := h.exec(t, ns, "asks", nil, false, "nslookup", "kubernetes.default.svc.cluster.local")
		return err
	}
	settles(t, func() string { return errText(ask()) })
	h.sendHome(t, "coredns", true)
	h.readyPods(t, "kube-system", "k8s-app=kube-dns", 0)
	settles(t, func() string {
		if ask() == nil {
			return "names are still answered"
		}
		return ""
	})
	h.sendHome(t, "coredns", false)
	h.readyPods(t, "kube-system", "k8s-app=kube-dns", 2)
	settles(t, func() string { return errText(ask()) })
}

func proxyHome(t *testing.T, h *host, ns string) {
	service := func(name string) string {
		t.Helper()
		h.apply(t, ns, "apiVersion: v1\nkind: Service\nmetadata: {name: "+name+"}\nspec: {selector: {app: lunch}, ports: [{port: 80, targetPort: 8080}]}")
		s, err := h.client.CoreV1().Services(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s.Spec.ClusterIP
	}
	visit := func(ip string) string {
		_, _, err := h.exec(t, ns, "asks", nil, false, "wget", "-q", "-T", "2", "-O", "/dev/null", "http://"+ip+"/healthz")
		return errText(err)
	}
	old := service("old")
	settles(t, func() string { return visit(old) })
	h.sendHome(t, "kube-proxy", true)
	h.readyPods(t, "kube-system", "k8s-app=kube-proxy", 0)
	settles(t, func() string {
		if n := len(h.labelled(t, "kube-system", "k8s-app=kube-proxy")); n > 0 {
			return "kube-proxy is still ending"
		}
		return ""
	})
	if wrong := visit(old); wrong != "" {
		t.Errorf("the rules that were written don't work any more: %s", wrong)
	}
	young := service("young")
	settles(t, func() string {
		l, err := h.client.DiscoveryV1().EndpointSlices(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=young"})
		if err != nil || len(l.Items) == 0 || len(l.Items[0].Endpoints) != 3 {
			return "no endpoints yet"
		}
		return ""
	})
	if visit(young) == "" {
		t.Error("a Service that came after kube-proxy had gone is reached")
	}
	h.sendHome(t, "kube-proxy", false)
	h.readyPods(t, "kube-system", "k8s-app=kube-proxy", 4)
	settles(t, func() string { return visit(young) })
}

// everyController sends each controller home by itself and calls it back, then looks whether
// what they do together still works.
func everyController(t *testing.T, h *host, ns string) {
	loops, err := h.api.Loops(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range loops {
		if l.Part == lab.LoopController {
			h.sendHome(t, l.Name, true)
			h.sendHome(t, l.Name, false)
			n++
		}
	}
	if n < 30 {
		t.Errorf("only %d controllers", n)
	}
	h.deploy(t, ns, "supper", "1", "")
	p := h.readyPods(t, ns, "app=supper", 1)[0]
	h.create(t, "/apis/batch/v1/namespaces/"+ns+"/jobs", `{apiVersion: batch/v1, kind: Job, metadata: {name: wash}, spec: {template: {metadata: {labels: {app: wash}}, spec: {restartPolicy: Never, containers: [{name: c, image: busybox, command: ["true"]}]}}}}`)
	settles(t, func() string {
		j, err := h.client.BatchV1().Jobs(ns).Get(t.Context(), "wash", metav1.GetOptions{})
		if err != nil || j.Status.Succeeded != 1 {
			return "the Job isn't done: " + errText(err)
		}
		return ""
	})
	if err := h.client.AppsV1().Deployments(ns).Delete(t.Context(), "supper", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.gone(t, ns, p.Name) // garbage collection
	space, err := h.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "short-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, h, "serviceaccounts", space.Name, "default", func(*corev1.ServiceAccount) string { return "" })
	if err := h.client.CoreV1().Namespaces().Delete(t.Context(), space.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	settles(t, func() string {
		if _, err := h.client.CoreV1().Namespaces().Get(t.Context(), space.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return "the namespace is still there"
		}
		return ""
	})
	if err := h.api.Power(t.Context(), controlapi.PowerRequest{Node: "kitchen-2"}); err != nil {
		t.Fatal(err)
	}
	h.node(t, "kitchen-2", nodeIs(corev1.ConditionUnknown, corev1.TaintNodeUnreachable))
	settles(t, func() string { // taint eviction
		for _, p := range h.labelled(t, ns, "app=lunch") {
			if p.Spec.NodeName == "kitchen-2" && p.DeletionTimestamp == nil {
				return p.Name + " isn't evicted"
			}
		}
		return ""
	})
	if err := h.api.Power(t.Context(), controlapi.PowerRequest{Node: "kitchen-2", On: true}); err != nil {
		t.Fatal(err)
	}
	h.node(t, "kitchen-2", nodeIs(corev1.ConditionTrue, ""))
	h.readyPods(t, ns, "app=lunch", 3)
}
