package kubelet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/yaml"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
	"kubistro/internal/testprocess"
)

// patience bounds every wait: the machine may be busy with others.
const patience = 90 * time.Second

// host is a running cluster host and a client that reaches it.
type host struct {
	dir    string
	cmd    *exec.Cmd
	wait   func() error
	api    *controlapi.Client
	rest   *rest.Config
	client *kubernetes.Clientset
	bridge net.Listener
}

var (
	shared     *host
	sharedErr  error
	sharedOnce sync.Once
)

func TestMain(m *testing.M) {
	code := m.Run()
	if shared != nil {
		shared.stop()
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// cluster is the cluster that the tests of this package share.
func cluster(t *testing.T) *host {
	t.Helper()
	sharedOnce.Do(func() {
		var dir string
		if dir, sharedErr = os.MkdirTemp("", "kubelet"); sharedErr == nil {
			sharedErr = writeSpec(dir)
		}
		if sharedErr == nil {
			shared, sharedErr = start(dir)
		}
	})
	if sharedErr != nil {
		t.Fatal(sharedErr)
	}
	return shared
}

// writeSpec asks for the usual kitchens, the second with GPUs.
func writeSpec(dir string) error {
	spec := lab.DefaultClusterSpec()
	spec.Kitchens[1].Resources = map[string]string{"nvidia.com/gpu": "2"}
	raw, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, controlapi.FileSpec), raw, 0o600)
}

// start runs the cluster host of KUBISTRO_CLUSTERHOST in dir until it is ready.
func start(dir string) (*host, error) {
	program := os.Getenv("KUBISTRO_CLUSTERHOST")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("these tests need the cluster host: build it (make build) and name it in KUBISTRO_CLUSTERHOST: %w", err)
	}
	var out bytes.Buffer
	h := &host{dir: dir, api: controlapi.New(dir), cmd: exec.Command(program, "run", "--dir", dir)}
	h.cmd.Stdout, h.cmd.Stderr = &out, &out
	var err error
	if h.wait, err = testprocess.Start(h.cmd, syscall.SIGKILL); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(2 * time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := h.api.Status(context.Background())
		switch {
		case err == nil && s.Ready:
			return h, h.connect()
		case err == nil && s.Problem != "", time.Now().After(deadline):
			h.kill()
			return nil, fmt.Errorf("the cluster host isn't ready: %s %v\n%s", s.Problem, err, out.String())
		}
		<-tick.C
	}
}

// connect bridges a loopback port to the API's socket: client-go's streams dial by themselves.
func (h *host) connect() (err error) {
	access, err := h.api.Access(context.Background())
	if err != nil {
		return err
	}
	if h.bridge, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	go func() {
		for {
			in, err := h.bridge.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := controlapi.DialSocket(context.Background(), access.Socket)
				if err != nil {
					return
				}
				defer out.Close()
				go func() { io.Copy(out, in); out.Close() }()
				io.Copy(in, out)
			}()
		}
	}()
	h.rest = &rest.Config{
		Host: "https://" + h.bridge.Addr().String(), BearerToken: access.Token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: access.CAPEM, ServerName: access.ServerName},
	}
	h.client, err = kubernetes.NewForConfig(h.rest)
	return err
}

func (h *host) disconnect() {
	if h.bridge != nil {
		h.bridge.Close()
	}
	h.api.Close()
}

// stop is the graceful stop that sleep uses.
func (h *host) stop() {
	h.cmd.Process.Signal(os.Interrupt)
	h.wait()
	h.disconnect()
}

func (h *host) kill() {
	h.cmd.Process.Kill()
	h.wait()
	h.disconnect()
}

// space makes a namespace of the test's own, with a default service account.
func (h *host) space(t *testing.T) string {
	t.Helper()
	ns, err := h.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, h, "serviceaccounts", ns.Name, "default", func(o *corev1.ServiceAccount) string { return "" })
	t.Cleanup(func() {
		h.client.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	})
	return ns.Name
}

// object is what the API gives for a kind.
type object interface {
	*corev1.Pod | *corev1.ServiceAccount | *corev1.Node | *corev1.Event | *corev1.PersistentVolumeClaim | *corev1.PersistentVolume
	metav1.Object
}

// until watches one object until check returns "" for it; check says what is still wrong.
func until[T object](t *testing.T, h *host, resource, namespace, name string, check func(T) string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	wrong := "there is no such object"
	var last T
	for ctx.Err() == nil {
		req := h.client.CoreV1().RESTClient().Get().Resource(resource)
		if namespace != "" {
			req = req.Namespace(namespace)
		}
		w, err := req.VersionedParams(&metav1.ListOptions{Watch: true, FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}, scheme.ParameterCodec).Watch(ctx)
		if err != nil {
			break
		}
		for e := range w.ResultChan() {
			o, ok := e.Object.(T)
			if !ok || e.Type == watch.Deleted {
				continue
			}
			if last, wrong = o, check(o); wrong == "" {
				w.Stop()
				return o
			}
		}
	}
	t.Fatalf("%s %s/%s: %s\n%s", resource, namespace, name, wrong, dump(last))
	return last
}

