package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// What a loop that is home leaves in its workload's object.
const (
	sentHomeLabel    = "kubistro.test/sent-home"
	replicasBeforeIt = "kubistro.test/replicas-before"
)

// Folders of the control plane's node.
const (
	manifestDir = "/etc/kubernetes/manifests"
	homeDir     = "/etc/kubernetes/kubistro-home" // manifests of who was sent home
)

// healthPorts are those of the components' health, on the node's loopback.
var healthPorts = map[string]int{loopScheduler: 10259, loopManager: 10257, "kube-apiserver": 6443}

// Loops lists all control loops, the components first.
func (in *instance) Loops(ctx context.Context) ([]lab.ControlLoop, error) {
	if in.ctx.Err() != nil {
		return nil, refusal(errEnded)
	}
	r := in.known()
	controllers := r.Controllers
	if len(controllers) == 0 {
		return nil, refusal(fmt.Errorf("%w: the controllers aren't known", errConflict))
	}
	var out []lab.ControlLoop
	add := func(part string, away bool, names ...string) {
		for _, name := range names {
			out = append(out, lab.ControlLoop{Name: name, Part: part, Home: away || slices.Contains(r.Changes.Home, name)})
		}
	}
	add(lab.LoopComponent, false, loopScheduler, loopManager, loopProxy, loopDNS)
	for _, name := range append([]string{officeName}, r.kitchens()...) {
		add(lab.LoopKubelet, false, loopKubelet+name)
	}
	add(lab.LoopController, slices.Contains(r.Changes.Home, loopManager), controllers...)
	return out, nil
}

// SetLoop sends a control loop home or calls it back. It returns when the loop has
// ended or works; what kube-proxy's and CoreDNS' Pods do then is up to the cluster.
func (in *instance) SetLoop(ctx context.Context, name string, home bool) error {
	return in.changing(ctx, func(ctx context.Context, r *record) error {
		if home == slices.Contains(r.Changes.Home, name) {
			return nil
		}
		r.Changes.Home = set(r.Changes.Home, name, home)
		node, isKubelet := strings.CutPrefix(name, loopKubelet)
		switch {
		case name == loopScheduler || name == loopManager:
			return in.setStatic(ctx, r, name, home)
		case name == loopProxy:
			return in.setProxy(ctx, home)
		case name == loopDNS:
			return in.setDNS(ctx, home)
		case isKubelet:
			return in.setKubelet(ctx, r, node, home)
		case slices.Contains(r.Controllers, name):
			if slices.Contains(r.Changes.Home, loopManager) {
				return nil // noted for its return
			}
			return in.setManagerFlags(ctx, r)
		}
		return fmt.Errorf("%w: there is no control loop %q", errNotFound, name)
	})
}

// setStatic moves the manifest of one of the control plane's Pods away, or back.
func (in *instance) setStatic(ctx context.Context, r *record, name string, home bool) error {
	if _, err := inNode(ctx, in.d.engine, r.office(), "mkdir", "-p", homeDir); err != nil {
		return err
	}
	from, to := manifestDir, homeDir
	if !home {
		from, to = to, from
	}
	if _, err := inNode(ctx, in.d.engine, r.office(), "mv", from+"/"+name+".yaml", to+"/"+name+".yaml"); err != nil {
		return err
	}
	if home {
		return in.awaitProcess(ctx, r, "! pgrep -x "+processName(name)+" >/dev/null")
	}
	if name == loopManager {
		return in.setManagerFlags(ctx, r)
	}
	return in.awaitProcess(ctx, r, healthy(name))
}

// processName is what the kernel keeps of a program's name.
func processName(name string) string { return name[:min(len(name), 15)] }

// healthy is a shell condition: the component answers.
func healthy(name string) string {
	return fmt.Sprintf(`[ "$(curl -sk --max-time 2 https://127.0.0.1:%d/healthz)" = ok ]`, healthPorts[name])
}

// awaitProcess waits in the control plane's node until a shell condition holds.
func (in *instance) awaitProcess(ctx context.Context, r *record, condition string) error {
	_, err := inNode(ctx, in.d.engine, r.office(), "timeout", "120", "sh", "-c", "until "+condition+"; do sleep 0.2; done")
	return err
}

// setKubelet stops or starts a node's kubelet; one without power starts as it is to be.
func (in *instance) setKubelet(ctx context.Context, r *record, node string, home bool) error {
	container, ok := r.Nodes[node]
	if !ok {
		return fmt.Errorf("%w: there is no node %q", errNotFound, node)
	}
	if slices.Contains(r.Changes.Off, node) {
		return nil
	}
	verb := "start"
	if home {
		verb = "stop"
	}
	_, err := inNode(ctx, in.d.engine, container, "systemctl", verb, "kubelet")
	return err
}

// setProxy makes kube-proxy's DaemonSet fit no node, or every node again.
func (in *instance) setProxy(ctx context.Context, home bool) error {
	value := any(nil)
	if home {
		value = "true"
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{sentHomeLabel: value}}}}})
	if err != nil {
		return err
	}
	api, err := in.admin()
	if err != nil {
		return err
	}
	_, err = api.AppsV1().DaemonSets(metav1.NamespaceSystem).Patch(ctx, loopProxy, types.MergePatchType, patch, metav1.PatchOptions{})
	return conflict(err)
}

// setDNS scales CoreDNS to nothing, or back to what it was.
func (in *instance) setDNS(ctx context.Context, home bool) error {
	api, err := in.admin()
	if err != nil {
		return err
	}
	d, err := api.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, loopDNS, metav1.GetOptions{})
	if err != nil {
		return conflict(err)
	}
	before, noted := d.Annotations[replicasBeforeIt]
	if home == noted {
		return nil
	}
	replicas, note := 0, any("1")
	if d.Spec.Replicas != nil {
		note = fmt.Sprint(*d.Spec.Replicas)
	}
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
	_, err = api.AppsV1().Deployments(metav1.NamespaceSystem).Patch(ctx, loopDNS, types.MergePatchType, patch, metav1.PatchOptions{})
	return conflict(err)
}

// conflict is the error for one of the cluster's own workloads that a learner has deleted or spoiled.
func conflict(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("%w: %w", errConflict, err)
	}
	return err
}
