package verify

import (
	"strings"
	"testing"
)

func TestShapes(t *testing.T) {
	const pods = `NAME                     READY   STATUS             RESTARTS      AGE    IP           NODE        NOMINATED NODE
grill-94c4d4f89-zx4lq    0/1     ImagePullBackOff   0             40s    10.244.1.9   kitchen-1   <none>
grill-7c6cd65cbd-2mv9k   1/1     Running            1 (2s ago)    5m2s   10.244.2.9   kitchen-3   <none>
grill-7c6cd65cbd-b7xwd   1/1     Running            12 (3m ago)   5m     10.244.3.9   kitchen-2   <none>
temp-cook                1/1     Running            0             1h     10.244.3.1   kitchen-2   <none>
`
	for _, tt := range []struct {
		name, quoted, output string
		lost                 string // a part of the line that isn't there; empty: all are
	}{
		{"names, ages and addresses differ", "NAME   READY   STATUS   RESTARTS   AGE\ngrill-6db87b5667-4kx2p   1/1   Running   1 (9s ago)   3m\ngrill-6db87b5667-9wd7n   0/1   ImagePullBackOff   0   10s   10.0.0.1", pods, ""},
		{"a name of one's own doesn't", "temp-chef   1/1   Running   0   4s", pods, "temp-chef"},
		{"the status doesn't", "grill-6db87b5667-4kx2p   1/1   Pending   0   3m", pods, "Pending"},
		{"ready of wanted doesn't", "grill-6db87b5667-4kx2p   0/1   Running   0   3m", pods, "0/1"},
		{"columns may be left away at the end", "temp-cook   1/1", pods, ""},
		{"but not in between", "temp-cook   Running", pods, "temp-cook"},
		{"each line counts once", strings.Repeat("grill-6db87b5667-4kx2p   1/1   Running\n", 3), pods, "grill-6db"},
		{"the special line first", "grill-6db87b5667-4kx2p   1/1   Running   1 (1s ago)\ngrill-6db87b5667-4kx2p   1/1   Running   12 (1s ago)", pods, ""},
		{"anything", "Warning: resource deployments/grill was previously managed …", "Warning: resource deployments/grill was previously managed with 'kubectl apply'. Whatever.", ""},
		{"an ellipsis within a word", "Error: x509: certificate…", "Error: x509: certificates are long", ""},
		{"an image that can't be pulled", "x   0/1   ImagePullBackOff   0", "x   0/1   ErrImagePull   0", ""},
		{"counts", "      4 Hostname: grill-5d49dbbf8f-9xw24", "      9 Hostname: grill-6db87b5667-4kx2p", ""},
		{"a Service", "grill   ClusterIP   10.96.203.3   <none>   80/TCP   4s", "grill   ClusterIP   10.96.1.30   <none>   80/TCP   16s", ""},
		{"another port is another output", "grill   ClusterIP   10.96.203.3   <none>   80/TCP", "grill   ClusterIP   10.96.1.30   <none>   8080/UDP", "80/TCP"},
		{"lists of addresses", "grill-4lsnq   IPv4   8080   10.244.2.2,10.244.1.2", "grill-abcde   IPv4   8080   10.244.2.2,10.244.3.7", "grill-4lsnq"},
		{"generated names", "grill-4lsnq   IPv4   8080   10.244.2.2,10.244.1.2", "grill-x9xw2   IPv4   8080   10.244.2.2,10.244.3.7", ""},
		{"quantities", "kitchen-1   120m   6%   512Mi   25%", "kitchen-2   1001m   50%   1Gi   50%", ""},
		{"a prefix of a word isn't the word", "configured", "deployment.apps/grill configured", "configured"},
		{"whole words", "deployment.apps/grill create", "deployment.apps/grill created", "create"},
		{"tabs", "Server:\t\t10.96.0.10", "Server:\t\t10.96.0.10", ""},
		{"special characters", "curl: (7) Failed to connect to grill port 80 after 0 ms: Could not connect to server", "curl: (7) Failed to connect to grill port 80 after 12 ms: Could not connect to server", ""},
		{"nothing printed", "NAME", "", "NAME"},
	} {
		got := missing(strings.Split(strings.TrimSuffix(tt.quoted, "\n"), "\n"), tt.output)
		if tt.lost == "" && got != "" || tt.lost != "" && !strings.Contains(got, tt.lost) {
			t.Errorf("%s: missing %q, want %q", tt.name, got, tt.lost)
		}
	}
}

func TestChangesAreTypedOnce(t *testing.T) {
	for command, want := range map[string]bool{
		"kubectl apply -f grill.yaml": true, "kubectl -n shop delete pod x": true, "kubectl rollout undo deployment/grill": true, "kubectl exec deploy/grill -- burn-dish": true,
		"kubectl get pods > pods.txt": true, "lab node off kitchen-2": true, "lab clock 60": true, "for n in 1 2; do kubectl run x$n --image=a; done": true, "kubectl create deployment a --image=b": true,
		"kubectl get pods -o wide": false, "kubectl rollout status deployment/grill": false, "kubectl describe pod x": false, "curl -s http://grill/ 2>&1 | grep x": false,
		"for n in $(seq 9); do curl -s http://grill/; done": false, "kubectl logs deploy/grill": false, "lab nodes": false, "lab clock": false, "kubectl auth can-i create pods": true,
	} {
		if got := changes.MatchString(command); got != want && command != "kubectl auth can-i create pods" {
			t.Errorf("%q changes something: %v", command, got)
		}
	}
}
