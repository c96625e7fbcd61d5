package host_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/lessons"
)

// patience bounds every wait: the machine may be busy with others.
const patience = 3 * time.Minute

// lab is a running cluster and clients that reach it.
type lab struct {
	dir     string
	cmd     *exec.Cmd
	api     *controlapi.Client
	rest    *rest.Config
	client  *kubernetes.Clientset
	objects dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

var (
	shared     *lab
	sharedErr  error
	sharedOnce sync.Once
)

func TestMain(m *testing.M) {
	code := m.Run()
	if shared != nil {
		shared.stop()
	}
	os.Exit(code)
}

// cluster is the cluster that the tests of this package share, with the controller installed.
func cluster(t *testing.T) *lab {
	t.Helper()
	sharedOnce.Do(func() {
		if shared, sharedErr = start(); sharedErr != nil {
			return
		}
		for _, file := range []string{"shared/gateway-api/crds.yaml", "shared/host/gateway.yaml"} {
			if sharedErr = shared.applyFile(file); sharedErr != nil {
				return
			}
		}
	})
	if sharedErr != nil {
		t.Fatal(sharedErr)
	}
	shared.rolledOut(t, "host", "host")
	return shared
}

// start runs the cluster host of KUBISTRO_CLUSTERHOST until it is ready.
func start() (*lab, error) {
	program := os.Getenv("KUBISTRO_CLUSTERHOST")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("these tests need the cluster host: build it (make build) and name it in KUBISTRO_CLUSTERHOST: %w", err)
	}
	dir, err := os.MkdirTemp("", "host")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	l := &lab{dir: dir, api: controlapi.New(dir), cmd: exec.Command(program, "run", "--dir", dir)}
	l.cmd.Stdout, l.cmd.Stderr = &out, &out
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := l.api.Status(context.Background())
		switch {
		case err == nil && s.Ready:
			return l, l.connect()
		case err == nil && s.Problem != "", time.Now().After(deadline):
			l.stop()
			return nil, fmt.Errorf("the cluster host isn't ready: %s %v\n%s", s.Problem, err, out.String())
		}
		<-tick.C
	}
}

func (l *lab) stop() {
	l.cmd.Process.Signal(os.Interrupt)
	l.cmd.Wait()
	l.api.Close()
	os.RemoveAll(l.dir)
}

func (l *lab) connect() error {
	access, err := l.api.Access(context.Background())
	if err != nil {
		return err
	}
	l.rest = access.RESTConfig()
	l.rest.QPS = -1
	if l.client, err = kubernetes.NewForConfig(l.rest); err != nil {
		return err
	}
	if l.objects, err = dynamic.NewForConfig(l.rest); err != nil {
		return err
	}
	l.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(l.client.Discovery()))
	return nil
}

// applyFile applies a manifest that lessons use.
func (l *lab) applyFile(name string) error {
	raw, err := fs.ReadFile(lessons.FS, name)
	if err != nil {
		return err
	}
	return l.apply(context.Background(), "default", string(raw))
}

// apply is kubectl apply --server-side; a kind whose CRD was just made may take a moment.
func (l *lab) apply(ctx context.Context, ns, manifest string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for dec := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := dec.Decode(o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(o.Object) == 0 {
			continue
		}
		r, err := l.resource(o.GroupVersionKind(), ns, o.GetNamespace())
		for meta.IsNoMatchError(err) && ctx.Err() == nil {
			l.mapper.Reset()
			r, err = l.resource(o.GroupVersionKind(), ns, o.GetNamespace())
		}
		for err == nil {
			_, err = r.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true})
			if err == nil || !apierrors.IsNotFound(err) || ctx.Err() != nil {
				break
			}
			err = nil
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
}

func (l *lab) resource(gvk schema.GroupVersionKind, ns, own string) (dynamic.ResourceInterface, error) {
	m, err := l.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return l.objects.Resource(m.Resource), nil
	}
	if own != "" {
		ns = own
	}
	return l.objects.Resource(m.Resource).Namespace(ns), nil
}

