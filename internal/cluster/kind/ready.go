package kind

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// lookEvery is how often a starting cluster is looked at.
const lookEvery = 300 * time.Millisecond

// awaitReady waits until the nodes are Ready and the system's Pods on them run.
func awaitReady(ctx context.Context, api kubernetes.Interface, nodes []string) error {
	missing := "the API server doesn't answer"
	err := awaitThat(ctx, "not ready", func(ctx context.Context) bool {
		what, err := unready(ctx, api, nodes)
		if err != nil {
			what = err.Error()
		}
		missing = what
		return what == ""
	})
	if err == nil {
		return nil
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if said := lastWords(late, api); said != "" {
		return fmt.Errorf("%s: %w: %s", missing, err, said)
	}
	return fmt.Errorf("%s: %w", missing, err)
}

// lastWords is the end of the log of one of the system's containers that ends again and again; empty when there
// is none. It tells what no state of an object does: that a limit of the machine is reached.
func lastWords(ctx context.Context, api kubernetes.Interface) string {
	list, err := api.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	for _, p := range list.Items {
		for _, c := range p.Status.ContainerStatuses {
			if c.Ready || c.RestartCount < 2 {
				continue
			}
			tail := int64(5)
			log, err := api.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Container: c.Name, Previous: true, TailLines: &tail}).DoRaw(ctx)
			if err == nil {
				return fmt.Sprintf("Pod %s said %q", p.Name, lastBytes(string(log), 1<<10))
			}
		}
	}
	return ""
}

// awaitThat looks until ok. ctx's end gives its cause.
func awaitThat(ctx context.Context, what string, ok func(ctx context.Context) bool) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		look, cancel := context.WithTimeout(ctx, 10*time.Second)
		done := ok(look)
		cancel()
		if done {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		}
	}
}

// unready says what isn't ready; "" when all is.
func unready(ctx context.Context, api kubernetes.Interface, nodes []string) (string, error) {
	for _, name := range nodes {
		n, err := api.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if !nodeReady(n) {
			return "node " + name + " isn't ready", nil
		}
	}
	if _, err := api.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return "", err
	}
	on := map[string]bool{}
	for _, name := range nodes {
		on[name] = true
	}
	for _, namespace := range []string{metav1.NamespaceSystem, "local-path-storage"} {
		list, err := api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		for _, p := range list.Items {
			if (p.Spec.NodeName == "" || on[p.Spec.NodeName]) && p.DeletionTimestamp == nil && !podReady(&p) {
				return "Pod " + p.Name + " isn't ready", nil
			}
		}
	}
	return "", nil
}

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return p.Status.Phase == corev1.PodSucceeded
}
