package pantry

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	corev1 "k8s.io/api/core/v1"

	"kubistro/internal/clusterhost/pantry/memfs"
	"kubistro/internal/clusterhost/vnet"
)

// apiServer answers like an API server that knows one token; it is reached as
// example.com, the name in httptest's certificate.
func apiServer(t *testing.T, n *vnet.Network, token func() string) (ca []byte) {
	t.Helper()
	i, err := n.Attach("api", netip.MustParseAddr("10.96.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := i.Listen(":443")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer "+token() {
			w.WriteHeader(http.StatusUnauthorized)
			json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 401, Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized"})
			return
		}
		json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: r.Proto}}}})
	}))
	srv.Listener.Close()
	srv.Listener, srv.EnableHTTP2 = l, true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
}

func mounted(t *testing.T, c *container, files map[string]string) {
	t.Helper()
	root := c.proc.FS.(*memfs.FS)
	for name, data := range files {
		if err := root.WriteFile(path.Join(ServiceAccountDir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInClusterConfig(t *testing.T) {
	n, _ := network(t)
	valid := "first"
	ca := apiServer(t, n, func() string { return valid })
	c := pod(t, n, "toolbox", "10.244.1.2")
	c.proc.Args = []string{"host"}
	clk := clocktesting.NewFakeClock(time.Now())
	c.proc.Clock = clk
	if _, err := c.proc.InClusterConfig(); !errors.Is(err, rest.ErrNotInCluster) {
		t.Errorf("without variables: %v", err)
	}
	c.proc.Env = append(c.proc.Env, "KUBERNETES_SERVICE_HOST=example.com", "KUBERNETES_SERVICE_PORT=443")
	c.network().SetDNS(vnet.DNSConfig{Hosts: map[string][]netip.Addr{"example.com": {netip.MustParseAddr("10.96.0.1")}}})
	if err := c.proc.FS.(*memfs.FS).MkdirAll(ServiceAccountDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := c.proc.InClusterConfig(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a token: %v", err)
	}
	mounted(t, c, map[string]string{"token": "first\n", "ca.crt": string(ca), "namespace": "front"})
	if ns := c.proc.Namespace(); ns != "front" {
		t.Errorf("namespace %q", ns)
	}
	cfg, err := c.proc.InClusterConfig()
	if err != nil {
		t.Fatal(err)
	}
	defer cfg.Transport.(*http.Transport).CloseIdleConnections()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	list := func() string {
		got, err := client.CoreV1().Pods("front").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		return got.Items[0].Name
	}
	if got := list(); got != "HTTP/2.0" {
		t.Errorf("with the token: %s", got)
	}
	// The node replaces the token; the old one is good for a while, then refused.
	mounted(t, c, map[string]string{"token": "second"})
	if got := list(); got != "HTTP/2.0" {
		t.Errorf("while the old token is good: %s", got)
	}
	valid = "second"
	if got := list(); got != "Unauthorized" {
		t.Errorf("first request with the old token: %s", got)
	}
	if got := list(); got != "HTTP/2.0" {
		t.Errorf("after a refusal: %s", got)
	}
	mounted(t, c, map[string]string{"token": "third"})
	clk.Step(2 * tokenPeriod)
	valid = "third"
	if got := list(); got != "HTTP/2.0" {
		t.Errorf("after the period: %s", got)
	}
}

func TestCurlTrustsAFile(t *testing.T) {
	n, _ := network(t)
	ca := apiServer(t, n, func() string { return "good" })
	c := pod(t, n, "curlimages/curl", "10.244.1.3")
	c.network().SetDNS(vnet.DNSConfig{Hosts: map[string][]netip.Addr{"example.com": {netip.MustParseAddr("10.96.0.1")}}})
	if err := c.proc.FS.(*memfs.FS).WriteFile("/tmp/ca.crt", ca, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"https://example.com/api"}, "curl: (60) SSL certificate problem", 60},
		{[]string{"--cacert", "/tmp/none", "https://example.com/api"}, "curl: (77) error adding trust anchors from file: /tmp/none", 77},
		{[]string{"--cacert", "/tmp/ca.crt", "https://example.com/api"}, `"Unauthorized"`, 0},
		{[]string{"--cacert=/tmp/ca.crt", "-H", "Authorization: Bearer good", "https://example.com/api"}, "PodList", 0},
		{[]string{"-k", "--oauth2-bearer", "good", "https://example.com/api"}, "PodList", 0},
	} {
		out, code := c.exec("", append([]string{"curl", "-sS"}, tc.args...)...)
		if code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("curl %q: %d, %s", tc.args, code, out)
		}
	}
}