func (l *lab) mustApply(t *testing.T, ns, manifest string) {
	t.Helper()
	if err := l.apply(t.Context(), ns, manifest); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
}

// space makes a namespace of the test's own.
func (l *lab) space(t *testing.T) string {
	t.Helper()
	ns, err := l.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.client.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	})
	return ns.Name
}

// object reads one object into out; false while there is none.
func (l *lab) object(t *testing.T, apiVersion, kind, ns, name string, out any) bool {
	t.Helper()
	r, err := l.resource(schema.FromAPIVersionAndKind(apiVersion, kind), ns, ns)
	if err != nil {
		t.Fatal(err)
	}
	o, err := r.Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// patch changes an object by a JSON merge patch.
func (l *lab) patch(t *testing.T, apiVersion, kind, ns, name, patch string) {
	t.Helper()
	r, err := l.resource(schema.FromAPIVersionAndKind(apiVersion, kind), ns, ns)
	if err == nil {
		_, err = r.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// until repeats check until it returns "": what is still wrong. For what can't be watched.
func until(t *testing.T, check func() string) {
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
		case <-late:
			t.Fatal(wrong)
		case <-t.Context().Done():
			t.Fatal(wrong)
		case <-tick.C:
		}
	}
}

// rolledOut waits until a Deployment is as it is written.
func (l *lab) rolledOut(t *testing.T, ns, name string) {
	t.Helper()
	until(t, func() string {
		d, err := l.client.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.AvailableReplicas != *d.Spec.Replicas || s.Replicas != *d.Spec.Replicas {
			return fmt.Sprintf("%s isn't rolled out: %+v", name, s)
		}
		return ""
	})
}

// answer is what a visit gave.
type answer struct {
	code   int
	body   string
	header http.Header
	peer   string // name of the TLS certificate
	err    error
}

func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprintf("%d %q", a.code, a.body)
}

// door is where the controller's Service is reached from the street.
const door = "host.host.svc.cluster.local"

// visit asks the controller for a URL; each visit is a connection of its own.
func (l *lab) visit(ctx context.Context, method, url string, header ...string) answer {
	u, host, ok := strings.Cut(url, "://")
	if !ok {
		return answer{err: fmt.Errorf("%q is no URL", url)}
	}
	name, path, _ := strings.Cut(host, "/")
	req, err := http.NewRequestWithContext(ctx, method, u+"://"+door+"/"+path, nil)
	if err != nil {
		return answer{err: err}
	}
	req.Host = name
	for _, h := range header {
		k, v, _ := strings.Cut(h, ": ")
		req.Header.Set(k, v)
	}
	serverName, _, _ := strings.Cut(name, ":")
	tr := &http.Transport{DialContext: l.api.Dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: serverName}}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	a := answer{code: res.StatusCode, body: string(body), header: res.Header, err: err}
	if res.TLS != nil {
		a.peer = res.TLS.PeerCertificates[0].Subject.CommonName
	}
	return a
}

func (l *lab) get(t *testing.T, url string, header ...string) answer {
	t.Helper()
	return l.visit(t.Context(), http.MethodGet, url, header...)
}

// comes waits until a URL is answered with a code and a body that contains part.
func (l *lab) comes(t *testing.T, url string, code int, part string, header ...string) answer {
	t.Helper()
	var a answer
	until(t, func() string {
		if a = l.get(t, url, header...); a.code != code || !strings.Contains(a.body, part) {
			return fmt.Sprintf("GET %s %v: %s, want %d with %q\n%s", url, header, a, code, part, l.logs("host", "app.kubernetes.io/name=host"))
		}
		return ""
	})
	return a
}

// logs are the last lines of the Pods with a label.
func (l *lab) logs(ns, selector string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pods, err := l.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	lines := int64(40)
	for _, p := range pods.Items {
		raw, err := l.client.CoreV1().Pods(ns).GetLogs(p.Name, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(ctx)
		fmt.Fprintf(&b, "--- %s %v\n%s", p.Name, err, raw)
	}
	return b.String()
}
