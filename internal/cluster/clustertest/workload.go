package clustertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// pollEvery is how often the suite looks at a cluster that is to change.
const pollEvery = 50 * time.Millisecond

func client(t *testing.T, inst cluster.Instance) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(inst.REST())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// awaitThat polls until ok, and fails with the last reason of a no.
func awaitThat(t *testing.T, within time.Duration, ok func(ctx context.Context) (bool, string)) {
	t.Helper()
	var why string
	err := wait.PollUntilContextTimeout(t.Context(), pollEvery, within, true, func(ctx context.Context) (done bool, _ error) {
		done, why = ok(ctx)
		return done, nil
	})
	if err != nil {
		t.Fatalf("%s (%v)", why, err)
	}
}

func nodeNames(t *testing.T, inst cluster.Instance) []string {
	t.Helper()
	list, err := client(t, inst).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, n := range list.Items {
		out = append(out, n.Name)
		if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			t.Errorf("node %s isn't ready: %+v", n.Name, n.Status.Conditions)
		}
	}
	slices.Sort(out)
	return out
}

func testNodes(t *testing.T, l *life) {
	want := []string{"kitchen-1", "kitchen-2", "kitchen-3", "office"}
	if got := nodeNames(t, l.inst); !slices.Equal(got, want) {
		t.Errorf("nodes = %v, want %v", got, want)
	}
	c := client(t, l.inst)
	n, err := c.CoreV1().Nodes().Get(t.Context(), "kitchen-2", metav1.GetOptions{})
	if err != nil || n.Labels["kitchen"] != "2" {
		t.Errorf("kitchen-2 = %v, %v", n.Labels, err)
	}
	if _, err := c.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// deployment is the suite's workload: two cooks that answer HTTP on port 80.
func deployment() *appsv1.Deployment {
	labels, replicas := map[string]string{"app": "conformance"}, int32(2)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "conformance"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "whoami", Image: "traefik/whoami"}}},
			},
		},
	}
}

func testDeployment(t *testing.T, l *life) {
	if _, err := client(t, l.inst).AppsV1().Deployments("default").Create(t.Context(), deployment(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitDeployment(t, l.inst, l.Within)
}

func awaitDeployment(t *testing.T, inst cluster.Instance, within time.Duration) {
	t.Helper()
	c := client(t, inst)
	awaitThat(t, within, func(ctx context.Context) (bool, string) {
		d, err := c.AppsV1().Deployments("default").Get(ctx, "conformance", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		if d.Status.ReadyReplicas == 2 {
			return true, ""
		}
		return false, fmt.Sprintf("%d of 2 are ready: %s", d.Status.ReadyReplicas, describePods(ctx, c))
	})
}

// describePods says what keeps the workload's Pods from being ready.
func describePods(ctx context.Context, c kubernetes.Interface) string {
	list, err := c.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, p := range list.Items {
		fmt.Fprintf(&out, "\nPod %s on %q: %s", p.Name, p.Spec.NodeName, p.Status.String())
	}
	return out.String()
}

// podIP is the address of a Pod of the workload that answers.
func podIP(t *testing.T, inst cluster.Instance) string {
	t.Helper()
	list, err := client(t, inst).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=conformance"})
	if err != nil || len(list.Items) == 0 || list.Items[0].Status.PodIP == "" {
		t.Fatalf("pods = %+v, %v", list, err)
	}
	return list.Items[0].Status.PodIP
}

func testAudit(t *testing.T, l *life) {
	ctx, cancel := context.WithTimeout(t.Context(), l.Within)
	defer cancel()
	entries, err := l.inst.Audit(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	putNote(t, l.inst, "for-audit")
	want := map[string]func(lab.AuditEntry) bool{
		"learner": func(e lab.AuditEntry) bool { return e.Resource == "configmaps" && e.Object.Name == "for-audit" },
		"system:serviceaccount:kube-system:replicaset-controller": func(e lab.AuditEntry) bool {
			return e.Resource == "pods" && strings.HasPrefix(e.Object.Name, "conformance-")
		},
	}
	last, kept := uint64(0), uint64(0)
	for e := range entries {
		if e.N <= last || e.Code/100 != 2 {
			t.Errorf("entry %+v after number %d", e, last)
		}
		last = e.N
		if match := want[e.User]; match != nil && e.Verb == "create" && match(e) {
			delete(want, e.User)
		}
		if len(want) == 0 {
			kept = last
			break
		}
	}
	if len(want) > 0 {
		t.Fatalf("audit ended without entries of %v", want)
	}
	again, stop := context.WithTimeout(t.Context(), l.Within)
	defer stop()
	rest, err := l.inst.Audit(again, kept-1)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := <-rest; !ok || e.N != kept {
		t.Errorf("first entry after %d = %+v, %v", kept-1, e, ok)
	}
	stop()
	for range rest { // the end of the context closes the stream
	}
}

func testDial(t *testing.T, l *life) {
	ip := podIP(t, l.inst)
	ctx, cancel := context.WithTimeout(t.Context(), l.Within)
	defer cancel()
	transport := &http.Transport{DialContext: l.inst.Dial, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(ip, "80")+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), "Hostname: ") {
		t.Errorf("answer %q, %v", b, err)
	}

	_, err = l.inst.Dial(ctx, "tcp", net.JoinHostPort(ip, "81"))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("port that nobody listens on: %v, want refused", err)
	}
	silent, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	_, err = l.inst.Dial(silent, "tcp", "10.244.9.9:80")
	var ne net.Error
	if errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &ne) || (!ne.Timeout() && !errors.Is(err, syscall.EHOSTUNREACH)) {
		t.Errorf("address that nobody has: %v, want silence or unreachable", err)
	}
	_, err = l.inst.Dial(ctx, "tcp", "no-such-service:80")
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("name that nobody has: %v, want no such host", err)
	}
}

func testDialAPI(t *testing.T, l *life) {
	conn, err := l.inst.DialAPI(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	a, b := l.inst.REST(), l.inst.REST()
	a.BearerToken, a.Host = "spoiled", "spoiled"
	if b.Host == "spoiled" || l.inst.REST().BearerToken == "spoiled" {
		t.Error("REST hands out the same configuration twice")
	}
}

// putNote leaves an object in the cluster.
func putNote(t *testing.T, inst cluster.Instance, name string) {
	t.Helper()
	_, err := client(t, inst).CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"note": name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// note finds an object that putNote left; an error for a real NotFound only.
func note(t *testing.T, inst cluster.Instance, name string) (string, error) {
	t.Helper()
	cm, err := client(t, inst).CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if err != nil {
		return "", err
	}
	return cm.Data["note"], nil
}

func wantNote(t *testing.T, inst cluster.Instance, name string) {
	t.Helper()
	if got, err := note(t, inst, name); err != nil || got != name {
		t.Errorf("note %s = %q, %v", name, got, err)
	}
}

func deleteNote(t *testing.T, inst cluster.Instance, name string) {
	t.Helper()
	if err := client(t, inst).CoreV1().ConfigMaps("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
