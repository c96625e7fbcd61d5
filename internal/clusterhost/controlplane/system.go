package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kubistro/internal/clusterhost/addons"
)

// fileInstalled marks a folder whose cluster has got its addons. What a learner
// deletes afterwards stays deleted, also over sleep and restart.
const fileInstalled = "installed"

// installAddons creates the cluster's own objects at its first start.
func (h *Host) installAddons(ctx context.Context) error {
	mark := filepath.Join(h.cfg.Dir, fileInstalled)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(h.api.loopback, "kubeadm"))
	if err != nil {
		return fmt.Errorf("addons: %w", err)
	}
	if err := retry(ctx, func() error { return addons.Install(ctx, client) }); err != nil {
		return err
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return fmt.Errorf("addons: %w", err)
	}
	return nil
}

// retry calls f until it succeeds: at the start not everything that the first
// objects need is there at once.
func retry(ctx context.Context, f func() error) error {
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for {
		last := f()
		if last == nil {
			return nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		}
	}
}

// systemPods waits until the cluster's own Pods are ready. At a later start it
// waits for those that there are, and not for what a learner may have broken.
func (h *Host) systemPods(ctx context.Context, first bool) error {
	if !first {
		return nil
	}
	client, err := kubernetes.NewForConfig(h.api.loopback)
	if err != nil {
		return fmt.Errorf("system Pods: %w", err)
	}
	return retry(ctx, func() error {
		pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return fmt.Errorf("system Pods: %w", err)
		}
		return h.allRunning(pods.Items)
	})
}

// allRunning says which of the cluster's own Pods are missing: the control
// plane's, two for each node (kube-proxy and kindnet), and cluster DNS.
func (h *Host) allRunning(pods []corev1.Pod) error {
	want := map[string]int{"tier=control-plane": 4, "k8s-app=kube-proxy": h.nodeCount(), "k8s-app=kindnet": h.nodeCount(), "k8s-app=kube-dns": 1}
	for _, p := range pods {
		if !isReady(&p) {
			continue
		}
		for _, label := range []string{"tier", "k8s-app"} {
			want[label+"="+p.Labels[label]]--
		}
	}
	for label, missing := range want {
		if missing > 0 {
			return fmt.Errorf("system Pods: %d Pods with label %s aren't ready", missing, label)
		}
	}
	return nil
}

func (h *Host) nodeCount() int { return len(h.kitchens) + 1 }

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
