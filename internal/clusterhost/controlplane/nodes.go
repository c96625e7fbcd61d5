package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kubistro/internal/clusterhost/addons"
	"kubistro/internal/clusterhost/kubelet"
	"kubistro/internal/clusterhost/loops"
	"kubistro/internal/clusterhost/noderules"
	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/pantry/memfs"
	"kubistro/internal/lab"
)

// Bounds of what all containers and volumes of a cluster hold together, in memory.
const (
	clusterDiskBytes = 256 << 20
	clusterDiskFiles = 300_000
)

// nodes are the cluster's simulated nodes. It is safe for concurrent use.
type nodes struct {
	host   *Host
	images *pantry.Registry
	disk   *memfs.Budget
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu  sync.Mutex
	all map[string]*node
}

// node is a kubelet that runs, or will once the office is there.
type node struct {
	*kubelet.Kubelet
	kitchen kitchen // of the office: the name only
	dir     string
	cancel  context.CancelFunc
	done    chan struct{}
}

// officeConfig describes the office as kubeadm makes it.
func officeConfig() (kubelet.Config, error) {
	c := kubelet.Config{
		Name: officeName, IP: officeIP, Static: addons.StaticPods(officeName),
		Taints: []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}},
	}
	return c, setSize(&c, "2", "2Gi")
}

// kitchenConfig describes a kitchen as the course, or who added it, wants it.
func kitchenConfig(k kitchen) (kubelet.Config, error) {
	c := kubelet.Config{Name: k.Name, IP: k.Address, Labels: maps.Clone(k.Labels)}
	if k.Instance != nil {
		c.ProviderID = k.Instance.ProviderID()
	}
	var err error
	if c.Taints, err = noderules.Taints(k.Taints); err == nil {
		err = setSize(&c, k.CPU, k.Memory)
	}
	if err == nil {
		err = addResources(&c, k.Resources)
	}
	if err != nil {
		return c, fmt.Errorf("node %s: %w", k.Name, err)
	}
	return c, nil
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
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(kubelet.DiskBytes, resource.BinarySI),
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
func (h *Host) startNodes(ctx context.Context) (*nodes, error) {
	n := &nodes{host: h, images: pantry.Default(), disk: memfs.NewBudget(clusterDiskBytes, clusterDiskFiles), all: map[string]*node{}}
	n.ctx, n.cancel = context.WithCancel(ctx)
	own := addons.Images(n.list, h)
	if helper, err := addons.HelperImage(n.images); err == nil {
		own = append(own, helper)
	}
	for _, i := range own {
		if err := n.images.Add(i); err != nil {
			n.cancel()
			return nil, fmt.Errorf("images: %w", err)
		}
	}
	c, err := officeConfig()
	if err == nil {
		err = n.add(c, kitchen{Kitchen: lab.Kitchen{Name: officeName}})
	}
	for _, k := range h.kitchens {
		if err == nil {
			c, err = kitchenConfig(k)
		}
		if err == nil {
			err = n.add(c, k)
		}
	}
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// add makes a node and runs it once the office is there: Pod address ranges are given
// in the order of arrival, and the office has the first on a real cluster.
func (n *nodes) add(c kubelet.Config, kitchen kitchen) (err error) {
	h := n.host
	if c.Interface = h.office; c.Name != officeName {
		if c.Interface, err = h.net.Attach(c.Name, c.IP); err != nil {
			return fmt.Errorf("node %s: %w", c.Name, err)
		}
	}
	k, err := n.newKubelet(c)
	if err != nil {
		if c.Name != officeName {
			c.Interface.Close()
		}
		return fmt.Errorf("node %s: %w", c.Name, err)
	}
	for _, name := range h.changes.Home {
		if name == loops.Kubelet+c.Name {
			k.SetWorking(false)
		}
		if c.Name == officeName && (name == loops.Scheduler || name == loops.Manager) {
			if err := k.SetStatic(name, false); err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithCancel(n.ctx)
	new := &node{Kubelet: k, kitchen: kitchen, dir: n.dir(c.Name), cancel: cancel, done: make(chan struct{})}
	n.mu.Lock()
	n.all[c.Name] = new
	office := n.all[officeName]
	n.mu.Unlock()
	n.wg.Go(func() {
		defer close(new.done)
		if new != office {
			select {
			case <-office.Ready():
			case <-ctx.Done():
				c.Interface.Close()
				return
			}
		}
		if err := k.Run(ctx); err != nil {
			h.log.Error("node ended", "node", c.Name, "err", err)
		}
	})
	return nil
}

// newKubelet makes the kubelet of a node. It reaches the API server through the
// node's own place in the network and with a certificate of its own, so that
// whatever cuts the node off cuts its kubelet off.
func (n *nodes) newKubelet(c kubelet.Config) (*kubelet.Kubelet, error) {
	h := n.host
	cert, err := h.pki.nodeCertificate(c.Name)
	if err != nil {
		return nil, err
	}
	api := netip.AddrPortFrom(officeIP, apiPort).String()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return c.Interface.DialContext(ctx, "tcp", api)
	}
	transport, err := newTransport(dial, h.pki.caPEM, serverName)
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig.Certificates = []tls.Certificate{cert}
	// A connection that keeps silent is given up, as client-go does it: apimachinery/pkg/util/net/http.go.
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	if c.Client, err = kubernetes.NewForConfig(restConfig(transport, "", "kubelet")); err != nil {
		return nil, err
	}
	services := h.api.informers.Core().V1().Services()
	c.Network, c.Images, c.Clock, c.Pace, c.Log = h.net, n.images, h.cfg.Clock, h.clock, h.log
	c.StateDir, c.Disk, c.NodeDNS = n.dir(c.Name), n.disk, streetIP
	c.Services, c.ServicesSynced = services.Lister(), services.Informer().HasSynced
	c.AllowPeer = func(ip netip.Addr) bool { return ip == officeIP }
	return kubelet.New(c)
}

func (n *nodes) dir(name string) string { return filepath.Join(n.host.cfg.Dir, "nodes", name) }

// get finds a node; nil when there is none.
func (n *nodes) get(name string) *node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[name]
}

// names lists the nodes' names in order.
func (n *nodes) names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.all))
}

// list is all nodes, for the metrics server.
func (n *nodes) list() []*kubelet.Kubelet {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]*kubelet.Kubelet, 0, len(n.all))
	for _, k := range n.all {
		out = append(out, k.Kubelet)
	}
	return out
}

// officeRole is what kubeadm adds to the office when it has joined; NodeRestriction
// forbids a node to give itself these labels.
const officeRole = `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":"","node.kubernetes.io/exclude-from-external-load-balancers":""}}}`

// ready waits until every node whose kubelet works has reported Ready.
func (n *nodes) ready(ctx context.Context) error {
	for _, k := range n.list() {
		if !k.Working() {
			continue
		}
		select {
		case <-k.Ready():
		case <-ctx.Done():
			return fmt.Errorf("a node isn't ready: %w", context.Cause(ctx))
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
