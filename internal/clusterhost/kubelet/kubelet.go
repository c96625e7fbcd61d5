// Package kubelet is the simulated node: a small kubelet that speaks the real
// protocols (Node, Lease, Pod status, Events, the kubelet's HTTP API for logs,
// exec, attach and port-forward) and runs containers that are Go programs of the
// pantry on the virtual network.
//
// What it reports follows the kubelet v1.37.2; comments name the file of
// k8s.io/kubernetes that holds the rule. It never starts a process of the host,
// never opens a socket of the host and writes only below Config.StateDir.
package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/pantry/memfs"
	"kubistro/internal/clusterhost/vnet"
)

// DiskBytes is the size of a node's disk, which is in memory: what the node declares as its
// ephemeral storage, what is measured against it, and what really can be written.
const DiskBytes = 256 << 20

// Bounds of what containers can write: everything is kept in memory.
const (
	nodeDiskBytes = DiskBytes
	nodeDiskFiles = 200_000
	hostDiskBytes = 64 << 20 // the node's own file system: hostPath and local volumes
	hostDiskFiles = 40_000
	layerBytes    = 16 << 20 // a container's writable layer
	layerFiles    = 10_000
	emptyDirBytes = 32 << 20
	emptyDirFiles = 10_000
	objectBytes   = 4 << 20 // a volume of ConfigMaps and Secrets
	objectFiles   = 2_000
)

// Config is what a node needs to run.
type Config struct {
	Name        string
	IP          netip.Addr
	ProviderID  string // what the cloud calls the machine; empty: it is none of a cloud's
	Labels      map[string]string
	Taints      []corev1.Taint
	Capacity    corev1.ResourceList
	Allocatable corev1.ResourceList
	// Client speaks to the API server as system:node:NAME, group system:nodes.
	Client   kubernetes.Interface
	Network  *vnet.Network
	Images   *pantry.Registry
	Clock    clock.Clock
	Pace     *pace.Clock // how periods are compressed; nil: not at all
	StateDir string      // checkpoints and the node's disk; survives a restart of the process
	// Disk bounds what several nodes write together; nil: this node has a bound of its own.
	Disk *memfs.Budget
	// Static are Pods that this node runs by itself and mirrors to the API
	// (the control plane's own parts on "office").
	Static []*corev1.Pod
	Log    *slog.Logger

	// Services, when set, is the informer's view of all Services that every node
	// of the host shares; nil makes the node watch Services by itself. Its
	// informer is run by the owner.
	Services       corelisters.ServiceLister
	ServicesSynced cache.InformerSynced
	// ClusterDNS is the nameserver of Pods; zero means 10.96.0.10.
	ClusterDNS netip.Addr
	// NodeDNS is the node's own nameserver, for Pods with dnsPolicy Default; zero: none.
	NodeDNS netip.Addr
	// Certificate serves the kubelet's HTTP API; nil makes a self-signed one.
	Certificate *tls.Certificate
	// AllowPeer says who may open the kubelet's HTTP API; nil allows every
	// address of the virtual network.
	AllowPeer func(netip.Addr) bool
	// Interface is the node's place in the network where it has been attached
	// already (the office, whose API server listens before its kubelet runs); nil:
	// the kubelet attaches Name with IP.
	Interface *vnet.Interface
}

// Kubelet is one node.
type Kubelet struct {
	cfg   Config
	log   *slog.Logger
	clock clock.Clock
	ready chan struct{}
	once  sync.Once // closes ready

	power  *powerSwitch
	work   *gate         // closed while the kubelet itself doesn't run
	disk   *memfs.Budget // what all writable layers, emptyDirs and host of the node hold
	host   *nodeDisk
	images *imageStore

	mu     sync.Mutex
	boot   *boot // nil while the node is off
	iface  *vnet.Interface
	cut    bool
	static []*corev1.Pod // of Config.Static, those that are to run
}

