package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/testprocess"
)

// runsHost makes the test program be clusterhost itself, so that these tests run
// what they were compiled from.
const runsHost = "KUBISTRO_TEST_RUNS_HOST"

func TestMain(m *testing.M) {
	if os.Getenv(runsHost) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is a clusterhost that runs.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	client *controlapi.Client
	stderr *bytes.Buffer
	ended  chan struct{}
}

// begin starts the program in dir and waits for nothing.
func begin(t *testing.T, dir string, flags ...string) *process {
	t.Helper()
	p := &process{t: t, client: controlapi.New(dir), stderr: new(bytes.Buffer), ended: make(chan struct{})}
	p.cmd = exec.Command(program(t), append([]string{"run", "--dir", dir}, flags...)...)
	p.cmd.Env = append(os.Environ(), runsHost+"=1")
	p.cmd.Stderr = p.stderr
	wait, err := testprocess.Start(p.cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	go func() { wait(); close(p.ended) }()
	t.Cleanup(func() {
		p.client.Close()
		p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("log of the host:\n%s", p.stderr)
		}
	})
	return p
}

// program is the built clusterhost where there is one (it has the version in it),
// else this test program.
func program(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("KUBISTRO_CLUSTERHOST"); p != "" {
		return p
	}
	p, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// until polls the status until is holds.
func (p *process) until(what string, is func(controlapi.Status) bool) controlapi.Status {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := p.client.Status(ctx)
		if err == nil && is(s) {
			return s
		}
		select {
		case <-tick.C:
		case <-p.ended:
			p.t.Fatalf("%s: the host has ended: %v", what, p.cmd.ProcessState)
		case <-ctx.Done():
			p.t.Fatalf("%s: %+v %v", what, s, err)
		}
	}
}

func isReady(s controlapi.Status) bool { return s.Ready }

// exit waits for the end and returns the exit code.
func (p *process) exit(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(within):
		p.t.Fatalf("the host still runs after %v", within)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) kubernetes() *kubernetes.Clientset {
	p.t.Helper()
	c, err := p.client.RESTConfig(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(c)
}

// TestLife follows a cluster: start, sleep, wake, kill, start again.
func TestLife(t *testing.T) {
	dir := t.TempDir()
	p := begin(t, dir)
	early := p.until("the first answer", func(controlapi.Status) bool { return true })
	if early.Ready || early.PID != p.cmd.Process.Pid {
		t.Errorf("the first status: %+v", early)
	}
	s := p.until("ready", isReady)
	var names []string
	for _, st := range s.Stages {
		names = append(names, st.Name)
		if !st.Done {
			t.Errorf("stage %s isn't done", st.Name)
		}
	}
	if got := strings.Join(names, " "); got != "etcd apiserver controllers scheduler kitchens ready" {
		t.Errorf("stages: %s", got)
	}
	if b, err := os.ReadFile(filepath.Join(dir, controlapi.FilePID)); err != nil || strings.TrimSpace(string(b)) != strconv.Itoa(p.cmd.Process.Pid) {
		t.Errorf("pid file: %q %v", b, err)
	}
	v, err := p.kubernetes().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("KUBISTRO_CLUSTERHOST") != "" && (v.GitVersion != "v1.37.2" || v.Major != "1" || v.Minor != "37") {
		t.Errorf("version %s", v)
	}
	maps := func(p *process) *corev1.ConfigMap {
		cm, err := p.kubernetes().CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return cm
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := p.kubernetes().CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := restarts(t, p)

	if err := p.client.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(20 * time.Second); code != 0 {
		t.Fatalf("exit code %d after a graceful stop", code)
	}
	if _, err := os.Stat(filepath.Join(dir, controlapi.FilePID)); err == nil {
		t.Error("the pid file is left")
	}
	p = begin(t, dir)
	p.until("awake", isReady)
	if maps(p).Name != "kept" {
		t.Error("sleep lost an object")
	}
	if after := restarts(t, p); after != before {
		t.Errorf("sleep counted %d restarts", after-before)
	}

	p.cmd.Process.Kill()
	<-p.ended
	p = begin(t, dir)
	p.until("restarted", isReady)
	if maps(p).Name != "kept" {
		t.Error("kill -9 lost an object")
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.exit(20 * time.Second); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
}

// restarts counts the restarts of all containers.
func restarts(t *testing.T, p *process) int {
	t.Helper()
	pods, err := p.kubernetes().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			n += int(c.RestartCount)
		}
	}
	return n
}

// TestFailedStart ends with code 1 and a reason, and the folder is good for another try.
func TestFailedStart(t *testing.T) {
	dir := t.TempDir()
	wall := filepath.Join(dir, "etcd")
	if err := os.WriteFile(wall, []byte("a file where etcd needs a folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := begin(t, dir)
	if code := p.exit(time.Minute); code != 1 || !strings.Contains(p.stderr.String(), "etcd") {
		t.Errorf("exit code %d, log %s", code, p.stderr)
	}
	if err := os.Remove(wall); err != nil {
		t.Fatal(err)
	}
	p = begin(t, dir)
	p.until("ready at the second try", isReady)
}

// TestOrphan: a host that nobody asks anything ends by itself.
func TestOrphan(t *testing.T) {
	p := begin(t, t.TempDir(), "--orphan", "1s")
	if code := p.exit(time.Minute); code != 0 || !strings.Contains(p.stderr.String(), "nobody has used the control API") {
		t.Errorf("exit code %d, log %s", code, p.stderr)
	}
}

// TestTooMuchMemory ends the process with a clear line.
func TestTooMuchMemory(t *testing.T) {
	p := begin(t, t.TempDir(), "--memory", "64Mi")
	if code := p.exit(2 * time.Minute); code != 1 || !strings.Contains(p.stderr.String(), "too much memory") {
		t.Errorf("exit code %d, log %s", code, p.stderr)
	}
}

// TestWrongUse: exit code 2 and a sentence.
func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{
		{"run"}, {"run", "--dir", "/nowhere/at/all"}, {"run", "--dir", ".", "--memory", "lots"}, {"cook"}, {"run", "--dir", ".", "extra"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: code %d, %s", args, code, &errs)
		}
	}
}