func dump(o any) string {
	if p, ok := o.(*corev1.Pod); ok && p != nil {
		raw, _ := yaml.Marshal(p.Status)
		return string(raw)
	}
	return ""
}

// pod waits for a state of a Pod.
func (h *host) pod(t *testing.T, ns, name string, check func(*corev1.Pod) string) *corev1.Pod {
	t.Helper()
	return until(t, h, "pods", ns, name, check)
}

// gone waits until a Pod's object is deleted.
func (h *host) gone(t *testing.T, ns, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, err := h.client.CoreV1().Pods(ns).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := h.client.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{}); err != nil {
		return
	}
	for e := range w.ResultChan() {
		if e.Type == watch.Deleted {
			return
		}
	}
	t.Fatalf("pod %s/%s is still there", ns, name)
}

// deadline ends a wait that has no context.
func deadline(t *testing.T) (<-chan struct{}, context.CancelFunc) {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	return ctx.Done(), stop
}

// apply creates the objects of a manifest, Pods and ConfigMaps and Secrets.
func (h *host) apply(t *testing.T, ns, manifest string) {
	t.Helper()
	for _, doc := range strings.Split(manifest, "\n---\n") {
		var kind metav1.TypeMeta
		raw, err := yaml.YAMLToJSONStrict([]byte(strings.ReplaceAll(doc, "\t", "  ")))
		if err == nil {
			err = yaml.Unmarshal(raw, &kind)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		path := fmt.Sprintf("/api/v1/namespaces/%s/%ss", ns, strings.ToLower(kind.Kind))
		if err := h.client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(raw).Do(t.Context()).Error(); err != nil {
			t.Fatalf("%s: %v", kind.Kind, err)
		}
	}
}

// event waits for an Event of a Pod and returns its message.
func (h *host) event(t *testing.T, ns, pod, reason, part string) *corev1.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var seen []string
	w, err := h.client.CoreV1().Events(ns).Watch(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		ev, ok := e.Object.(*corev1.Event)
		if !ok {
			continue
		}
		if ev.Reason == reason && strings.Contains(ev.Message, part) {
			return ev
		}
		seen = append(seen, ev.Reason+": "+ev.Message)
	}
	t.Fatalf("no Event %s with %q; there are\n%s", reason, part, strings.Join(seen, "\n"))
	return nil
}

// exec runs a command in a container as kubectl exec does.
func (h *host) exec(t *testing.T, ns, pod string, stdin io.Reader, tty bool, command ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req := h.client.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdin: stdin != nil, Stdout: true, Stderr: !tty, TTY: tty}, scheme.ParameterCodec)
	e, err := remotecommand.NewSPDYExecutor(h.rest, "POST", req.URL())
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	o := remotecommand.StreamOptions{Stdin: stdin, Stdout: &out, Tty: tty}
	if !tty {
		o.Stderr = &errs
	}
	err = e.StreamWithContext(ctx, o)
	return out.String(), errs.String(), err
}

// mustExec is exec for a command that has to succeed.
func (h *host) mustExec(t *testing.T, ns, pod string, command ...string) string {
	t.Helper()
	out, errs, err := h.exec(t, ns, pod, nil, false, command...)
	if err != nil {
		t.Fatalf("exec %q: %v\n%s%s", command, err, out, errs)
	}
	return out
}

// logs reads a container's output.
func (h *host) logs(t *testing.T, ns, pod string, o corev1.PodLogOptions) string {
	t.Helper()
	stream, err := h.client.CoreV1().Pods(ns).GetLogs(pod, &o).Stream(t.Context())
	if err != nil {
		return err.Error()
	}
	defer stream.Close()
	raw, err := io.ReadAll(stream)
	if err != nil {
		t.Errorf("logs of %s: %v", pod, err)
	}
	return string(raw)
}

// container is the status of a Pod's only container.
func container(p *corev1.Pod) corev1.ContainerStatus {
	if len(p.Status.ContainerStatuses) == 0 {
		return corev1.ContainerStatus{}
	}
	return p.Status.ContainerStatuses[0]
}

func running(p *corev1.Pod) string {
	if p.Status.Phase != corev1.PodRunning || container(p).State.Running == nil {
		return "doesn't run"
	}
	return ""
}

func ready(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return "isn't ready"
}

func over(phase corev1.PodPhase) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if p.Status.Phase != phase {
			return "isn't " + string(phase)
		}
		return ""
	}
}

func waiting(reason string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if w := container(p).State.Waiting; w == nil || w.Reason != reason {
			return "isn't waiting with reason " + reason
		}
		return ""
	}
}

func restarts(n int32) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if c := container(p); c.RestartCount < n || c.State.Running == nil {
			return fmt.Sprintf("hasn't been restarted %d times", n)
		}
		return ""
	}
}

func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Clean(dir)
}