// New prepares a node; nothing runs yet. The error is for a Config that lacks
// something or a certificate that can't be made.
func New(c Config) (*Kubelet, error) {
	switch {
	case c.Name == "":
		return nil, errors.New("kubelet: a node needs a name")
	case !c.IP.IsValid():
		return nil, fmt.Errorf("kubelet %s: a node needs an address", c.Name)
	case c.Client == nil, c.Network == nil, c.Images == nil:
		return nil, fmt.Errorf("kubelet %s: client, network and images must be set", c.Name)
	case c.StateDir == "":
		return nil, fmt.Errorf("kubelet %s: a folder for checkpoints must be set", c.Name)
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Disk == nil {
		c.Disk = memfs.NewBudget(nodeDiskBytes, nodeDiskFiles)
	}
	if !c.ClusterDNS.IsValid() {
		c.ClusterDNS = netip.AddrFrom4([4]byte{10, 96, 0, 10})
	}
	if c.Certificate == nil {
		cert, err := selfSigned(c.Name, c.IP, c.Clock.Now())
		if err != nil {
			return nil, fmt.Errorf("kubelet %s: certificate: %w", c.Name, err)
		}
		c.Certificate = &cert
	}
	k := &Kubelet{
		cfg:    c,
		log:    c.Log.With("node", c.Name),
		clock:  c.Clock,
		ready:  make(chan struct{}),
		power:  newPowerSwitch(),
		work:   newGate(),
		static: slices.Clone(c.Static),
		disk:   c.Disk.Part(nodeDiskBytes, nodeDiskFiles),
		images: newImageStore(c.Images),
	}
	var err error
	if k.host, err = openDisk(c.StateDir, c.Name, k.disk.Part(hostDiskBytes, hostDiskFiles), k.clock); err != nil {
		k.log.Warn("the node's disk is damaged; a part of it is lost", "err", err)
	}
	return k, nil
}

// Run registers the node and works until ctx is done, then freezes the Pods into
// checkpoints (they go on after the next Run without a counted restart). It is
// called once. Its error is for what makes the node unable to work at all, such
// as an address that another interface has.
func (k *Kubelet) Run(ctx context.Context) error {
	frozen, err := loadCheckpoint(k.cfg.StateDir)
	if err != nil {
		k.log.Warn("checkpoints can't be read; containers start anew", "err", err)
	}
	iface := k.cfg.Interface
	if iface == nil {
		if iface, err = k.cfg.Network.Attach(k.cfg.Name, k.cfg.IP); err != nil {
			return fmt.Errorf("kubelet %s: attach to the network: %w", k.cfg.Name, err)
		}
	}
	iface.ServeNodePorts(true)
	k.mu.Lock()
	k.iface = iface
	iface.SetCut(k.cut)
	k.mu.Unlock()
	defer iface.Close()
	defer k.power.close()
	keeping, stop := context.WithCancel(context.Background())
	var disk sync.WaitGroup
	disk.Go(func() {
		k.host.keep(keeping, func(err error) { k.log.Error("the node's disk can't be kept", "err", err) })
	})
	defer func() {
		stop()
		disk.Wait()
	}()
	for ctx.Err() == nil {
		if !k.power.waitOn(ctx) {
			return nil
		}
		iface.SetDown(false)
		b := newBoot(k, iface, frozen)
		frozen = nil
		k.setBoot(b)
		off := b.run(ctx, k.power.offSignal())
		k.setBoot(nil)
		if !off {
			cp := b.freeze()
			if err := saveCheckpoint(k.cfg.StateDir, cp); err != nil {
				return fmt.Errorf("kubelet %s: write checkpoints: %w", k.cfg.Name, err)
			}
			return nil
		}
		iface.SetDown(true)
		b.cut()
		k.power.confirmOff()
		k.power.waitOn(ctx)
		b.closeInterfaces()
	}
	return nil
}

// Ready is closed when the node is registered and has reported Ready for the first time.
func (k *Kubelet) Ready() <-chan struct{} { return k.ready }

// PowerOff stops the node as a tripped breaker does: containers die at once,
// nothing is reported, its addresses go silent. It returns when that is so.
func (k *Kubelet) PowerOff() { k.power.set(false) }

// PowerOn boots it again: the containers of its Pods start anew, each a counted restart.
func (k *Kubelet) PowerOn() { k.power.set(true) }

func (k *Kubelet) setBoot(b *boot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.boot = b
}

func (k *Kubelet) current() *boot {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.boot
}
