package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kubistro/internal/labclient"
)

// liveLab is a real server with one learner whose cluster is ready.
type liveLab struct {
	*labclient.Learner
	server *labclient.Server
	id     string
}

// openLab starts a server with further arguments of serve, and a learner's lab there.
func openLab(t *testing.T, args ...string) *liveLab {
	t.Helper()
	program := os.Getenv("KUBISTRO_LABSERVER")
	if program == "" {
		t.Fatal("KUBISTRO_LABSERVER names no labserver: run the tests with make test")
	}
	s, err := labclient.Start(t.Context(), program, append([]string{"--warm", "0"}, args...)...)
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

// done reports whether an exercise is done.
func (l *liveLab) done(t *testing.T, name string) bool {
	t.Helper()
	var list struct {
		Exercises []struct {
			Exercise string
			Done     bool
		}
	}
	if err := l.Call(t.Context(), "GET", "sessions/"+l.id+"/exercises", nil, &list); err != nil {
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

func TestLiveLab(t *testing.T) {
	l := openLab(t)
	ctx := t.Context()
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
		if !l.done(t, exercise) {
			t.Error("the exercise isn't done")
		}
	})

	t.Run("outside kubectl: exec by both protocols", func(t *testing.T) { testOutsideExec(t, l) })
	t.Run("outside kubectl: attach and logs -f", func(t *testing.T) { testOutsideAttachAndLogs(t, l) })
	t.Run("outside kubectl: port-forward by both protocols", func(t *testing.T) { testOutsidePortForward(t, l) })

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
