package controlplane

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kubistro/internal/clusterhost/addons"
	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/clusterhost/kubelet"
	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/pantry/memfs"
	"kubistro/internal/lab"
)

// Bounds of what all containers and volumes of a cluster hold together, in memory.
const (
	clusterDiskBytes = 256 << 20
	clusterDiskFiles = 300_000
)

// nodes are the cluster's simulated nodes.
type nodes struct {
	kubelets map[string]*kubelet.Kubelet // complete before any of them runs
	cancel   context.CancelFunc
	wg       sync.WaitGroup
}

// nodeNames lists the office and the kitchens.
func nodeNames(s lab.ClusterSpec) []string {
	out := []string{officeName}
	for _, k := range s.Kitchens {
		out = append(out, k.Name)
	}
	return out
}

// nodeConfigs describes the nodes: the office as kubeadm makes it, the kitchens as the course wants them.
func nodeConfigs(s lab.ClusterSpec) ([]kubelet.Config, error) {
	office := kubelet.Config{
		Name: officeName, IP: officeIP,
		Taints: []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}},
	}
	if err := setSize(&office, "2", "2Gi"); err != nil {
		return nil, err
	}
	out := []kubelet.Config{office}
	for i, k := range s.Kitchens {
		c := kubelet.Config{Name: k.Name, IP: kitchenIP(i), Labels: maps.Clone(k.Labels)}
		if err := setSize(&c, k.CPU, k.Memory); err != nil {
			return nil, fmt.Errorf("node %s: %w", k.Name, err)
		}
		if err := addResources(&c, k.Resources); err != nil {
			return nil, fmt.Errorf("node %s: %w", k.Name, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// addResources gives a node extended resources, as a device plugin would.
func addResources(c *kubelet.Config, extended map[string]string) error {
	for name, amount := range extended {
		if err := lab.CheckExtendedResource(name, amount); err != nil {
			return err
		}
		q, err := resource.ParseQuantity(amount)
		if err != nil {
			return fmt.Errorf("%s %q: %w", name, amount, err)
		}
		c.Capacity[corev1.ResourceName(name)], c.Allocatable[corev1.ResourceName(name)] = q, q
	}
	return nil
}

func setSize(c *kubelet.Config, cpu, memory string) error {
	list := corev1.ResourceList{
		corev1.ResourcePods:             resource.MustParse("110"),
		corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
	}
	for name, quantity := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		q, err := resource.ParseQuantity(quantity)
		if err != nil {
			return fmt.Errorf("%s %q: %w", name, quantity, err)
		}
		list[name] = q
	}
	// What a kitchen is said to have is for its Pods; the machine has what the
	// kubelet's eviction threshold keeps back besides.
	c.Capacity, c.Allocatable = list.DeepCopy(), list
	all := list.Memory().DeepCopy()
	all.Add(*resource.NewQuantity(kubelet.MemoryReserve, resource.BinarySI))
	c.Capacity[corev1.ResourceMemory] = all
	return nil
}

// startNodes runs all nodes; they register by themselves. It returns at once.
func (h *Host) startNodes(ctx context.Context, transport http.RoundTripper) (*nodes, error) {
	configs, err := nodeConfigs(h.cfg.Spec)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	n := &nodes{kubelets: map[string]*kubelet.Kubelet{}, cancel: cancel}
	images := pantry.Default()
	own := addons.Images(n.list)
	if helper, err := addons.HelperImage(images); err == nil {
		own = append(own, helper)
	}
	for _, i := range own {
		if err := images.Add(i); err != nil {
			cancel()
			return nil, fmt.Errorf("images: %w", err)
		}
	}
	services := h.api.informers.Core().V1().Services()
	disk := memfs.NewBudget(clusterDiskBytes, clusterDiskFiles)
	for _, c := range configs {
		client, err := kubernetes.NewForConfig(restConfig(transport, h.pki.token("system:node:"+c.Name), "kubelet"))
		if err != nil {
			n.close()
			return nil, fmt.Errorf("node %s: %w", c.Name, err)
		}
		c.Client, c.Network, c.Images, c.Clock, c.Log = client, h.net, images, h.cfg.Clock, h.log
		c.Disk = disk
		c.NodeDNS = streetIP
		c.StateDir = filepath.Join(h.cfg.Dir, "nodes", c.Name)
		c.Services, c.ServicesSynced = services.Lister(), services.Informer().HasSynced
		c.AllowPeer = func(ip netip.Addr) bool { return ip == officeIP }
		if c.Name == officeName {
			c.Interface, c.Static = h.office, addons.StaticPods(officeName)
		}
		k, err := kubelet.New(c)
		if err != nil {
			n.close()
			return nil, fmt.Errorf("node %s: %w", c.Name, err)
		}
		n.kubelets[c.Name] = k
	}
	n.run(ctx, h.log)
	return n, nil
}

// run starts the office and, once it is there, the kitchens: Pod address ranges are
// given in the order of arrival, and the office has the first on a real cluster.
func (n *nodes) run(ctx context.Context, log *slog.Logger) {
	office := n.kubelets[officeName]
	for name, k := range n.kubelets {
		n.wg.Go(func() {
			if k != office {
				select {
				case <-office.Ready():
				case <-ctx.Done():
					return
				}
			}
			if err := k.Run(ctx); err != nil {
				log.Error("node ended", "node", name, "err", err)
			}
		})
	}
}

// list is all nodes, for the metrics server.
func (n *nodes) list() []*kubelet.Kubelet { return slices.Collect(maps.Values(n.kubelets)) }

// officeRole is what kubeadm adds to the office when it has joined; NodeRestriction
// forbids a node to give itself these labels.
const officeRole = `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":"","node.kubernetes.io/exclude-from-external-load-balancers":""}}}`

// ready waits until every node has reported Ready.
func (n *nodes) ready(ctx context.Context) error {
	for name, k := range n.kubelets {
		select {
		case <-k.Ready():
		case <-ctx.Done():
			return fmt.Errorf("node %s: %w", name, context.Cause(ctx))
		}
	}
	return nil
}

// labelOffice gives the office its role.
func labelOffice(ctx context.Context, loopback *rest.Config) error {
	client, err := kubernetes.NewForConfig(loopback)
	if err == nil {
		_, err = client.CoreV1().Nodes().Patch(ctx, officeName, types.StrategicMergePatchType, []byte(officeRole), metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("role of the office: %w", err)
	}
	return nil
}

// close freezes all Pods into checkpoints and waits for that.
func (n *nodes) close() {
	n.cancel()
	n.wg.Wait()
}

// Power powers a kitchen off or on; the office has no switch.
func (h *Host) Power(r controlapi.PowerRequest) error {
	h.mu.Lock()
	n := h.nodes
	h.mu.Unlock()
	if n == nil || n.kubelets[r.Node] == nil || r.Node == officeName {
		return fmt.Errorf("there is no kitchen %q", r.Node)
	}
	if r.On {
		n.kubelets[r.Node].PowerOn()
	} else {
		n.kubelets[r.Node].PowerOff()
	}
	return nil
}
