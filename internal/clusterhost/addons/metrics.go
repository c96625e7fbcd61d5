package addons

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"kubistro/internal/clusterhost/kubelet"
	"kubistro/internal/clusterhost/pantry"
)

// metricsPort is where the metrics server's Pod listens.
const metricsPort = ":10250"

// Nodes gives the nodes that are there now; it must be safe for concurrent use.
type Nodes func() []*kubelet.Kubelet

// Metrics is the aggregated API metrics.k8s.io/v1beta1 over the simulated nodes.
type Metrics struct {
	Nodes Nodes
}

var _ http.Handler = (*Metrics)(nil)

const groupPath = "/apis/metrics.k8s.io/v1beta1"

// Program runs the metrics server in its Pod.
func (m *Metrics) Program(ctx context.Context, p *pantry.Process) int {
	p.Usage.SetMemory(standInMemory)
	cert, err := servingCertificate(p.Clock.Now())
	if err != nil {
		fmt.Fprintf(p.Stderr, "serving certificate: %v\n", err)
		return 1
	}
	l, err := p.Net.Listen(metricsPort)
	if err != nil {
		fmt.Fprintf(p.Stderr, "%v\n", err)
		return 1
	}
	fmt.Fprintf(p.Stdout, "Serving securely on %s; it reads the simulated nodes of this cluster.\n", metricsPort)
	tl := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
	srv := &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(tl)
	}()
	code := waitEnd(ctx, p)
	srv.Close()
	<-done
	return code
}

func servingCertificate(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "metrics-server"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0), DNSNames: []string{"metrics-server.kube-system.svc"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// ServeHTTP answers discovery, lists and single objects as JSON.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case path == "/livez", path == "/readyz", path == "/healthz":
		io.WriteString(w, "ok")
	case r.Method != http.MethodGet:
		fail(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
	case strings.HasPrefix(path, "/openapi/") && serveOpenAPI(w, path):
	case path == "/apis":
		answer(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group()}})
	case path == "/apis/metrics.k8s.io":
		answer(w, group())
	case path == groupPath:
		answer(w, resources())
	case strings.HasPrefix(path, groupPath+"/"):
		m.serve(w, r, strings.Split(strings.TrimPrefix(path, groupPath+"/"), "/"))
	default:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	}
}

// serve answers nodes[/NAME], pods, namespaces/NS/pods[/NAME].
func (m *Metrics) serve(w http.ResponseWriter, r *http.Request, parts []string) {
	q := r.URL.Query()
	sel, err := labels.Parse(q.Get("labelSelector"))
	var field fields.Selector
	if err == nil {
		field, err = fields.ParseSelector(q.Get("fieldSelector"))
	}
	if err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	keep := func(l map[string]string, namespace, name string) bool {
		return sel.Matches(labels.Set(l)) && field.Matches(fields.Set{"metadata.name": name, "metadata.namespace": namespace})
	}
	switch {
	case parts[0] == "nodes" && len(parts) == 1:
		answer(w, metricsv1beta1.NodeMetricsList{TypeMeta: typeMeta("NodeMetricsList"), Items: m.nodes(keep)})
	case parts[0] == "nodes" && len(parts) == 2:
		one(w, m.nodes(func(_ map[string]string, _, name string) bool { return name == parts[1] }), "nodes.metrics.k8s.io", parts[1])
	case parts[0] == "pods" && len(parts) == 1:
		answer(w, metricsv1beta1.PodMetricsList{TypeMeta: typeMeta("PodMetricsList"), Items: m.pods(keep)})
	case parts[0] == "namespaces" && len(parts) == 3 && parts[2] == "pods":
		answer(w, metricsv1beta1.PodMetricsList{TypeMeta: typeMeta("PodMetricsList"), Items: m.pods(func(l map[string]string, ns, name string) bool {
			return ns == parts[1] && keep(l, ns, name)
		})})
	case parts[0] == "namespaces" && len(parts) == 4 && parts[2] == "pods":
		one(w, m.pods(func(_ map[string]string, ns, name string) bool { return ns == parts[1] && name == parts[3] }), "pods.metrics.k8s.io", parts[1]+"/"+parts[3])
	default:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	}
}

func usage(nanoCores, memory int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewScaledQuantity(nanoCores, resource.Nano),
		corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
	}
}

func (m *Metrics) nodes(keep func(map[string]string, string, string) bool) []metricsv1beta1.NodeMetrics {
	out := []metricsv1beta1.NodeMetrics{}
	for _, k := range m.Nodes() {
		u, ok := k.Usage()
		if !ok || !keep(u.Labels, "", u.Node) {
			continue
		}
		out = append(out, metricsv1beta1.NodeMetrics{
			TypeMeta:   typeMeta("NodeMetrics"),
			ObjectMeta: metav1.ObjectMeta{Name: u.Node, Labels: u.Labels, CreationTimestamp: metav1.NewTime(u.Time)},
			Timestamp:  metav1.NewTime(u.Time), Window: metav1.Duration{Duration: u.Window}, Usage: usage(u.NanoCores, u.Memory),
		})
	}
	slices.SortFunc(out, func(a, b metricsv1beta1.NodeMetrics) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (m *Metrics) pods(keep func(map[string]string, string, string) bool) []metricsv1beta1.PodMetrics {
	out := []metricsv1beta1.PodMetrics{}
	for _, k := range m.Nodes() {
		u, ok := k.Usage()
		if !ok {
			continue
		}
		for _, p := range u.Pods {
			if !keep(p.Labels, p.Namespace, p.Name) {
				continue
			}
			pm := metricsv1beta1.PodMetrics{
				TypeMeta:   typeMeta("PodMetrics"),
				ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, CreationTimestamp: metav1.NewTime(u.Time)},
				Timestamp:  metav1.NewTime(u.Time), Window: metav1.Duration{Duration: u.Window},
			}
			for _, c := range p.Containers {
				pm.Containers = append(pm.Containers, metricsv1beta1.ContainerMetrics{Name: c.Name, Usage: usage(c.NanoCores, c.Memory)})
			}
			out = append(out, pm)
		}
	}
	slices.SortFunc(out, func(a, b metricsv1beta1.PodMetrics) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: metricsv1beta1.SchemeGroupVersion.String()}
}

func group() metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: metricsv1beta1.SchemeGroupVersion.String(), Version: "v1beta1"}
	return metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: metricsv1beta1.GroupName,
		Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

func resources() metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: metricsv1beta1.SchemeGroupVersion.String(),
		APIResources: []metav1.APIResource{
			{Name: "nodes", Kind: "NodeMetrics", Verbs: metav1.Verbs{"get", "list"}},
			{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}},
		},
	}
}

func one[T any](w http.ResponseWriter, found []T, what, name string) {
	if len(found) == 0 {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", what, name))
		return
	}
	answer(w, found[0])
}

func answer(w http.ResponseWriter, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(raw)
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	raw, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	})
	if err != nil {
		http.Error(w, message, code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(raw)
}
