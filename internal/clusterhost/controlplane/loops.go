package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// Names of the control loops that aren't controllers.
const (
	loopScheduler = "kube-scheduler"
	loopManager   = "kube-controller-manager"
	loopProxy     = "kube-proxy"
	loopDNS       = "coredns"
	loopKubelet   = "kubelet/" // with the node's name behind it
)

// Loops lists all control loops, the components first.
func (h *Host) Loops() ([]lab.ControlLoop, error) {
	n, err := h.ready()
	if err != nil {
		return nil, err
	}
	h.change.Lock()
	defer h.change.Unlock()
	var out []lab.ControlLoop
	add := func(part string, names ...string) {
		for _, name := range names {
			out = append(out, lab.ControlLoop{Name: name, Part: part, Home: h.changes.home(name)})
		}
	}
	add(lab.LoopComponent, loopScheduler, loopManager, loopProxy, loopDNS)
	for _, name := range n.names() {
		add(lab.LoopKubelet, loopKubelet+name)
	}
	for _, name := range h.controllers {
		add(lab.LoopController, name)
		out[len(out)-1].Home = h.changes.home(name) || h.manager == nil
	}
	return out, nil
}

// SetLoop sends a control loop home or calls it back. It returns when the loop has
// ended or begun to work; what kube-proxy's and CoreDNS' Pods do then is up to the
// cluster, as it would be after kubectl.
func (h *Host) SetLoop(ctx context.Context, r controlapi.LoopRequest) error {
	return h.changing(ctx, func(ctx context.Context) (err error) {
		name := r.Name
		if full, ok := app.ControllerAliases()[name]; ok {
			name = full
		}
		switch node, isKubelet := strings.CutPrefix(name, loopKubelet); {
		case name == loopScheduler:
			err = h.setScheduler(r.Home)
		case name == loopManager:
			err = h.setManager(r.Home)
		case name == loopProxy:
			err = h.setProxy(ctx, r.Home)
		case name == loopDNS:
			err = h.setDNS(ctx, r.Home)
		case isKubelet:
			err = h.setKubelet(node, r.Home)
		case slices.Contains(h.controllers, name):
			err = h.setController(ctx, name, r.Home)
		default:
			err = fmt.Errorf("%w: there is no control loop %q", controlapi.ErrNotFound, r.Name)
		}
		if err == nil {
			h.changes.setHome(name, r.Home)
		}
		return err
	})
}

func (h *Host) setScheduler(home bool) (err error) {
	switch {
	case home && h.scheduler != nil:
		h.scheduler.close()
		h.scheduler = nil
	case !home && h.scheduler == nil:
		h.scheduler, err = startScheduler(h.running, h.pki.token(userScheduler), h.transport)
	}
	if err != nil {
		return err
	}
	return h.setStatic(loopScheduler, !home)
}

func (h *Host) setManager(home bool) error {
	switch {
	case home && h.manager != nil:
		h.manager.close(h.log)
		h.manager = nil
	case !home && h.manager == nil:
		if err := h.startManager(); err != nil {
			return err
		}
	}
	return h.setStatic(loopManager, !home)
}

// startManager starts the controllers but those that are home.
func (h *Host) startManager() (err error) {
	h.manager, err = startControllers(h.running, h.controllerConfig(), h.changes.Home)
	return err
}

func (h *Host) setController(ctx context.Context, name string, home bool) error {
	switch {
	case h.manager == nil:
		return nil // noted for its return
	case home:
		return h.manager.stop(ctx, name)
	}
	return h.manager.call(name)
}

// setStatic takes the manifest of one of the control plane's Pods away, or puts it back.
func (h *Host) setStatic(name string, on bool) error {
	n, err := h.ready()
	if err != nil {
		return err
	}
	return n.get(officeName).SetStatic(name, on)
}

func (h *Host) setKubelet(node string, home bool) error {
	n, err := h.ready()
	if err != nil {
		return err
	}
	k := n.get(node)
	if k == nil {
		return noKitchen(node)
	}
	k.SetWorking(!home)
	return nil
}

// What a loop that is home leaves in its workload's object.
const (
	sentHomeLabel    = "kubistro.test/sent-home"
	replicasBeforeIt = "kubistro.test/replicas-before"
)

// setProxy makes kube-proxy's DaemonSet fit no node, or every node again.
func (h *Host) setProxy(ctx context.Context, home bool) error {
	value := any(nil)
	if home {
		value = "true"
	}
	return h.patchSystem(ctx, func(c *kubernetes.Clientset, patch []byte) error {
		_, err := c.AppsV1().DaemonSets(metav1.NamespaceSystem).Patch(ctx, loopProxy, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{sentHomeLabel: value}}}}})
}

// setDNS scales CoreDNS to nothing, or back to what it was.
func (h *Host) setDNS(ctx context.Context, home bool) error {
	client, err := kubernetes.NewForConfig(h.api.loopback)
	if err != nil {
		return err
	}
	d, err := client.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, loopDNS, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", controlapi.ErrConflict, err)
	}
	if err != nil {
		return err
	}
	before, noted := d.Annotations[replicasBeforeIt]
	if home == noted {
		return nil
	}
	replicas, note := any(0), any(fmt.Sprint(ptr.Deref(d.Spec.Replicas, 1)))
	if !home {
		replicas, note = json.Number(before), nil
	}
	return h.patchSystem(ctx, func(c *kubernetes.Clientset, patch []byte) error {
		_, err := c.AppsV1().Deployments(metav1.NamespaceSystem).Patch(ctx, loopDNS, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}, map[string]any{"metadata": map[string]any{"annotations": map[string]any{replicasBeforeIt: note}}, "spec": map[string]any{"replicas": replicas}})
}

// patchSystem patches one of the cluster's own workloads; one that a learner has deleted is a conflict.
func (h *Host) patchSystem(_ context.Context, send func(*kubernetes.Clientset, []byte) error, patch any) error {
	client, err := kubernetes.NewForConfig(h.api.loopback)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("%w: %w", controlapi.ErrConflict, err)
	}
	err = send(client, raw)
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("%w: %w", controlapi.ErrConflict, err)
	}
	return err
}
