package kind

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"kubistro/internal/clusterhost/loops"
	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/lab"
)

// kubeletConfig is where kubeadm keeps a node's kubelet configuration.
const kubeletConfig = "/var/lib/kubelet/config.yaml"

// unpaced are the periods that no flag or setting of a real cluster compresses.
var unpaced = []string{"containerRestartBackoff", "imagePullBackoff", "maxImagePullBackoff", "spec.progressDeadlineSeconds"}

// Clock tells how periods are compressed.
func (in *instance) Clock(context.Context) (lab.Clock, error) {
	if in.ctx.Err() != nil {
		return lab.Clock{}, refusal(errEnded)
	}
	r := in.known()
	c, err := pace.New(r.speed())
	if err != nil {
		return lab.Clock{}, refusal(err)
	}
	out := c.Report()
	out.Figures = slices.DeleteFunc(out.Figures, func(f lab.Figure) bool { return slices.Contains(unpaced, f.Name) })
	return out, nil
}

// SetClock changes how periods are compressed: the kubelets, the API server and the
// controller manager start anew with other settings, one after the other.
func (in *instance) SetClock(ctx context.Context, speed int) error {
	return in.changing(ctx, func(ctx context.Context, r *record) error {
		c, err := pace.New(speed)
		if err != nil || speed < 1 { // pace takes those for the real speed
			return fmt.Errorf("%w: a clock's speed is from 1 to %d", errInvalid, lab.MaxSpeed)
		}
		if c.Speed() == max(1, r.speed()) {
			return nil
		}
		r.Changes.Speed = speed
		for name := range r.Nodes {
			if !slices.Contains(r.Changes.Off, name) {
				if err := in.d.paceKubelet(ctx, r, name); err != nil {
					return err
				}
			}
		}
		if err := in.setFlags(ctx, r, "kube-apiserver", apiServerFlags(c)); err != nil {
			return err
		}
		if slices.Contains(r.Changes.Home, loops.Manager) {
			return nil // its flags are written when it comes back
		}
		return in.setManagerFlags(ctx, r)
	})
}

// paceKubelet gives a node's kubelet the clock's periods; it starts anew if they differ.
func (d *Driver) paceKubelet(ctx context.Context, r *record, name string) error {
	c, err := pace.New(r.speed())
	if err != nil {
		return err
	}
	container := r.Nodes[name]
	old, err := inNode(ctx, d.engine, container, "cat", kubeletConfig)
	if err != nil {
		return err
	}
	fresh, err := mergeYAML(old, kubeletPeriods(c))
	if err != nil {
		return fmt.Errorf("configuration of kubelet %s: %w", name, err)
	}
	if fresh == "" {
		return nil
	}
	if err := writeFile(ctx, d.engine, container, kubeletConfig, "600", strings.NewReader(fresh)); err != nil {
		return err
	}
	if slices.Contains(r.Changes.Home, loops.Kubelet+name) {
		return nil
	}
	_, err = inNode(ctx, d.engine, container, "systemctl", "restart", "kubelet")
	return err
}

// mergeYAML sets fields of a document; "" when they are as they should be.
func mergeYAML(text string, fields map[string]any) (string, error) {
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "", err
	}
	changed := false
	for name, value := range fields {
		if nested, ok := value.(map[string]any); ok {
			inner, _ := doc[name].(map[string]any)
			if inner == nil {
				inner = map[string]any{}
			}
			for k, v := range nested {
				changed = changed || fmt.Sprint(inner[k]) != fmt.Sprint(v)
				inner[k] = v
			}
			doc[name] = inner
			continue
		}
		changed = changed || fmt.Sprint(doc[name]) != fmt.Sprint(value)
		doc[name] = value
	}
	if !changed {
		return "", nil
	}
	b, err := yaml.Marshal(doc)
	return string(b), err
}
