package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kubistro/internal/cluster"
)

const (
	commandMost = 2 * time.Minute // a command that takes longer hangs
	outputMost  = 1 << 20         // bytes of a command's output that are kept
	calm        = 3 * time.Second // what stays the same for so long has settled
	calmMost    = 30 * time.Second
	again       = 500 * time.Millisecond // pause before a command is tried again
)

// runScenario does a scenario's steps in a namespace of its own, and removes that afterwards.
// The error is one of the run; a step that fails is in the transcript.
func runScenario(ctx context.Context, k *kubernetesCluster, s *Scenario, patience time.Duration) (*Transcript, error) {
	dir, err := os.MkdirTemp("", "fidelity-"+s.Name+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, text := range s.Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	config := filepath.Join(dir, ".kubeconfig")
	if err := k.writeConfig(config, s.Name); err != nil {
		return nil, err
	}
	if err := k.newNamespace(ctx, s.Name); err != nil {
		return nil, err
	}
	defer k.dropNamespace(s.Name)
	r := &runner{k: k, s: s, dir: dir, env: []string{
		"PATH=" + filepath.Dir(k.kubectl) + string(os.PathListSeparator) + os.Getenv("PATH"), "KUBECONFIG=" + config, "HOME=" + k.home, "LC_ALL=C", "TZ=UTC", "KUBECTL_KUBERC=false",
	}}
	t := &Transcript{}
	for i, step := range s.Steps {
		switch {
		case step.Run != "":
			c, err := r.command(ctx, step.Run)
			if err != nil {
				return nil, err
			}
			t.Commands = append(t.Commands, c)
		case step.Wait != "":
			limit := max(patience, step.within)
			if last, err := r.wait(ctx, step, limit); err != nil {
				return nil, err
			} else if last != "" {
				t.Failure = fmt.Sprintf("step %d waits in vain: %s\n%s", i+1, step.Wait, last)
			}
		default:
			if err := k.act(ctx, step.Lab); err != nil {
				return nil, fmt.Errorf("%s: %w", step.Lab, err)
			}
		}
		if t.Failure != "" {
			break
		}
	}
	return t, r.collect(ctx, t)
}

// runner does the steps of one scenario on one cluster.
type runner struct {
	k   *kubernetesCluster
	s   *Scenario
	dir string
	env []string
}

func (r *runner) command(ctx context.Context, line string) (Command, error) {
	ctx, cancel := context.WithTimeout(ctx, commandMost)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.dir, r.env, time.Second
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Command{}, err
	}
	return Command{Line: line, Output: string(b[:min(len(b), outputMost)]), Exit: cmd.ProcessState.ExitCode()}, nil
}

// wait repeats the step; the result is the last output if that was in vain.
func (r *runner) wait(ctx context.Context, step Step, limit time.Duration) (string, error) {
	for end := time.Now().Add(limit); ; {
		c, err := r.command(ctx, step.Wait)
		if err != nil {
			return "", err
		}
		if c.Exit == 0 && step.until.MatchString(strings.TrimSpace(c.Output)) {
			return "", nil
		}
		if time.Now().After(end) {
			return c.Output + fmt.Sprintf("\n[exit code %d]", c.Exit), nil
		}
		if err := pause(ctx, again); err != nil {
			return "", err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kinds are what is looked at in a scenario's namespace.
var kinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "persistentvolumeclaims"}, {Version: "v1", Resource: "resourcequotas"}, {Version: "v1", Resource: "limitranges"},
	{Version: "v1", Resource: "serviceaccounts"}, {Version: "v1", Resource: "replicationcontrollers"},
	{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "replicasets"}, {Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"}, {Group: "apps", Version: "v1", Resource: "controllerrevisions"},
	{Group: "batch", Version: "v1", Resource: "jobs"}, {Group: "batch", Version: "v1", Resource: "cronjobs"},
	{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}, {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

// collect reads the namespace when it has settled: Events and statuses follow what they tell of.
func (r *runner) collect(ctx context.Context, t *Transcript) error {
	if r.s.NoObjects && t.Failure == "" {
		return nil
	}
	end := time.Now().Add(calmMost)
	var last []string
	for {
		objects, events, err := r.k.read(ctx, r.s.Name)
		if err != nil {
			return err
		}
		t.Objects, t.Events = objects, events
		now := slices.Concat(canonicalObjects(objects, true), canonicalEvents(events, true))
		if reflect.DeepEqual(now, last) || time.Now().After(end) {
			return nil
		}
		last = now
		if err := pause(ctx, calm); err != nil {
			return err
		}
	}
}

// read lists the namespace's objects, and its Events.
func (k *kubernetesCluster) read(ctx context.Context, namespace string) (objects, events []map[string]any, err error) {
	list := func(gvr schema.GroupVersionResource) ([]map[string]any, error) {
		l, err := k.dynamic.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", gvr.Resource, err)
		}
		var out []map[string]any
		for _, o := range l.Items {
			out = append(out, o.Object)
		}
		return out, nil
	}
	for _, gvr := range kinds {
		some, err := list(gvr)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, some...)
	}
	events, err = list(schema.GroupVersionResource{Version: "v1", Resource: "events"})
	return objects, events, err
}

// newNamespace makes the namespace and waits for what each Pod in it needs.
func (k *kubernetesCluster) newNamespace(ctx context.Context, name string) error {
	namespaces := k.client.CoreV1().Namespaces()
	for {
		_, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err == nil {
			break
		}
		// Of a former run, it is still on its way out.
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
		if err := pause(ctx, again); err != nil {
			return err
		}
	}
	for {
		_, err := k.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			_, err = k.client.CoreV1().ConfigMaps(name).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		}
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		if err := pause(ctx, again); err != nil {
			return err
		}
	}
}

// dropNamespace doesn't wait until it is gone.
func (k *kubernetesCluster) dropNamespace(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	zero := int64(0)
	k.client.CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{})
	k.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
}

// act does what isn't done through the API server.
func (k *kubernetesCluster) act(ctx context.Context, line string) error {
	a, err := parseAct(line)
	if err != nil {
		return err
	}
	kitchens, _ := k.instance.(cluster.KitchenOperator)
	loops, _ := k.instance.(cluster.LoopOperator)
	switch {
	case a.verb == "power" && kitchens != nil:
		return kitchens.SetPower(ctx, a.name, a.on)
	case a.verb == "cable" && kitchens != nil:
		return kitchens.SetCable(ctx, a.name, a.on)
	case a.verb == "loop" && loops != nil:
		return loops.SetLoop(ctx, a.name, !a.on)
	}
	return errors.New("this driver can't do it")
}
