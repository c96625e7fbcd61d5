package terminal_test

import (
	"strings"
	"testing"
)

func TestExec(t *testing.T) {
	out, code := execIn(t, config(t), "echo hi | tr a-z A-Z; pwd; echo x > f; cat f; exit 3")
	if out != "HI\n/home/learner\nx\n" || code != 3 {
		t.Errorf("got %q, code %d", out, code)
	}
}

func TestInteractive(t *testing.T) {
	s := open(t, config(t))
	s.send("echo one tw")
	s.send("o\r")
	s.wait("one two\r\n")
	s.wait("$ ")
	s.send("\x1b[A")
	s.wait("echo one two")
	s.send("\x03")
	s.wait("^C")
	s.send("sed s/^/got:/\r")
	s.send("typed ahead\r")
	s.wait("got:typed ahead\r\n")
	s.send("中文\r")
	s.wait("中文\r\ngot:中文\r\n")
	s.send("\x04")
	s.wait("$ ")
	s.send("sleep 100\r")
	s.wait("\n")
	s.send("\x03")
	s.wait("^C")
	s.wait("$ ")
	s.send("exit\r")
	s.wait("Press any key")
	s.send("x")
	s.wait("$ ")
	s.send("echo ag\"\"ain\r")
	s.wait("again")
}

func TestKubectl(t *testing.T) {
	c := withCluster(t)
	out, code := execIn(t, c, `kubectl create deployment web --image=traefik/whoami --replicas=2
kubectl get deployments
kubectl get deployment web -o jsonpath='{.spec.replicas}'; echo
kubectl create configmap x --from-literal=a=b --dry-run=client -o yaml | kubectl apply -f -
kubectl get configmap x -o json | grep '"a"'
kubectl delete configmap x
kubectl version`)
	for _, want := range []string{"deployment.apps/web created", "NAME   READY", "\n2\n", "configmap/x created", `"a": "b"`, `configmap "x" deleted`, "Server Version: v1.37.2"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if code != 0 {
		t.Errorf("code %d", code)
	}
}
