package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"kubistro/internal/labclient"
	"kubistro/internal/session"
)

// liveLab is a real server with one learner whose cluster is ready.
type liveLab struct {
	*labclient.Learner
	server *labclient.Server
	id     string
}

func openLab(t *testing.T) *liveLab {
	t.Helper()
	program := os.Getenv("KUBISTRO_LABSERVER")
	if program == "" {
		t.Fatal("KUBISTRO_LABSERVER names no labserver: run the tests with make test")
	}
	s, err := labclient.Start(t.Context(), program, "--warm", "0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	l := &liveLab{Learner: s.Learner(), server: s}
	if l.id, err = l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.WaitReady(t.Context(), l.id); err != nil {
		t.Fatal(err)
	}
	return l
}

// hostPID finds the server's only cluster host.
func (l *liveLab) hostPID(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(l.server.Data, "clusters", "*", "pid"))
	if err != nil || len(files) != 1 {
		t.Fatalf("pid files: %v %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		t.Fatalf("%s: %q %v", files[0], text, err)
	}
	return pid
}

type operation struct {
	ID      string
	Done    bool
	Problem any
}

// finished waits for an operation.
func (l *liveLab) finished(t *testing.T, op operation) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !op.Done {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the operation doesn't end")
		}
		if err := l.Call(t.Context(), "GET", "sessions/"+l.id+"/operations/"+op.ID, nil, &op); err != nil {
			t.Fatal(err)
		}
	}
	if op.Problem != nil {
		t.Fatalf("operation: %v", op.Problem)
	}
}

func TestLiveLab(t *testing.T) {
	l := openLab(t)
	ctx := t.Context()
	done := func(name string) bool {
		var list struct {
			Exercises []struct {
				Exercise string
				Done     bool
			}
		}
		if err := l.Call(ctx, "GET", "sessions/"+l.id+"/exercises", nil, &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Exercises {
			if e.Exercise == name {
				return e.Done
			}
		}
		t.Fatalf("no exercise %s in %+v", name, list)
		return false
	}

	t.Run("show me, while a command runs and half a line is typed", func(t *testing.T) {
		term, err := l.Terminal(ctx, l.id, "main")
		if err != nil {
			t.Fatal(err)
		}
		defer term.Close()
		if err := term.Type(ctx, "kubectl get namespaces -w\r"); err != nil {
			t.Fatal(err)
		}
		if _, err := term.Until(ctx, "kube-system", 30*time.Second); err != nil {
			t.Fatal(err)
		}
		if err := term.Type(ctx, "echo half"); err != nil {
			t.Fatal(err)
		}
		const exercise = "one-cook"
		var op, again operation
		if err := l.Call(ctx, "POST", "sessions/"+l.id+"/exercises/"+exercise+"/solve", nil, &op); err != nil {
			t.Fatal(err)
		}
		if err := l.Call(ctx, "POST", "sessions/"+l.id+"/exercises/"+exercise+"/solve", nil, &again); err != nil || again.ID != op.ID {
			t.Errorf("pressed twice: %+v %v, want operation %s", again, err, op.ID)
		}
		if _, err := term.Until(ctx, "kubectl ", 60*time.Second); err != nil {
			t.Errorf("the learner doesn't see it: %v", err)
		}
		l.finished(t, op)
		if !done(exercise) {
			t.Error("the exercise isn't done")
		}
	})

	t.Run("outside kubectl: exec by both protocols", func(t *testing.T) { testOutsideExec(t, l) })

	t.Run("cluster host killed", func(t *testing.T) {
		pid := l.hostPID(t)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := l.WaitState(ctx, l.id, "provisioning"); err != nil {
			t.Fatal(err)
		}
		if err := l.WaitReady(ctx, l.id); err != nil {
			t.Fatal(err)
		}
		if l.hostPID(t) == pid {
			t.Error("the same process")
		}
		term, err := l.Terminal(ctx, l.id, "main")
		if err != nil {
			t.Fatal(err)
		}
		defer term.Close()
		if out, err := term.Run(ctx, "kubectl get pod box"); err != nil || !strings.Contains(out, "Running") {
			t.Errorf("after the restart: %v %s", err, out)
		}
	})
}

// testOutsideExec runs a command in a Pod through the downloaded kubeconfig as it is.
func testOutsideExec(t *testing.T, l *liveLab) {
	ctx := t.Context()
	term, err := l.Terminal(ctx, l.id, "outside")
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	if out, err := term.Run(ctx, "kubectl run box --image=busybox -- sleep 3600 && kubectl wait pod box --for=condition=Ready --timeout=60s"); err != nil || !strings.Contains(out, "condition met") {
		t.Fatalf("Pod: %v %s", err, out)
	}
	server, token, err := l.Kubeconfig(ctx, l.id)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{
		Host: strings.Replace(server, "http://", "https://", 1), BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(l.server.Data, "serving.pem"), ServerName: session.ServerName},
	}
	k, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	url := k.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name("box").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: []string{"sh", "-c", "read x; echo got $x"}, Stdin: true, Stdout: true}, scheme.ParameterCodec).URL()
	for name, open := range map[string]func(*rest.Config) (remotecommand.Executor, error){
		"WebSocket": func(c *rest.Config) (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(c, http.MethodGet, url.String())
		},
		"SPDY": func(c *rest.Config) (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(c, http.MethodPost, url)
		},
	} {
		e, err := open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		// The client still sends when the command has ended: no output may be lost to that.
		var out bytes.Buffer
		err = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("soup\n"), Stdout: &out})
		if err != nil || out.String() != "got soup\n" {
			t.Errorf("%s: %q %v", name, out.String(), err)
		}
	}
}
