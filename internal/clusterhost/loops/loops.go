// Package loops names the control loops of a cluster for every driver alike, and sends
// those home that are ordinary workloads: kube-proxy and CoreDNS, in the way of a
// person with kubectl.
package loops

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// Names of the control loops that aren't controllers.
const (
	Scheduler = "kube-scheduler"
	Manager   = "kube-controller-manager"
	Proxy     = "kube-proxy"
	DNS       = "coredns"
	Kubelet   = "kubelet/" // with the node's name behind it
)

// What a loop that is home leaves in its workload's object.
const (
	sentHomeLabel    = "kubistro.test/sent-home"
	replicasBeforeIt = "kubistro.test/replicas-before"
)

// SetProxy makes kube-proxy's DaemonSet fit no node, or every node again. Its errors are the API server's.
func SetProxy(ctx context.Context, api kubernetes.Interface, home bool) error {
	value := any(nil)
	if home {
		value = "true"
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{sentHomeLabel: value}}}}})
	if err != nil {
		return err
	}
	_, err = api.AppsV1().DaemonSets(metav1.NamespaceSystem).Patch(ctx, Proxy, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// SetDNS scales CoreDNS to nothing, or back to what it was. Its errors are the API server's.
func SetDNS(ctx context.Context, api kubernetes.Interface, home bool) error {
	d, err := api.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, DNS, metav1.GetOptions{})
	if err != nil {
		return err
	}
	before, noted := d.Annotations[replicasBeforeIt]
	if home == noted {
		return nil
	}
	replicas, note := 0, any(fmt.Sprint(ptr.Deref(d.Spec.Replicas, 1)))
	if !home {
		if replicas, err = strconv.Atoi(before); err != nil {
			replicas = 1 // somebody has spoiled the note
		}
		note = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{replicasBeforeIt: note}}, "spec": map[string]any{"replicas": replicas}})
	if err != nil {
		return err
	}
	_, err = api.AppsV1().Deployments(metav1.NamespaceSystem).Patch(ctx, DNS, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
