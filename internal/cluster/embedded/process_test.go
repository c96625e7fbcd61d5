package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// fakeHost writes a program that takes clusterhost's place: a shell script.
func fakeHost(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clusterhost")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func newTestDriver(t *testing.T, o Options) *Driver {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestFailedStarts(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		timeout      time.Duration
		says         string // to the learner
		logs         string // in the cause
	}{
		{"the program fails", "echo 'etcd: cannot open database' >&2; exit 7", 0, "failed to start", "etcd: cannot open database"},
		{"the program's exit status is told", "exit 7", 0, "failed to start", "exit status 7"},
		{"the disk is full", "echo 'write wal: no space left on device' >&2; exit 1", 0, "disk is full", "no space left"},
		{"the memory is short", "kill -9 $$", 0, "short of memory", "signal: killed"},
		{"it hangs", "exec sleep 600", 50 * time.Millisecond, "took too long", "start took too long"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newTestDriver(t, Options{Program: fakeHost(t, tc.script), StartTimeout: tc.timeout})
			_, err := d.Create(t.Context(), "c", lab.DefaultClusterSpec(), nil)
			var e *lab.Error
			if !errors.As(err, &e) || !strings.Contains(e.Text.En, tc.says) || len(e.Text.Missing()) > 0 {
				t.Errorf("error = %v, want %q for people", err, tc.says)
			}
			if !strings.Contains(fmt.Sprint(err), tc.logs) {
				t.Errorf("error = %v, want %q in the cause", err, tc.logs)
			}
			if entries, err := os.ReadDir(d.root); err != nil || len(entries) != 0 {
				t.Errorf("left over: %v, %v", entries, err)
			}
			if left := hostsOf(d.dir("c")); len(left) != 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

func TestFailedWakeKeepsTheFolder(t *testing.T) {
	d := newTestDriver(t, Options{Program: fakeHost(t, "exit 1")})
	dir := d.dir("c")
	if err := os.MkdirAll(filepath.Join(dir, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Wake(t.Context(), "c", nil); err == nil {
		t.Fatal("woke")
	}
	if !exists(filepath.Join(dir, "etcd")) {
		t.Error("the cluster's data is gone")
	}
}

// startHost runs a fake host of a folder as another server would have left it.
func startHost(t *testing.T, dir, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(fakeHost(t, script), "run", "--dir", dir)
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()         // its state doesn't matter
	})
	return cmd
}

func TestDeleteFindsStrays(t *testing.T) {
	d := newTestDriver(t, Options{Program: fakeHost(t, "exit 1")})
	dir := d.dir("c")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	stray := startHost(t, dir, "trap '' TERM; while :; do sleep 1; done")
	other := startHost(t, d.dir("other"), "while :; do sleep 1; done")
	// A pid file that names a process which isn't ours must not lead to its end.
	if err := os.WriteFile(filepath.Join(dir, controlapi.FilePID), []byte(fmt.Sprint(os.Getpid())), 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(hostsOf(dir)) == 1 && len(hostsOf(d.dir("other"))) == 1 })
	if err := d.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if isAlive(stray.Process.Pid, startTime(stray.Process.Pid)) {
		t.Error("the stray lives")
	}
	if !isAlive(other.Process.Pid, startTime(other.Process.Pid)) {
		t.Error("another cluster's host was killed")
	}
	if exists(dir) {
		t.Error("the folder is still there")
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("never happened")
		}
	}
}

func TestReusedPIDIsNotKilled(t *testing.T) {
	cmd := startHost(t, t.TempDir(), "while :; do sleep 1; done")
	p := process{pid: cmd.Process.Pid, started: "1"} // a process of the past with this number
	if err := killHost(p); err != nil {
		t.Fatal(err)
	}
	if !isAlive(cmd.Process.Pid, startTime(cmd.Process.Pid)) {
		t.Error("a later process with the same number was killed")
	}
}

func TestListClearsWhatIsHalfDone(t *testing.T) {
	d := newTestDriver(t, Options{Program: fakeHost(t, "exit 1")})
	for _, dir := range []string{"half-made", ".trash-half-deleted", "asleep", "lost+found"} {
		if err := os.MkdirAll(filepath.Join(d.root, dir, "etcd"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := markMade(d.dir("asleep")); err != nil {
		t.Fatal(err)
	}
	stray := startHost(t, d.dir("half-made"), "while :; do sleep 1; done")
	waitFor(t, func() bool { return len(hostsOf(d.dir("half-made"))) == 1 })
	list, err := d.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != "asleep" || list[0].Running {
		t.Errorf("list = %+v, %v", list, err)
	}
	if isAlive(stray.Process.Pid, startTime(stray.Process.Pid)) {
		t.Error("the half made one's process lives")
	}
	entries, err := os.ReadDir(d.root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"asleep", "lost+found"}) { // what isn't ours stays
		t.Errorf("folder holds %v", names)
	}
}

func TestBadIDs(t *testing.T) {
	d := newTestDriver(t, Options{Program: fakeHost(t, "exit 1")})
	for _, id := range []string{"", "..", "../x", "a/b", "A", "-a", strings.Repeat("a", 64), "a\x00b"} {
		if err := d.Delete(t.Context(), id); err == nil {
			t.Errorf("delete of %q was tried", id)
		}
		if _, err := d.Create(t.Context(), id, lab.ClusterSpec{}, nil); err == nil {
			t.Errorf("create of %q was tried", id)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"no program":       {Dir: t.TempDir(), Program: filepath.Join(t.TempDir(), "nothing")},
		"not executable":   {Dir: t.TempDir(), Program: plain},
		"folder is a file": {Dir: plain, Program: fakeHost(t, "exit 1")},
	} {
		_, err := New(o)
		var e *lab.Error
		if !errors.As(err, &e) || len(e.Text.Missing()) > 0 {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}

func TestTrimLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, controlapi.FileLog)
	if err := trimLog(dir, 100); err != nil {
		t.Errorf("no log: %v", err)
	}
	w, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range 100 {
		fmt.Fprintf(w, "line %d\n", i)
	}
	if err := trimLog(dir, 400); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(w, "line 100") // the writer goes on at the end
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := string(b)
	if len(s) > 120 || !strings.HasPrefix(s, "line ") || !strings.HasSuffix(s, "line 98\nline 99\nline 100\n") {
		t.Errorf("log = %q", s)
	}
	if got := tail(dir); got != strings.TrimSpace(s) {
		t.Errorf("tail = %q", got)
	}
}

func TestDialErrors(t *testing.T) {
	refuse := func(kind string) error {
		return dialError("tcp", "grill:80", &controlapi.DialError{Kind: kind, Message: "x"})
	}
	if err := refuse(controlapi.DialRefused); !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != "dial tcp grill:80: connect: connection refused" {
		t.Errorf("refused: %v", err)
	}
	if err := refuse(controlapi.DialUnreachable); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("unreachable: %v", err)
	}
	for _, err := range []error{refuse(controlapi.DialTimeout), dialError("tcp", "grill:80", fmt.Errorf("wait: %w", context.DeadlineExceeded))} {
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("timeout: %v", err)
		}
	}
	var dns *net.DNSError
	if err := refuse(controlapi.DialName); !errors.As(err, &dns) || dns.Name != "grill" || !dns.IsNotFound {
		t.Errorf("name: %v", err)
	}
}

func TestEnvironmentIsBare(t *testing.T) {
	for _, name := range []string{"HTTPS_PROXY", "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "leak")
	}
	for _, kv := range environment("/x") {
		if strings.Contains(kv, "leak") {
			t.Errorf("the host gets %s", kv)
		}
	}
}
