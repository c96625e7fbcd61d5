package kubelet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Mistakes that learners make: the cluster shows the symptoms of a real one, and no others.

// addresses waits until a Service's EndpointSlices hold so many ready and unready addresses.
func (h *host) addresses(t *testing.T, ns, service string, ready, unready int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	api := h.client.DiscoveryV1().EndpointSlices(ns)
	selector := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service}
	w, err := api.Watch(ctx, selector)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	r, u := -1, -1
	for range w.ResultChan() {
		list, err := api.List(ctx, selector)
		if err != nil {
			break
		}
		r, u = 0, 0
		for _, s := range list.Items {
			for _, e := range s.Endpoints {
				if e.Conditions.Ready == nil || *e.Conditions.Ready {
					r++
				} else {
					u++
				}
			}
		}
		if len(list.Items) > 0 && r == ready && u == unready {
			return
		}
	}
	t.Fatalf("service %s has %d ready and %d unready addresses, want %d and %d", service, r, u, ready, unready)
}

// guest is a Pod that calls Services.
func (h *host) guest(t *testing.T, ns string) {
	t.Helper()
	h.apply(t, ns, podYAML("guest", `{terminationGracePeriodSeconds: 0, containers: [{name: c, image: curlimages/curl, command: [sleep, "3600"]}]}`))
	h.pod(t, ns, "guest", running)
}

// visit calls a URL and returns the status code, or curl's message.
func (h *host) visit(t *testing.T, ns, url string) string {
	t.Helper()
	out, errs, err := h.exec(t, ns, "guest", nil, false, "curl", "-sS", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", url)
	if err != nil {
		return strings.TrimSpace(errs)
	}
	return out
}

func serviceYAML(name, selector, ports string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {selector: {app: %s}, ports: [%s]}", name, selector, ports)
}

func labelled(name, label, spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {app: %s}}\nspec: %s", name, label, spec)
}

// warnings are all Warning events about a namespace's Pods.
func (h *host) warnings(t *testing.T, ns string) []string {
	t.Helper()
	list, err := h.client.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "type=Warning,involvedObject.kind=Pod"})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, e.InvolvedObject.Kind+" "+e.InvolvedObject.Name+": "+e.Reason+": "+e.Message)
	}
	return out
}

func TestSelectorThatMatchesNothing(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.guest(t, ns)
	h.apply(t, ns, labelled("soup", "soup", `{containers: [{name: c, image: traefik/whoami}]}`))
	h.apply(t, ns, serviceYAML("soup", "soop", "{port: 80}"))
	h.pod(t, ns, "soup", ready)
	h.addresses(t, ns, "soup", 0, 0)
	if got := h.visit(t, ns, "http://soup/"); !strings.Contains(got, "Could not connect to server") {
		t.Errorf("a Service without addresses: %q", got)
	}
	if w := h.warnings(t, ns); len(w) != 0 {
		t.Errorf("nobody complains about a selector; these did: %q", w)
	}
}

func TestPortsThatDoNotMeet(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.guest(t, ns)
	// A declared containerPort is documentation; the application listens where it likes.
	h.apply(t, ns, labelled("menu", "menu", `{containers: [{name: c, image: traefik/whoami, ports: [{containerPort: 9999}]}]}`))
	h.apply(t, ns, serviceYAML("wrong", "menu", "{port: 80, targetPort: 8080}"))
	h.apply(t, ns, serviceYAML("right", "menu", "{port: 80}"))
	h.addresses(t, ns, "wrong", 1, 0)
	h.addresses(t, ns, "right", 1, 0)
	if got := h.visit(t, ns, "http://wrong/"); !strings.Contains(got, "Could not connect to server") {
		t.Errorf("a targetPort where nobody listens: %q", got)
	}
	if got := h.visit(t, ns, "http://right/"); got != "200" {
		t.Errorf("a containerPort that isn't true: %q, want it to make no difference", got)
	}
	if w := h.warnings(t, ns); len(w) != 0 {
		t.Errorf("ports complain: %q", w)
	}
}

func TestPullPolicyDefaults(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	for name, want := range map[string]struct {
		image  string
		policy corev1.PullPolicy
	}{
		"latest": {"busybox:latest", corev1.PullAlways}, "none": {"busybox", corev1.PullAlways}, "tag": {"grill-cook:1.4", corev1.PullIfNotPresent},
	} {
		h.apply(t, ns, podYAML(name, `{terminationGracePeriodSeconds: 0, containers: [{name: c, image: "`+want.image+`", command: [sleep, "600"]}]}`))
		p := h.pod(t, ns, name, func(p *corev1.Pod) string { return "" })
		if got := p.Spec.Containers[0].ImagePullPolicy; got != want.policy {
			t.Errorf("%s: %s, want %s", want.image, got, want.policy)
		}
	}
	h.event(t, ns, "latest", "Pulling", `Pulling image "busybox:latest"`)
	h.event(t, ns, "latest", "Pulled", `Successfully pulled image "busybox:latest"`)
}

func TestProbesThatAreWrong(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, labelled("deaf", "deaf", `{containers: [{name: c, image: traefik/whoami, readinessProbe: {httpGet: {path: /health, port: 8080}, periodSeconds: 1}}]}`))
	h.apply(t, ns, serviceYAML("deaf", "deaf", "{port: 80}"))
	h.apply(t, ns, labelled("killed", "killed", `{terminationGracePeriodSeconds: 1, containers: [{name: c, image: traefik/whoami, livenessProbe: {httpGet: {path: /health, port: 8080}, periodSeconds: 1, failureThreshold: 2}}]}`))
	h.apply(t, ns, labelled("slow", "slow", `{containers: [{name: c, image: busybox, command: [sh, -c, "sleep 4; touch /tmp/ok; sleep 600"], readinessProbe: {exec: {command: [cat, /tmp/ok]}, periodSeconds: 1}}]}`))
	h.apply(t, ns, serviceYAML("slow", "slow", "{port: 80}"))

	e := h.event(t, ns, "deaf", "Unhealthy", "Readiness probe failed: Get \"http://")
	if !strings.Contains(e.Message, ":8080/health\": dial tcp ") || !strings.HasSuffix(e.Message, "connect: connection refused") {
		t.Errorf("the message names address and reason: %q", e.Message)
	}
	if p := h.pod(t, ns, "deaf", running); container(p).Ready || container(p).RestartCount != 0 {
		t.Errorf("readiness alone restarts nothing: %+v", container(p))
	}
	h.addresses(t, ns, "deaf", 0, 1)

	h.event(t, ns, "killed", "Killing", "Container c failed liveness probe, will be restarted")
	p := h.pod(t, ns, "killed", restarts(1))
	if l := container(p).LastTerminationState.Terminated; l == nil {
		t.Error("no last state of a container that a probe ended")
	}
	if got := h.logs(t, ns, "killed", corev1.PodLogOptions{Previous: true}); strings.Contains(strings.ToLower(got), "error") {
		t.Errorf("the application had no fault, its log says %q", got)
	}

	h.event(t, ns, "slow", "Unhealthy", "Readiness probe failed: cat: ")
	h.pod(t, ns, "slow", ready)
	h.addresses(t, ns, "slow", 1, 0)
	if p := h.pod(t, ns, "slow", ready); container(p).RestartCount != 0 {
		t.Errorf("a slow start was restarted: %+v", container(p))
	}
}
