package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/clusterhost/loops"
	"kubistro/internal/lab"
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
	add(lab.LoopComponent, loops.Scheduler, loops.Manager, loops.Proxy, loops.DNS)
	for _, name := range n.names() {
		add(lab.LoopKubelet, loops.Kubelet+name)
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
		switch node, isKubelet := strings.CutPrefix(name, loops.Kubelet); {
		case name == loops.Scheduler:
			err = h.setScheduler(r.Home)
		case name == loops.Manager:
			err = h.setManager(r.Home)
		case name == loops.Proxy:
			err = h.setWorkload(ctx, loops.SetProxy, r.Home)
		case name == loops.DNS:
			err = h.setWorkload(ctx, loops.SetDNS, r.Home)
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
	return h.setStatic(loops.Scheduler, !home)
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
	return h.setStatic(loops.Manager, !home)
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

// setWorkload sends one of the cluster's own workloads home or calls it back.
func (h *Host) setWorkload(ctx context.Context, set func(context.Context, kubernetes.Interface, bool) error, home bool) error {
	client, err := kubernetes.NewForConfig(h.api.loopback)
	if err != nil {
		return err
	}
	return conflict(set(ctx, client, home))
}

// conflict is the error for one of the cluster's own workloads that a learner has deleted or spoiled.
func conflict(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("%w: %w", controlapi.ErrConflict, err)
	}
	return err
}
