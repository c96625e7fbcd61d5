package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// crowdLimit bounds how long a Deployment may take until all its Pods are ready.
const crowdLimit = 5 * time.Minute

// thirtyPods compares a cluster of four nodes with itself once 30 Pods run on it.
func thirtyPods(ctx context.Context, o options) ([]figure, error) {
	h, err := startHost(ctx, o, 3)
	if err != nil {
		return nil, err
	}
	defer h.close()
	if _, _, err := h.idle(ctx, o.settle); err != nil { // what a start leaves to be done
		return nil, err
	}
	emptyMemory, emptyCPU, err := h.idle(ctx, o.settle)
	if err != nil {
		return nil, err
	}
	if err := h.deploy(ctx, 30); err != nil {
		return nil, err
	}
	if _, _, err := h.idle(ctx, o.settle); err != nil {
		return nil, err
	}
	memory, cpu, err := h.idle(ctx, o.settle)
	if err != nil {
		return nil, err
	}
	return []figure{
		{"30 Pods on four nodes: memory above the empty cluster (Pss)", megabytes(memory - emptyMemory), "20 MB"},
		{"30 Pods on four nodes: CPU above the empty cluster", ofACore(cpu - emptyCPU), "1 % of a core"},
	}, nil
}

// threeHundredPods starts 300 Pods on 20 nodes that are there already.
func threeHundredPods(ctx context.Context, o options) ([]figure, error) {
	h, err := startHost(ctx, o, 20)
	if err != nil {
		return nil, err
	}
	defer h.close()
	opened, err := h.spent(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err := h.idle(ctx, o.settle); err != nil {
		return nil, err
	}
	before, err := h.spent(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := h.deploy(ctx, 300); err != nil {
		return nil, err
	}
	took := time.Since(began)
	after, err := h.spent(ctx)
	if err != nil {
		return nil, err
	}
	return []figure{
		{"20 kitchens: CPU time until the cluster is ready", round(opened).String(), "-"},
		{"300 Pods on 20 kitchens that are open: all ready after", round(took).String(), "30 s"},
		{"300 Pods on 20 kitchens that are open: CPU time", round(after - before).String(), "-"},
	}, nil
}

// deploy makes a Deployment of n cooks and waits until all are ready.
func (h *host) deploy(ctx context.Context, n int32) error {
	ctx, cancel := context.WithTimeout(ctx, crowdLimit)
	defer cancel()
	deployments := h.kube.AppsV1().Deployments(metav1.NamespaceDefault)
	labels := map[string]string{"app": "crowd"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "crowd"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(n), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "cook", Image: "grill-cook:1.4",
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}},
		}}}},
	}}
	d, err := deployments.Create(ctx, d, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	w, err := deployments.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", d.Name).String(), ResourceVersion: d.ResourceVersion,
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if d, ok := e.Object.(*appsv1.Deployment); ok && d.Status.ReadyReplicas == n {
			return nil
		}
	}
	return fmt.Errorf("%d Pods: the watch ended before they were ready: %w", n, context.Cause(ctx))
}
