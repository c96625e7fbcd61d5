package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func call(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code = run(ctx, args, &out, &errs, func(name string) string { return env[name] })
	return code, out.String(), errs.String()
}

func TestExitCodes(t *testing.T) {
	empty := t.TempDir()
	if err := os.MkdirAll(filepath.Join(empty, "broken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(empty, "broken", "course.yaml"), []byte("bogus: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"help", []string{"--help"}, exitGood, "labserver serve"},
		{"version", []string{"version"}, exitGood, "kubistro"},
		{"unknown flag", []string{"serve", "--bogus"}, exitUsage, "--bogus"},
		{"unknown command", []string{"cook"}, exitUsage, "cook"},
		{"too many arguments", []string{"lint", "a", "b"}, exitUsage, "accepts at most 1"},
		{"built-in lessons", []string{"lint"}, exitGood, "no faults"},
		{"faulty lessons", []string{"lint", empty}, exitFindings, "course.yaml"},
		{"folder that isn't there", []string{"lint", filepath.Join(empty, "none")}, exitFindings, "none"},
		{"unknown driver", []string{"serve", "--driver", "cloud", "--data", empty}, exitFindings, "cloud"},
		{"no port", []string{"serve", "--addr", "localhost", "--data", empty}, exitFindings, "HOST:PORT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := call(t, nil, c.args...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit code %d, want %d; printed %q %q, want %q in it", code, c.code, out, errs, c.says)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	code, _, errs := call(t, map[string]string{"KUBISTRO_DRIVER": "fromenv", "KUBISTRO_DATA": dir}, "serve")
	if code != exitFindings || !strings.Contains(errs, "fromenv") {
		t.Errorf("KUBISTRO_DRIVER isn't used: %d %s", code, errs)
	}
	code, _, errs = call(t, map[string]string{"KUBISTRO_DRIVER": "fromenv", "KUBISTRO_DATA": dir}, "serve", "--driver", "fromflag")
	if code != exitFindings || !strings.Contains(errs, "fromflag") {
		t.Errorf("a flag doesn't win over the environment: %d %s", code, errs)
	}
	if code, _, errs = call(t, map[string]string{"KUBISTRO_WARM": "many"}, "serve"); code != exitUsage || !strings.Contains(errs, "KUBISTRO_WARM") {
		t.Errorf("nonsense in a variable: %d %s", code, errs)
	}
}

func TestJSON(t *testing.T) {
	for _, args := range [][]string{{"version", "--json"}, {"lint", "--json"}, {"schema"}} {
		code, out, errs := call(t, nil, args...)
		if code != exitGood || !json.Valid([]byte(out)) {
			t.Errorf("%v: %d, not JSON: %.200s %s", args, code, out, errs)
		}
	}
}

func TestStrangersNeedConfinement(t *testing.T) {
	for addr, abi := range map[string]int{"127.0.0.1:0": 0, "localhost:8080": 0, "[::1]:1": 0, "0.0.0.0:8080": 3} {
		if err := mayListen(addr, abi, driverOptions{}); err != nil {
			t.Errorf("%s with ABI %d: %v", addr, abi, err)
		}
	}
	for _, addr := range []string{"0.0.0.0:8080", ":8080", "192.0.2.1:80", "example.org:80"} {
		if err := mayListen(addr, 0, driverOptions{}); err == nil {
			t.Errorf("%s without Landlock is allowed", addr)
		}
		if err := mayListen(addr, 3, driverOptions{driver: "kind"}); err == nil || !strings.Contains(err.Error(), "--trust-learners") {
			t.Errorf("%s with kind clusters: %v", addr, err)
		}
		if err := mayListen(addr, 3, driverOptions{driver: "kind", trust: true}); err != nil {
			t.Errorf("%s with kind clusters of trusted learners: %v", addr, err)
		}
	}
}

func TestDataFolder(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/state/kubistro":               {"XDG_STATE_HOME": "/state", "HOME": "/home/x"},
		"/home/x/.local/state/kubistro": {"HOME": "/home/x"},
	} {
		p := &program{env: func(n string) string { return env[n] }}
		if got := p.dataFolder(); got != want {
			t.Errorf("%v: %s, want %s", env, got, want)
		}
	}
}

func TestOneServerPerFolder(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockFolder(dir); err == nil || !strings.Contains(err.Error(), "another labserver") {
		t.Errorf("second lock: %v", err)
	}
	unlock()
	again, err := lockFolder(dir)
	if err != nil {
		t.Fatalf("after the first has gone: %v", err)
	}
	again()
}
