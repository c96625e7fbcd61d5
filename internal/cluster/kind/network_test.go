package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// TestKindNetwork looks out of a real cluster and into it: guests reach what is public, a Pod reaches its own cluster, and
// nobody in it reaches the machine, its containers or the runtime's bridge.
func TestKindNetwork(t *testing.T) {
	d := realDriver(t)
	inst, err := d.Create(t.Context(), "network", lab.ClusterSpec{Kitchens: lab.DefaultClusterSpec().Kitchens[:1]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Delete(context.WithoutCancel(t.Context()), "network"); err != nil {
			t.Error(err)
		}
	}()
	api, err := kubernetes.NewForConfig(inst.REST())
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "whoami"}
	for _, name := range []string{"one", "two"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "whoami", Image: "traefik/whoami"}}}}
		if _, err := api.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "whoami"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Selector: labels, Ports: []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromInt32(80)}}}}
	if _, err := api.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually := func(what string, ok func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), realWithin)
		defer cancel()
		var last error
		if err := awaitThat(ctx, what, func(ctx context.Context) bool { last = ok(ctx); return last == nil }); err != nil {
			t.Fatalf("%v: %v", err, last)
		}
	}
	ips := map[string]string{}
	eventually("Pods with addresses", func(ctx context.Context) error {
		for _, name := range []string{"one", "two"} {
			p, err := api.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !podReady(p) {
				return fmt.Errorf("Pod %s is %s", name, p.Status.Phase)
			}
			ips[name] = p.Status.PodIP
		}
		return nil
	})
	var balanced string
	eventually("the load balancer's address", func(ctx context.Context) error {
		s, err := api.CoreV1().Services("default").Get(ctx, "whoami", metav1.GetOptions{})
		if err == nil && len(s.Status.LoadBalancer.Ingress) == 0 {
			err = errors.New("it has none")
		}
		if err == nil {
			balanced = net.JoinHostPort(s.Status.LoadBalancer.Ingress[0].IP, "8080")
		}
		return err
	})
	for what, from := range map[string][2]string{
		"a guest":                     {networkStreet, balanced},
		"a guest by a name":           {networkStreet, "menu.example:8080"},
		"the terminal":                {"tcp", balanced},
		"the terminal, by the name":   {"tcp", "whoami:8080"},
		"a Pod, by the load balancer": {networkFrom + ips["one"], balanced},
		"a Pod, by the Service":       {networkFrom + ips["one"], "whoami:8080"},
		"a Pod, another Pod":          {networkFrom + ips["one"], net.JoinHostPort(ips["two"], "80")},
	} {
		eventually(what, func(ctx context.Context) error { return visit(ctx, inst, from[0], from[1]) })
	}
	for what, from := range map[string][2]string{
		"a guest to a Pod": {networkStreet, net.JoinHostPort(ips["one"], "80")}, "a guest to a Service's name": {networkStreet, "whoami:8080"},
		"nobody's Pod": {networkFrom + "10.244.77.77", "whoami:8080"},
	} {
		if err := visit(t.Context(), inst, from[0], from[1]); err == nil {
			t.Errorf("%s gets in", what)
		}
	}

	outside := neighbours(t, d.engine, d.opt)
	// The agents refuse what isn't the cluster's: the node's own curl tries the same.
	nodes := inst.(*instance).known().Nodes
	for what, at := range outside {
		for node, container := range nodes {
			if out, err := inNode(t.Context(), d.engine, container, "curl", "-sS", "-m", "5", "http://"+at); err == nil {
				t.Errorf("node %s reaches %s: %s", node, what, out)
			}
		}
		if out, err := inNode(t.Context(), d.engine, nodes["kitchen-1"], "sh", "-c", netnsScript, "sh", ips["one"], "curl", "-sS", "-m", "5", "http://"+at); err == nil {
			t.Errorf("a Pod reaches %s: %s", what, out)
		}
	}
	// That the same command works from there, and what it looks for is there.
	if out, err := inNode(t.Context(), d.engine, nodes["kitchen-1"], "sh", "-c", netnsScript, "sh", ips["one"], "curl", "-sS", "-m", "60", "http://"+ips["two"]); err != nil || !strings.Contains(out, "Hostname: two") {
		t.Errorf("a Pod reaches another by curl: %q, %v", out, err)
	}
}

// visit asks for a page and fails when nobody answers as whoami does.
func visit(ctx context.Context, inst cluster.Instance, network, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := inst.Dial(ctx, network, address)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && !strings.Contains(string(b), "Hostname: ") {
		err = fmt.Errorf("answer %q", b)
	}
	return err
}

// neighbours are addresses that answer this machine, and must not answer a cluster: a server of the machine's on the bridge of kind's
// network, and a container in the network where other learners' nodes are.
func neighbours(t *testing.T, e engine, o Options) map[string]string {
	t.Helper()
	if _, err := e.run(t.Context(), nil, "load", "-i", o.Archives[0]); err != nil {
		t.Fatal(err)
	}
	const name = "kubistro-test-neighbour"
	_, _ = e.run(t.Context(), nil, "rm", "-f", name) // of a killed run
	if _, err := e.run(t.Context(), nil, "run", "-d", "--name", name, "--network", "kind", "traefik/whoami:latest"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := e.run(context.Background(), nil, "rm", "-f", name); err != nil {
			t.Error(err)
		}
	})
	ip, err := address(t.Context(), e, name)
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := e.run(t.Context(), nil, "network", "inspect", "kind", "--format", "{{range .IPAM.Config}}{{.Gateway}} {{end}}")
	if err != nil {
		t.Fatal(err)
	}
	bridge := ""
	for _, g := range strings.Fields(gateway) {
		if p := net.ParseIP(g); p != nil && p.To4() != nil {
			bridge = g
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(bridge, "0"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Hostname: the machine") })) // ends with l
	}()
	t.Cleanup(func() {
		l.Close()
		<-served
	})
	out := map[string]string{"the machine": l.Addr().String(), "another container": net.JoinHostPort(ip, "80")}
	for what, at := range out {
		ctx, cancel := context.WithTimeout(t.Context(), realWithin)
		err := awaitThat(ctx, what, func(ctx context.Context) bool {
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(mustRequest(t, ctx, at))
			if err != nil {
				return false
			}
			return resp.Body.Close() == nil
		})
		cancel()
		if err != nil {
			t.Fatalf("not even this machine reaches %s: %v", what, err)
		}
	}
	return out
}

func mustRequest(t *testing.T, ctx context.Context, at string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}
