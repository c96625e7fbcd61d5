package clusterautoscaler_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kubistro/internal/clusterhost/hosttest"
	"kubistro/internal/lab"
	"kubistro/lessons"
)

// cluster has one kitchen; at this speed a node is unneeded after 10 s.
var cluster *hosttest.Host

func TestMain(m *testing.M) {
	var err error
	cluster, err = hosttest.Start(lab.ClusterSpec{Kitchens: []lab.Kitchen{{Name: "kitchen-1", CPU: "2", Memory: "2Gi"}}, Speed: 60})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	cluster.Stop()
	os.Exit(code)
}

const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: soup}
spec:
  replicas: 3
  selector: {matchLabels: {app: soup}}
  template:
    metadata: {labels: {app: soup}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {node.kubernetes.io/instance-type: m7i.large}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: soup}}}
      containers: [{name: c, image: "registry.k8s.io/pause:3.10", resources: {requests: {cpu: 300m, memory: 256Mi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec:
  containers: [{name: c, image: "registry.k8s.io/pause:3.10", resources: {requests: {cpu: "64"}}}]
`

func event(t *testing.T, namespace, kind, reason, part string) {
	t.Helper()
	cluster.Until(t, func(ctx context.Context) string {
		l, err := cluster.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind})
		if err != nil {
			return err.Error()
		}
		var seen []string
		for _, e := range l.Items {
			if e.Source.Component == "cluster-autoscaler" {
				if e.Reason == reason && strings.Contains(e.Message, part) {
					return ""
				}
				seen = append(seen, e.Reason+": "+e.Message)
			}
		}
		return fmt.Sprintf("no Event %s with %q of a %s, but\n%s", reason, part, kind, strings.Join(seen, "\n"))
	})
}

func scale(t *testing.T, replicas int) {
	t.Helper()
	_, err := cluster.Client.AppsV1().Deployments(metav1.NamespaceDefault).Patch(t.Context(), "soup", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// ordered waits until there are n nodes from the cloud, and no kitchen without one.
func ordered(t *testing.T, n int) (nodes []corev1.Node) {
	t.Helper()
	cluster.Until(t, func(ctx context.Context) string {
		l, err := cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelInstanceTypeStable})
		if err != nil {
			return err.Error()
		}
		kitchens, err := cluster.API.Kitchens(ctx)
		if nodes = l.Items; err != nil || len(nodes) != n || len(kitchens) != n+1 {
			return fmt.Sprintf("%d nodes and %d kitchens, not %d, %v", len(nodes), len(kitchens), n, err)
		}
		return ""
	})
	return nodes
}

func running(t *testing.T, n int) {
	t.Helper()
	cluster.Until(t, func(ctx context.Context) string {
		l, err := cluster.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=soup"})
		got := 0
		if err == nil {
			for _, p := range l.Items {
				if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
					got++
				}
			}
		}
		if got != n {
			return fmt.Sprintf("%d Pods run, not %d, %v", got, n, err)
		}
		return ""
	})
}

// status waits until the status holds some text.
func status(t *testing.T, part string) {
	t.Helper()
	cluster.Until(t, func(ctx context.Context) string {
		cm, err := cluster.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if !strings.Contains(cm.Data["status"], part) {
			return fmt.Sprintf("no %q in\n%s", part, cm.Data["status"])
		}
		return ""
	})
}

func TestClusterAutoscaler(t *testing.T) {
	raw, err := lessons.FS.ReadFile("shared/cluster-autoscaler/cluster-autoscaler.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cluster.Apply(t, raw)

	t.Run("opens a machine for each Pod that must be alone", func(t *testing.T) {
		cluster.Apply(t, []byte(workload))
		running(t, 3)
		ordered(t, 3)
		event(t, metav1.NamespaceDefault, "Pod", "TriggeredScaleUp", "pod triggered scale-up: [{general 0->")
		event(t, metav1.NamespaceDefault, "Pod", "NotTriggerScaleUp", "pod didn't trigger scale-up: 2 Insufficient cpu")
		event(t, metav1.NamespaceSystem, "ConfigMap", "ScaledUpGroup", "Scale-up: group general size set to ")
		status(t, "cloudProviderTarget: 3")
		zones := map[string]bool{}
		for _, n := range ordered(t, 3) {
			zones[n.Labels[corev1.LabelTopologyZone]] = true
		}
		if len(zones) != 3 {
			t.Errorf("the machines of a group are in the zones %v", zones)
		}
	})

	t.Run("keeps to the size of the group", func(t *testing.T) {
		scale(t, 6)
		running(t, 5)
		ordered(t, 5)
		event(t, metav1.NamespaceDefault, "Pod", "NotTriggerScaleUp", "1 max node group size reached")
	})

	t.Run("closes what is not needed", func(t *testing.T) {
		kept := ordered(t, 5)[0].Name
		_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), kept, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		scale(t, 0)
		if nodes := ordered(t, 1); nodes[0].Name != kept {
			t.Errorf("%s is left, not %s, whose annotation forbids to close it", nodes[0].Name, kept)
		}
		event(t, metav1.NamespaceSystem, "ConfigMap", "ScaleDownEmpty", "Scale-down: removing empty node")
		event(t, metav1.NamespaceDefault, "Node", "ScaleDown", "node removed by cluster autoscaler")
	})

	t.Run("moves Pods that may be moved", func(t *testing.T) {
		node := ordered(t, 1)[0].Name
		mine := func(name, more string) string {
			return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}, annotations: {%s}}
    spec:
      terminationGracePeriodSeconds: 0
      affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchFields: [{key: metadata.name, operator: In, values: [%s]}]}}]}}
      containers: [{name: c, image: "registry.k8s.io/pause:3.10", resources: {requests: {cpu: 10m}}}]
`, name, name, name, more, node)
		}
		cluster.Apply(t, []byte(mine("plain", "")))
		cluster.Apply(t, []byte(mine("pinned", `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"`)))
		where := func(ctx context.Context, app string) string {
			l, err := cluster.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
			if err != nil || len(l.Items) != 1 || l.Items[0].Status.Phase != corev1.PodRunning {
				return "nowhere"
			}
			return l.Items[0].Spec.NodeName
		}
		for _, app := range []string{"plain", "pinned"} {
			cluster.Until(t, func(ctx context.Context) string {
				if at := where(ctx, app); at != node {
					return app + " is on " + at
				}
				return ""
			})
		}
		free := []byte(`{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":null}}}`)
		if _, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, free, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		status(t, "cloudProviderTarget: 1")
		if err := cluster.Client.AppsV1().Deployments(metav1.NamespaceDefault).Delete(t.Context(), "pinned", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		ordered(t, 0)
		event(t, metav1.NamespaceDefault, "Pod", "ScaleDown", "deleting pod for node scale down")
		cluster.Until(t, func(ctx context.Context) string {
			if at := where(ctx, "plain"); at != "kitchen-1" {
				return "the Pod is on " + at
			}
			return ""
		})
	})
}
