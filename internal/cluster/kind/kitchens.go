package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/clusterhost/loops"
	"kubistro/internal/clusterhost/noderules"
	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/lab"
)

// maxKitchens is how many a cluster may have: each is a container of some 150 MB.
const maxKitchens = 12

// AddKitchen opens a kitchen and returns when its node is Ready. kind can't add nodes to
// a cluster: the container is made as kind makes a worker's, and joins by kubeadm.
func (in *instance) AddKitchen(ctx context.Context, k lab.Kitchen) error {
	return in.changing(ctx, func(ctx context.Context, r *record) error {
		if err := noderules.Validate(k); err != nil {
			return fmt.Errorf("%w: %w", errInvalid, err)
		}
		switch kitchens := r.kitchens(); {
		case slices.Contains(kitchens, k.Name):
			return fmt.Errorf("%w: there is a node %s already", errConflict, k.Name)
		case len(kitchens) >= maxKitchens:
			return fmt.Errorf("%w: a cluster has at most %d kitchens", errConflict, maxKitchens)
		}
		m, err := machineOf(ctx, in.d.engine)
		if err != nil {
			return err
		}
		clock, err := pace.New(r.speed())
		if err != nil {
			return err
		}
		patch, err := kubeletPatch(&k, m, clock)
		if err != nil {
			return err
		}
		container, err := in.d.freeName(ctx, in.d.prefix+in.id)
		if err != nil {
			return err
		}
		next := *r
		next.Nodes = maps.Clone(r.Nodes)
		next.Nodes[k.Name] = container
		next.Changes.Added = append(slices.Clone(r.Changes.Added), k)
		if err := in.join(ctx, &next, k, patch); err != nil {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
			defer cancel()
			if rmErr := in.takeAway(clean, container, k.Name); rmErr != nil {
				in.d.log.Error("kitchen that didn't open leaves something behind", "cluster", in.id, "kitchen", k.Name, "err", rmErr)
			}
			return err
		}
		*r = next
		return in.currentAgent().Close() // it is to know the new node's address
	})
}

// RemoveKitchen takes a kitchen away with its node; what runs there ends without warning.
func (in *instance) RemoveKitchen(ctx context.Context, name string) error {
	return in.changing(ctx, func(ctx context.Context, r *record) error {
		container, err := r.container(name)
		if err != nil {
			return err
		}
		if err := in.takeAway(ctx, container, name); err != nil {
			return err
		}
		if r.added(name) {
			r.Changes.Added = slices.DeleteFunc(slices.Clone(r.Changes.Added), func(k lab.Kitchen) bool { return k.Name == name })
		} else {
			r.Changes.Removed = set(r.Changes.Removed, name, true)
		}
		r.Nodes = maps.Clone(r.Nodes)
		delete(r.Nodes, name)
		r.Changes.Off, r.Changes.Cut = set(r.Changes.Off, name, false), set(r.Changes.Cut, name, false)
		r.Changes.Home = set(r.Changes.Home, loops.Kubelet+name, false)
		return nil
	})
}

// takeAway removes a node's container and its Node.
func (in *instance) takeAway(ctx context.Context, container, node string) error {
	if _, err := in.d.engine.run(ctx, nil, "rm", "-f", "-v", container); err != nil && !missingContainer(err) {
		return err
	}
	api, err := in.admin()
	if err != nil {
		return err
	}
	if err := api.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

var workerNumber = regexp.MustCompile(`-worker([0-9]*)$`)

// freeName is the name that kind would give the next worker.
func (d *Driver) freeName(ctx context.Context, cluster string) (string, error) {
	names, err := containers(ctx, d.engine, cluster)
	if err != nil {
		return "", err
	}
	last := 1
	for _, name := range names {
		if m := workerNumber.FindStringSubmatch(name); m != nil {
			n, _ := strconv.Atoi(m[1]) // none is the first
			last = max(last, n)
		}
	}
	return fmt.Sprintf("%s-worker%d", cluster, last+1), nil
}

// join makes a node's container and lets it join the cluster.
func (in *instance) join(ctx context.Context, r *record, k lab.Kitchen, patch string) error {
	e, container := in.d.engine, r.Nodes[k.Name]
	like, err := inspectNode(ctx, e, r.office())
	if err != nil {
		return err
	}
	if _, err := e.run(ctx, nil, workerArguments(container, in.d.prefix+in.id, like)...); err != nil {
		return err
	}
	// systemd has come so far when containerd answers; kind waits for a line in its log.
	if _, err := inNode(ctx, e, container, "timeout", "60", "sh", "-c", "until crictl info >/dev/null 2>&1; do sleep 0.2; done"); err != nil {
		return err
	}
	ip, err := address(ctx, e, container)
	if err != nil {
		return err
	}
	if err := in.d.filter(ctx, r); err != nil { // all nodes are to know the new one's address
		return err
	}
	admin, err := inNode(ctx, e, r.office(), "cat", "/etc/kubernetes/admin.conf")
	if err != nil {
		return err
	}
	config, err := joinConfig(k, ip, "kind://"+in.d.opt.Runtime+"/"+in.d.prefix+in.id+"/"+container)
	if err != nil {
		return err
	}
	for path, content := range map[string]string{patchesDir + "/kubeletconfiguration+merge.yaml": patch, "/kind/kubeadm.conf": config, joinAs: admin} {
		if err := writeFile(ctx, e, container, path, "600", strings.NewReader(content)); err != nil {
			return err
		}
	}
	if out, err := inNode(ctx, e, container, "kubeadm", "join", "--config", "/kind/kubeadm.conf"); err != nil {
		return fmt.Errorf("%w: %s", err, lastBytes(out, 1<<10))
	}
	if _, err := inNode(ctx, e, container, "rm", joinAs); err != nil {
		return err
	}
	for _, path := range in.d.opt.Archives {
		if err := loadArchive(ctx, e, container, path); err != nil {
			return err
		}
	}
	api, err := in.admin()
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, api, []string{k.Name}); err != nil {
		return err
	}
	return setResources(ctx, api, k)
}

