package main

import (
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// in runs a command in a new connection to the terminal; it wakes a sleeping cluster.
func (l *liveLab) in(t *testing.T, line string) string {
	t.Helper()
	term, err := l.Terminal(t.Context(), l.id, "main")
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	out, err := term.Run(t.Context(), line)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A killed server leaves its clusters running; the next one takes them over, with all that the learner had.
func TestServerKilled(t *testing.T) {
	l := openLab(t)
	ctx := t.Context()
	if out := l.in(t, "kubectl create configmap kept --from-literal=a=b && echo mine > note.txt"); !strings.Contains(out, "created") {
		t.Fatal(out)
	}
	if err := l.Call(ctx, "POST", "sessions/"+l.id+"/exercises/one-cook/start", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Call(ctx, "PUT", "courses/restaurant/levels/1/quiz/new-pod", map[string][]string{"answer": {"delete"}}, nil); err != nil {
		t.Fatal(err)
	}
	_, before := l.outside(t)
	pid := l.hostPID(t)
	l.server.Kill()
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the cluster host: %v, want it to live on", err)
	}
	if err := l.server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if id, err := l.Open(ctx); err != nil || id != l.id {
		t.Fatalf("session %s %v, want %s again", id, err, l.id)
	}
	if err := l.WaitReady(ctx, l.id); err != nil {
		t.Fatal(err)
	}
	if now := l.hostPID(t); now != pid {
		t.Errorf("the cluster host is process %d, want %d: taken over", now, pid)
	}
	if out := l.in(t, "kubectl get configmap kept -o jsonpath='{.data.a}{\"\\n\"}' && cat note.txt"); !strings.Contains(out, "b\r\nmine\r\n") {
		t.Errorf("after the restart: %q", out)
	}
	if _, err := before.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("a kubeconfig from before: %v", err)
	}
	var list struct {
		Exercises []struct {
			Exercise string
			Started  bool
		}
	}
	if err := l.Call(ctx, "GET", "sessions/"+l.id+"/exercises", nil, &list); err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Exercises {
		if e.Started != (e.Exercise == "one-cook") {
			t.Errorf("%s is started: %v", e.Exercise, e.Started)
		}
	}
	var quiz struct {
		Answers []struct{ Question string }
	}
	if err := l.Call(ctx, "GET", "courses/restaurant/levels/1/quiz", nil, &quiz); err != nil || len(quiz.Answers) != 1 {
		t.Errorf("quiz: %+v %v", quiz, err)
	}
}

// A cluster that nobody uses falls asleep, and wakes for whatever needs it.
func TestSleepAndWake(t *testing.T) {
	l := openLab(t, "--idle", "20s")
	ctx := t.Context()
	if out := l.in(t, "kubectl create configmap kept --from-literal=a=b"); !strings.Contains(out, "created") {
		t.Fatal(out)
	}
	_, k := l.outside(t)
	sleep := func() {
		t.Helper()
		if err := l.WaitState(ctx, l.id, "asleep"); err != nil {
			t.Fatal(err)
		}
	}

	sleep()
	var op operation
	if err := l.Call(ctx, "POST", "sessions/"+l.id+"/exercises/one-cook/solve", nil, &op); err != nil {
		t.Fatal(err)
	}
	l.finished(t, op)
	if !l.done(t, "one-cook") {
		t.Error("solved on a sleeping cluster: the exercise isn't done")
	}

	sleep()
	if out := l.in(t, "kubectl get configmap kept -o jsonpath='{.data.a}{\"\\n\"}'"); !strings.Contains(out, "b\r\n") {
		t.Errorf("a terminal: %q", out)
	}

	sleep()
	if _, err := k.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("an outside client: %v", err)
	}
}
