package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"kubistro/internal/session"
)

// outside is the downloaded kubeconfig as it is.
func (l *liveLab) outside(t *testing.T) (*rest.Config, *kubernetes.Clientset) {
	t.Helper()
	server, token, err := l.Kubeconfig(t.Context(), l.id)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{
		Host: strings.Replace(server, "http://", "https://", 1), BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(l.server.Data, "serving.pem"), ServerName: session.ServerName},
	}
	k, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, k
}

// runPod makes a Pod of one container and waits until it is ready.
func runPod(t *testing.T, k kubernetes.Interface, name string, c corev1.Container) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c.Name = name
	pods := k.CoreV1().Pods("default")
	w, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for e := range w.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("watch: %v", e.Object)
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return
			}
		}
	}
	t.Fatalf("Pod %s isn't ready: %v", name, ctx.Err())
}

// podStream is the URL of a subresource that is streamed.
func podStream(k kubernetes.Interface, name, subresource string, options runtime.Object) *rest.Request {
	req := k.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(name).SubResource(subresource)
	if options == nil {
		return req
	}
	return req.VersionedParams(options, scheme.ParameterCodec)
}

// executors are both protocols for exec and attach.
var executors = map[string]func(*rest.Config, *rest.Request) (remotecommand.Executor, error){
	"WebSocket": func(c *rest.Config, r *rest.Request) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(c, http.MethodGet, r.URL().String())
	},
	"SPDY": func(c *rest.Config, r *rest.Request) (remotecommand.Executor, error) {
		return remotecommand.NewSPDYExecutor(c, http.MethodPost, r.URL())
	},
}

// heard is closed when a text has been written.
type heard struct {
	mu   sync.Mutex
	all  bytes.Buffer
	want string
	is   chan struct{}
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all.Write(p)
	if h.want != "" && strings.Contains(h.all.String(), h.want) {
		h.want = ""
		close(h.is)
	}
	return len(p), nil
}

func testOutsideExec(t *testing.T, l *liveLab) {
	cfg, k := l.outside(t)
	runPod(t, k, "box", corev1.Container{Image: "busybox", Command: []string{"sleep", "3600"}})
	for name, open := range executors {
		e, err := open(cfg, podStream(k, "box", "exec", &corev1.PodExecOptions{Command: []string{"sh", "-c", "read x; echo got $x"}, Stdin: true, Stdout: true}))
		if err != nil {
			t.Fatal(err)
		}
		// The client still sends when the command has ended: no output may be lost to that.
		var out bytes.Buffer
		err = e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("soup\n"), Stdout: &out})
		if err != nil || out.String() != "got soup\n" {
			t.Errorf("%s: %q %v", name, out.String(), err)
		}
	}
}

// What is typed into an attached container shows up there and in a followed log, which ends with the Pod.
func testOutsideAttachAndLogs(t *testing.T, l *liveLab) {
	cfg, k := l.outside(t)
	runPod(t, k, "ear", corev1.Container{Image: "busybox", Stdin: true, Command: []string{"sh", "-c", "while read x; do echo got $x; done"}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	log, err := k.CoreV1().Pods("default").GetLogs("ear", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	for name, open := range executors {
		e, err := open(cfg, podStream(k, "ear", "attach", &corev1.PodAttachOptions{Stdin: true, Stdout: true}))
		if err != nil {
			t.Fatal(err)
		}
		in, typed := io.Pipe()
		out := &heard{want: "got " + name, is: make(chan struct{})}
		attached, detach := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- e.StreamWithContext(attached, remotecommand.StreamOptions{Stdin: in, Stdout: out})
		}()
		if _, err := io.WriteString(typed, name+"\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-out.is:
		case err := <-ended:
			t.Errorf("%s: attach ended: %v", name, err)
			ended <- err
		}
		detach()
		typed.Close()
		<-ended
		if !lines.Scan() || lines.Text() != "got "+name {
			t.Fatalf("%s: the followed log says %q %v", name, lines.Text(), lines.Err())
		}
	}
	now := int64(0)
	if err := k.CoreV1().Pods("default").Delete(ctx, "ear", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		t.Errorf("the log goes on: %q", lines.Text())
	}
	if err := lines.Err(); err != nil || ctx.Err() != nil {
		t.Errorf("the log ends with %v, %v, want its own end", err, ctx.Err())
	}
}

// named leaves the dialers' type to inference: its only name is a deprecated one.
func named[T any](overSPDY, overWebSocket T) map[string]T {
	return map[string]T{"SPDY": overSPDY, "WebSocket": overWebSocket}
}

func testOutsidePortForward(t *testing.T, l *liveLab) {
	cfg, k := l.outside(t)
	runPod(t, k, "who", corev1.Container{Image: "traefik/whoami"})
	url := podStream(k, "who", "portforward", nil).URL()
	rt, up, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialer(url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	overSPDY := spdy.NewDialer(up, &http.Client{Transport: rt}, http.MethodPost, url)
	for name, dialer := range named(overSPDY, overWebSocket) {
		t.Run(name, func(t *testing.T) {
			stop, ready := make(chan struct{}), make(chan struct{})
			var says bytes.Buffer
			f, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:80"}, stop, ready, io.Discard, &says)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- f.ForwardPorts() }()
			select {
			case <-ready:
			case err := <-ended:
				t.Fatalf("port-forward ended: %v", err)
			}
			ports, err := f.GetPorts()
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
			for range 3 { // each a connection of its own
				resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || !strings.Contains(string(body), "Hostname: who") {
					t.Errorf("through the port: %q %v", body, err)
				}
			}
			close(stop)
			if err := <-ended; err != nil && !errors.Is(err, portforward.ErrLostConnectionToPod) {
				t.Errorf("port-forward: %v %s", err, says.String())
			}
		})
	}
}
