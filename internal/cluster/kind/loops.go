package kind

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/clusterhost/loops"
	"kubistro/internal/lab"
)

// Folders of the control plane's node.
const (
	manifestDir = "/etc/kubernetes/manifests"
	homeDir     = "/etc/kubernetes/kubistro-home" // manifests of who was sent home
)

// healthPorts are those of the components' health, on the node's loopback.
var healthPorts = map[string]int{loops.Scheduler: 10259, loops.Manager: 10257, "kube-apiserver": 6443}

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
	add(lab.LoopComponent, false, loops.Scheduler, loops.Manager, loops.Proxy, loops.DNS)
	for _, name := range append([]string{officeName}, r.kitchens()...) {
		add(lab.LoopKubelet, false, loops.Kubelet+name)
	}
	add(lab.LoopController, slices.Contains(r.Changes.Home, loops.Manager), controllers...)
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
		node, isKubelet := strings.CutPrefix(name, loops.Kubelet)
		switch {
		case name == loops.Scheduler || name == loops.Manager:
			return in.setStatic(ctx, r, name, home)
		case name == loops.Proxy:
			return in.setWorkload(ctx, loops.SetProxy, home)
		case name == loops.DNS:
			return in.setWorkload(ctx, loops.SetDNS, home)
		case isKubelet:
			return in.setKubelet(ctx, r, node, home)
		case slices.Contains(r.Controllers, name):
			if slices.Contains(r.Changes.Home, loops.Manager) {
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
	if name == loops.Manager {
		return in.setManagerFlags(ctx, r)
	}
	return in.awaitProcess(ctx, r, healthy(name))
}

// processName is what the kernel keeps of a program's name.
func processName(name string) string { return name[:min(len(name), 15)] }

// healthy is a shell condition: the component answers.
func healthy(name string) string {
	return fmt.Sprintf(`[ "$(curl -sk --max-time 10 https://127.0.0.1:%d/healthz)" = ok ]`, healthPorts[name])
}

// awaitProcess waits in the control plane's node until a shell condition holds. The command in the node ends by
// itself: it wouldn't notice that nobody waits for it any more.
func (in *instance) awaitProcess(ctx context.Context, r *record, condition string) error {
	seconds := strconv.Itoa(int((changeWithin * 9 / 10).Seconds())) // leaves time to take a change back
	_, err := inNode(ctx, in.d.engine, r.office(), "timeout", seconds, "sh", "-c", "until "+condition+"; do sleep 0.2; done")
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

// setWorkload sends one of the cluster's own workloads home or calls it back.
func (in *instance) setWorkload(ctx context.Context, set func(context.Context, kubernetes.Interface, bool) error, home bool) error {
	api, err := in.admin()
	if err != nil {
		return err
	}
	return conflict(set(ctx, api, home))
}

// conflict is the error for one of the cluster's own workloads that a learner has deleted or spoiled.
func conflict(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("%w: %w", errConflict, err)
	}
	return err
}
