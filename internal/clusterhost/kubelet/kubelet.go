// Package kubelet is the simulated node: a small kubelet that speaks the real
// protocols (Node, Lease, Pod status, Events, the kubelet's HTTP API for logs,
// exec, attach and port-forward) and runs containers that are Go programs of the
// pantry on the virtual network.
package kubelet

import (
	"context"
	"log/slog"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/vnet"
)

// Config is what a node needs to run.
type Config struct {
	Name        string
	IP          netip.Addr
	Labels      map[string]string
	Taints      []corev1.Taint
	Capacity    corev1.ResourceList
	Allocatable corev1.ResourceList
	// Client speaks to the API server as system:node:NAME, group system:nodes.
	Client   kubernetes.Interface
	Network  *vnet.Network
	Images   *pantry.Registry
	Clock    clock.Clock
	StateDir string // checkpoints; survives a restart of the process
	// Static are Pods that this node runs by itself and mirrors to the API
	// (the control plane's own parts on "office").
	Static []*corev1.Pod
	Log    *slog.Logger
}

// Kubelet is one node.
type Kubelet struct{}

// New prepares a node; nothing runs yet.
func New(c Config) (*Kubelet, error) { panic("being built") }

// Run registers the node and works until ctx is done, then freezes the Pods into
// checkpoints (they go on after the next Run without a counted restart).
func (k *Kubelet) Run(ctx context.Context) error { panic("being built") }

// Ready is closed when the node is registered and has reported Ready for the first time.
func (k *Kubelet) Ready() <-chan struct{} { panic("being built") }

// PowerOff stops the node as a tripped breaker does: containers die at once,
// nothing is reported, its addresses go silent.
func (k *Kubelet) PowerOff() { panic("being built") }

// PowerOn boots it again: the containers of its Pods start anew, each a counted restart.
func (k *Kubelet) PowerOn() { panic("being built") }
