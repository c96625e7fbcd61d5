package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// images are those that scenarios use and both clusters have. kind's nodes got them from an archive.
var images = []string{"grill-cook:1.4", "grill-cook:1.5", "toolbox:1.0", "busybox:1.37", "curlimages/curl:8.18.0", "nginx:1.29", "traefik/whoami:v1.11"}

// warmUp has each node fetch the images once, so that they are present in both clusters.
func (k *kubernetesCluster) warmUp(ctx context.Context) error {
	const name = "warm-up"
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	// A cluster on a busy machine may be ready and not answer again for a while.
	for k.newNamespace(ctx, name) != nil {
		if err := pause(ctx, again); err != nil {
			return fmt.Errorf("%s doesn't answer: %w", k.name, err)
		}
	}
	defer k.dropNamespace(name)
	labels := map[string]string{"app": name}
	var containers []corev1.Container
	for i, image := range images {
		containers = append(containers, corev1.Container{Name: "c" + strconv.Itoa(i), Image: image, ImagePullPolicy: corev1.PullIfNotPresent})
	}
	_, err := k.client.AppsV1().DaemonSets(name).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: containers, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for {
		if done, err := k.fetched(ctx, name); err == nil && done {
			return nil
		}
		if err := pause(ctx, again); err != nil {
			return fmt.Errorf("nodes of %s lack images: %w", k.name, err)
		}
	}
}

// fetched: every container of a Pod on every node has had its image.
func (k *kubernetesCluster) fetched(ctx context.Context, namespace string) (bool, error) {
	nodes, err := k.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	pods, err := k.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, p := range pods.Items {
		if len(p.Status.ContainerStatuses) != len(images) {
			return false, nil
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.ImageID == "" {
				return false, nil
			}
		}
	}
	return len(pods.Items) == len(nodes.Items), nil
}
