package karpenter_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kubistro/internal/clusterhost/cloud"
	"kubistro/internal/clusterhost/hosttest"
	"kubistro/internal/lab"
	"kubistro/lessons"
)

// cluster has one kitchen, and Karpenter as lessons install it.
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

// install applies the files of lessons/shared.
func install(t *testing.T, files ...string) {
	t.Helper()
	for _, f := range files {
		raw, err := lessons.FS.ReadFile("shared/karpenter/" + f)
		if err != nil {
			t.Fatal(err)
		}
		cluster.Apply(t, raw)
	}
}

// grill is a NodePool, and Pods that only its nodes can run.
const grill = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: grill}
spec:
  template:
    metadata: {labels: {team: grill}}
    spec:
      taints: [{key: grill, effect: NoSchedule}]
      requirements:
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c]}
        - {key: karpenter.k8s.aws/instance-size, operator: In, values: [large, xlarge]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
      nodeClassRef: {group: karpenter.kubistro.io, kind: KitchenNodeClass, name: default}
  limits: {cpu: 6}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1s, budgets: [{nodes: 100%}]}
---
apiVersion: karpenter.kubistro.io/v1
kind: KitchenNodeClass
metadata: {name: default}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: grill}
spec:
  replicas: 3
  selector: {matchLabels: {app: grill}}
  template:
    metadata: {labels: {app: grill}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {team: grill}
      tolerations: [{key: grill, operator: Exists}]
      containers: [{name: c, image: "registry.k8s.io/pause:3.10", resources: {requests: {cpu: "1", memory: 1Gi}}}]
`

var pools = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}

// opened are the nodes of a NodePool.
func opened(ctx context.Context, pool string) ([]corev1.Node, error) {
	l, err := cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "karpenter.sh/nodepool=" + pool})
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// where counts a Deployment's running Pods, and those that wait.
func where(ctx context.Context, app string) (running, pending int, err error) {
	l, err := cluster.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return 0, 0, err
	}
	for _, p := range l.Items {
		switch {
		case p.DeletionTimestamp != nil:
		case p.Status.Phase == corev1.PodRunning:
			running++
		default:
			pending++
		}
	}
	return running, pending, nil
}

func scale(t *testing.T, app string, replicas int) {
	t.Helper()
	_, err := cluster.Client.AppsV1().Deployments(metav1.NamespaceDefault).Patch(t.Context(), app, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// event waits for an Event of Karpenter's in the namespace default.
func event(t *testing.T, kind, reason, part string) {
	t.Helper()
	cluster.Until(t, func(ctx context.Context) string {
		l, err := cluster.Client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind})
		if err != nil {
			return err.Error()
		}
		var seen []string
		for _, e := range l.Items {
			if e.Source.Component != "karpenter" && e.ReportingController != "karpenter" {
				continue
			}
			if e.Reason == reason && strings.Contains(e.Message, part) {
				return ""
			}
			seen = append(seen, e.Reason+": "+e.Message)
		}
		return fmt.Sprintf("no Event %s with %q of a %s, but\n%s", reason, part, kind, strings.Join(seen, "\n"))
	})
}

// counts waits until a NodePool has n nodes and the cluster as many kitchens besides its own.
func counts(t *testing.T, pool string, n int) (nodes []corev1.Node) {
	t.Helper()
	cluster.Until(t, func(ctx context.Context) string {
		var err error
		if nodes, err = opened(ctx, pool); err != nil {
			return err.Error()
		}
		kitchens, err := cluster.API.Kitchens(ctx)
		if err != nil || len(nodes) != n || len(kitchens) != n+1 {
			return fmt.Sprintf("%d nodes and %d kitchens, %v", len(nodes), len(kitchens), err)
		}
		return ""
	})
	return nodes
}

func TestKarpenter(t *testing.T) {
	install(t, "crds.yaml", "ec2nodeclass.yaml", "karpenter.yaml")
	t.Run("starts again in the same process", func(t *testing.T) {
		available := func(ctx context.Context) string {
			d, err := cluster.Client.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, "karpenter", metav1.GetOptions{})
			if err != nil || d.Status.AvailableReplicas != 1 || d.Status.ObservedGeneration < d.Generation || d.Status.TerminatingReplicas != nil && *d.Status.TerminatingReplicas > 0 {
				return fmt.Sprintf("Karpenter isn't available: %v", err)
			}
			return ""
		}
		cluster.Until(t, available)
		if err := cluster.Client.CoreV1().Pods(metav1.NamespaceSystem).DeleteCollection(t.Context(), metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=karpenter"}); err != nil {
			t.Fatal(err)
		}
		cluster.Until(t, func(ctx context.Context) string {
			if available(ctx) == "" {
				return "the Pod isn't replaced yet"
			}
			return ""
		})
		cluster.Until(t, available)
	})

	t.Run("opens what Pending Pods need", func(t *testing.T) {
		cluster.Apply(t, []byte(grill))
		cluster.Until(t, func(ctx context.Context) string {
			if running, pending, err := where(ctx, "grill"); err != nil || running != 3 {
				return fmt.Sprintf("%d running, %d pending, %v", running, pending, err)
			}
			return ""
		})
		event(t, "Pod", "Nominated", "Pod should schedule on: nodeclaim/grill-")
		event(t, "NodeClaim", "Ready", "Status condition transitioned, Type: Ready, Status: Unknown -> True, Reason: Ready")
		nodes, err := opened(t.Context(), "grill")
		if err != nil || len(nodes) != 1 {
			t.Fatalf("%d nodes for what fits on one, %v", len(nodes), err)
		}
		n := nodes[0]
		for key, want := range map[string]string{
			"team": "grill", "karpenter.sh/capacity-type": cloud.Spot, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
			"karpenter.k8s.aws/instance-category": "c", "karpenter.k8s.aws/instance-size": "xlarge",
		} {
			if n.Labels[key] != want {
				t.Errorf("label %s is %q, not %q", key, n.Labels[key], want)
			}
		}
		if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "grill" {
			t.Errorf("taints %v", n.Spec.Taints)
		}
		if !slices.Contains(n.Finalizers, "karpenter.sh/termination") || !strings.HasPrefix(n.Spec.ProviderID, cloud.ProviderPrefix+n.Labels[corev1.LabelTopologyZone]) {
			t.Errorf("finalizers %v, providerID %q", n.Finalizers, n.Spec.ProviderID)
		}
		if got, want := n.Status.Allocatable.Memory().String(), "8092Mi"; got != want {
			t.Errorf("allocatable memory %s, not %s as the catalogue says", got, want)
		}
	})

	t.Run("keeps to the limits of the NodePool", func(t *testing.T) {
		scale(t, "grill", 8)
		counts(t, "grill", 2) // 4 and 2 CPUs
		event(t, "Pod", "FailedScheduling", "all available instance types exceed limits for nodepool")
		if running, pending, err := where(t.Context(), "grill"); err != nil || pending == 0 {
			t.Errorf("%d running, %d pending, %v", running, pending, err)
		}
	})

	t.Run("drains as budgets allow", func(t *testing.T) {
		scale(t, "grill", 1)
		cluster.Apply(t, []byte("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: grill}\nspec: {minAvailable: 1, selector: {matchLabels: {app: grill}}}"))
		nodes := counts(t, "grill", 1)
		if err := cluster.Client.CoreV1().Nodes().Delete(t.Context(), nodes[0].Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		event(t, "Node", "FailedDraining", "Failed to drain node")
		n, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), nodes[0].Name, metav1.GetOptions{})
		if err != nil {
			t.Fatalf("the node didn't wait for its Pod: %v", err)
		}
		if !slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "karpenter.sh/disrupted" }) {
			t.Errorf("taints %v", n.Spec.Taints)
		}
		if err := cluster.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Delete(t.Context(), "grill", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		cluster.Until(t, func(ctx context.Context) string {
			if _, err := cluster.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{}); err == nil {
				return "the drained node is still there"
			}
			return ""
		})
	})

	t.Run("closes what is empty", func(t *testing.T) {
		scale(t, "grill", 0)
		counts(t, "grill", 0)
		if err := cluster.Dynamic.Resource(pools).Delete(t.Context(), "grill", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

// The NodePool and the Deployment of Karpenter's own guide for AWS.
func TestTutorialForAWS(t *testing.T) {
	cluster.Apply(t, []byte(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      requirements:
        - key: kubernetes.io/arch
          operator: In
          values: ["amd64", "arm64"]
        - key: kubernetes.io/os
          operator: In
          values: ["linux"]
        - key: karpenter.sh/capacity-type
          operator: In
          values: ["on-demand"]
        - key: karpenter.k8s.aws/instance-category
          operator: In
          values: ["c", "m", "r"]
        - key: karpenter.k8s.aws/instance-generation
          operator: Gt
          values: ["2"]
      nodeClassRef:
        group: karpenter.k8s.aws
        kind: EC2NodeClass
        name: default
      expireAfter: 720h
  limits:
    cpu: 1000
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 1m
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: default
spec:
  role: "KarpenterNodeRole-kubistro"
  amiSelectorTerms:
    - alias: "al2023@latest"
  subnetSelectorTerms:
    - tags:
        karpenter.sh/discovery: "kubistro"
  securityGroupSelectorTerms:
    - tags:
        karpenter.sh/discovery: "kubistro"
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: inflate
spec:
  replicas: 5
  selector:
    matchLabels:
      app: inflate
  template:
    metadata:
      labels:
        app: inflate
    spec:
      terminationGracePeriodSeconds: 0
      securityContext:
        runAsUser: 1000
        runAsGroup: 3000
        fsGroup: 2000
      containers:
      - name: inflate
        image: public.ecr.aws/eks-distro/kubernetes/pause:3.7
        resources:
          requests:
            cpu: 1
        securityContext:
          allowPrivilegeEscalation: false
`))
	cluster.Until(t, func(ctx context.Context) string {
		if running, pending, err := where(ctx, "inflate"); err != nil || running != 5 {
			return fmt.Sprintf("%d running, %d pending, %v", running, pending, err)
		}
		return ""
	})
	if nodes, err := opened(t.Context(), "default"); err != nil || len(nodes) == 0 {
		t.Errorf("%d nodes, %v", len(nodes), err)
	}
}