// likeNode is what a new node's container takes from one that kind has made on this machine.
type likeNode struct {
	Config struct {
		Image string
		Env   []string
	}
	HostConfig struct {
		UsernsMode string
		Binds      []string
		Devices    []struct{ PathOnHost string }
	}
	NetworkSettings struct {
		Networks map[string]any
	}
}

func inspectNode(ctx context.Context, e engine, container string) (likeNode, error) {
	out, err := e.run(ctx, nil, "inspect", "--type", "container", container)
	if err != nil {
		return likeNode{}, err
	}
	var list []likeNode
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
		return likeNode{}, fmt.Errorf("inspect %s: %d answers, %w", container, len(list), err)
	}
	return list[0], nil
}

// workerArguments run a container as kind runs a worker's, pkg/cluster/internal/providers/docker/provision.go.
func workerArguments(container, cluster string, like likeNode) []string {
	args := []string{
		"run", "--name", container, "--hostname", container, "--detach", "--tty",
		"--label", labelCluster + "=" + cluster, "--label", labelRole + "=worker",
		"--privileged", "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined",
		"--tmpfs", "/tmp", "--tmpfs", "/run", "--volume", "/var",
		"--restart=on-failure:1", "--init=false", "--cgroupns=private",
	}
	for network := range like.NetworkSettings.Networks {
		args = append(args, "--net", network)
	}
	for _, bind := range like.HostConfig.Binds { // /lib/modules, and /dev/mapper where kind needs it
		args = append(args, "--volume", bind)
	}
	for _, d := range like.HostConfig.Devices {
		args = append(args, "--device", d.PathOnHost)
	}
	if like.HostConfig.UsernsMode != "" {
		args = append(args, "--userns="+like.HostConfig.UsernsMode)
	}
	for _, env := range like.Config.Env {
		name, _, _ := strings.Cut(env, "=")
		if strings.HasSuffix(strings.ToUpper(name), "_PROXY") || strings.HasPrefix(name, "KIND_") {
			args = append(args, "-e", env)
		}
	}
	return append(args, like.Config.Image)
}

// joinAs is where the administrator's kubeconfig lies while a node joins. A bootstrap
// token would lie in kube-system for that time, where learners can read it.
const joinAs = "/kind/join.conf"

// joinConfig is kubeadm's configuration of a node that joins, as kind's for its workers.
func joinConfig(k lab.Kitchen, ip, provider string) (string, error) {
	taints, err := noderules.Taints(k.Taints)
	if err != nil {
		return "", err
	}
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(k.Labels)) {
		labels = append(labels, name+"="+k.Labels[name])
	}
	return document("JoinConfiguration", map[string]any{
		"discovery": map[string]any{"file": map[string]any{"kubeConfigPath": joinAs}},
		"nodeRegistration": map[string]any{
			"name": k.Name, "taints": taints, "criSocket": "unix:///run/containerd/containerd.sock",
			"kubeletExtraArgs": arguments(map[string]string{"node-ip": ip, "provider-id": provider, "node-labels": strings.Join(labels, ",")}),
		},
		"patches":    map[string]any{"directory": patchesDir},
		"timeouts":   kubeadmTimeouts,
		"skipPhases": []string{"preflight"},
	}), nil
}

// setResources gives a node its extended resources, which the kubelet leaves as they are.
func setResources(ctx context.Context, api kubernetes.Interface, k lab.Kitchen) error {
	if len(k.Resources) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": k.Resources}})
	if err != nil {
		return err
	}
	_, err = api.CoreV1().Nodes().Patch(ctx, k.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
