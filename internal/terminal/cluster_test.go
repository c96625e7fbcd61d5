package terminal_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestKubectlInTheCluster(t *testing.T) {
	c := withCluster(t)
	out, _ := execIn(t, c, `kubectl create deployment web --image=traefik/whoami --replicas=2
kubectl expose deployment web --port=80
kubectl run curl --image=curlimages/curl --command -- sleep 3600
kubectl run box --image=busybox --command -- sleep 3600
kubectl wait --for=condition=Available deployment/web --timeout=40s
kubectl wait --for=condition=Ready pod/curl pod/box --timeout=40s`)
	if strings.Count(out, "condition met") != 3 {
		t.Fatalf("the Pods aren't ready:\n%s", out)
	}
	for _, tt := range []struct{ name, script, want string }{
		{"get", "kubectl get pods --no-headers | awk '{print $3}' | sort | uniq -c", "Running"},
		{"exec", "kubectl exec box -- sh -c 'echo in-$((1+1)); exit 3'; echo code $?", "in-2\n"},
		{"exec exit code", "kubectl exec box -- sh -c 'exit 3' 2>/dev/null; echo code $?", "code 3"},
		{"exec with input", "echo hello | kubectl exec -i box -- cat", "hello"},
		{"the loop of the lesson", "NS=$(kubectl config view | grep namespace: | awk '{print $2}'); kubectl exec curl -- sh -c \"for i in 1 2 3 4 5 6 7 8 9; do curl -s web.$NS/ | grep Hostname; done\" | sort | uniq -c | awk '{n+=$1} END {print n, \"answers\"}'", "9 answers"},
		{"logs", "kubectl logs deploy/web --tail=1; echo code $?", "code 0"},
		{"copy there and back", "echo data > f; kubectl cp f box:/tmp/f && kubectl exec box -- cat /tmp/f && kubectl cp box:/tmp/f g && cat g", "data\ndata"},
		{"run once", "kubectl run once --image=busybox --restart=Never --attach --rm --quiet -- echo from-once 2>&1", "from-once"},
		{"describe", "kubectl describe pod box | grep -c 'Image ID'", "1"},
		{"manifest in a folder", "mkdir m; kubectl create configmap a --from-literal=x=1 --dry-run=client -o yaml > m/a.yaml; cd m; kubectl apply -f a.yaml; kubectl apply -f .; kubectl apply -f /home/learner/m/a.yaml", "configmap/a unchanged"},
		{"diff", "cd m; sed -i 's/x: .*/x: \"2\"/' a.yaml; kubectl diff -f a.yaml; echo code $?", "+  x: \"2\""},
		{"not allowed is exit code 1", "kubectl auth can-i create pods --as=nobody; echo code $?", "no\ncode 1"},
		{"two in a pipeline", "kubectl get configmap a -o yaml | kubectl replace -f - ; kubectl get cm a -o json | jq -r .data.x", "replaced"},
		{"missing object", "kubectl get pod nosuch; echo code $?", "NotFound"},
		{"missing file", "kubectl apply -f nosuch.yaml; echo code $?", "the path \"nosuch.yaml\" does not exist"},
		{"broken manifest", "echo 'kind: [' > bad.yaml; kubectl apply -f bad.yaml; echo code $?", "error parsing bad.yaml"},
		{"unknown command", "kubectl gett pods; echo code $?", "unknown command \"gett\""},
		{"more commands than connections", "for i in $(seq 80); do kubectl get ns default -o name; done | sort | uniq -c", "80 namespace/default"},
		{"short alias", "k get ns default -o name", "namespace/default"},
		{"all", "kubectl get all | grep -c web", ""},
		{"rollout", "kubectl rollout status deployment/web; kubectl rollout history deployment/web", "successfully rolled out"},
		{"curl a Service", "NS=$(kubectl config view | grep namespace: | awk '{print $2}'); curl -s web.$NS/ | grep -c Hostname; nslookup web.$NS | grep -c Address", "1\n2"},
		{"a guest in the street", "kubectl expose deployment web --name=door --port=80 --type=LoadBalancer; kubectl wait --for=jsonpath='{.status.loadBalancer.ingress}' service/door --timeout=40s; guest -n 8 --json http://$(kubectl get svc door -o jsonpath='{.status.loadBalancer.ingress[0].ip}')/ | jq -c '[.visits, .failed, ([.by[]] | add)]'", "[8,0,8]"},
		{"a guest can't come by ClusterIP", "guest http://$(kubectl get svc web -o jsonpath='{.spec.clusterIP}')/; echo code $?", "code 1"},
		{"explain", "kubectl explain pod.spec.containers | head -2", "KIND:"},
		{"top", "kubectl top nodes; true", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if out, _ := execIn(t, c, tt.script); !strings.Contains(out, tt.want) {
				t.Errorf("%s\ngot %q, want %q", tt.script, out, tt.want)
			}
		})
	}
	t.Run("interactive", func(t *testing.T) {
		s := open(t, c)
		s.send("kubectl exec -it box -- sh\r")
		s.wait("# ")
		s.send("echo in-$((40+2))\r")
		s.wait("in-42")
		s.send("exit\r")
		s.wait("learner@kubistro")
		s.wait("$ ")
		s.send("kubectl run tty --rm -it --image=busybox --restart=Never -- sh\r")
		s.wait("# ")
		s.send("echo in-$((40+3)); exit\r")
		s.wait("in-43")
		s.wait("deleted")
		s.wait("$ ")
		s.send("kubectl get pods -w\r")
		s.wait("box")
		s.send("\x03")
		s.wait("^C")
		s.wait("$ ")
		s.send("kubectl logs -f box\r")
		s.wait("\n")
		s.send("\x03")
		s.wait("$ ")
		s.send("kubectl get dep\t")
		s.wait("deployments.apps ")
		s.send("w\t")
		s.wait("web ")
		s.send("\r")
		s.wait("2/2")
		s.wait("$ ")
		s.send("kubectl desc\t")
		s.wait("describe ")
		s.send("\x03")
		s.wait("$ ")
		s.send("kubectl config set-context --current --namespace=kube-system\r")
		s.wait("modified")
		s.wait("(kube-system)")
	})
}

func TestEdit(t *testing.T) {
	c := withCluster(t)
	c.Edit = func(_ context.Context, name string) error {
		p := filepath.Join(c.Home, name)
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(p, []byte(strings.ReplaceAll(string(b), "color: red", "color: blue")), 0o644)
	}
	out, _ := execIn(t, c, "kubectl create configmap x --from-literal=color=red; kubectl edit configmap x; kubectl get configmap x -o jsonpath='{.data.color}'")
	if !strings.Contains(out, "replaced") || !strings.HasSuffix(out, "blue") {
		t.Errorf("%s", out)
	}
}

// TestGetPodsIsFast reports the median time from Enter to the prompt.
func TestGetPodsIsFast(t *testing.T) {
	c := withCluster(t)
	s := open(t, c)
	var took []time.Duration
	for range 11 {
		start := time.Now()
		s.send("kubectl get pods\r")
		s.wait("No resources found")
		s.wait("$ ")
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	t.Logf("kubectl get pods: p50 %v, slowest %v", took[5], took[10])
	if took[5] > 2*time.Second {
		t.Errorf("p50 %v", took[5])
	}
}
