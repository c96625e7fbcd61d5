// Package controlplane runs a learner's whole cluster in one process: etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler as they are, and the
// simulated nodes on the virtual network. It opens unix sockets in the
// cluster's folder and no port, and what its API server can be made to dial
// leads into the virtual network only. It is the only package that imports
// k8s.io/kubernetes.
//
// Kubernetes keeps feature gates, metrics and names of informers per process, so a
// process runs one Host at a time.
package controlplane

import (
	"log/slog"
	"net/netip"
	"time"

	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/noderules"
	"kubistro/internal/lab"
)

// The cluster's shape, as kubeadm and kind have it.
const (
	officeName   = noderules.Office
	podCIDR      = "10.244.0.0/16"
	serviceCIDR  = "10.96.0.0/16"
	apiServiceIP = "10.96.0.1"
	dnsServiceIP = "10.96.0.10"
	clusterZone  = "cluster.local"
	apiPort      = 6443
)

// officeIP is the node address of the office, streetIP that of the world before
// the door, dnsIP that of cluster DNS.
var (
	dnsIP    = netip.MustParseAddr(dnsServiceIP)
	officeIP = netip.AddrFrom4([4]byte{172, 18, 0, 2})
	streetIP = netip.AddrFrom4([4]byte{172, 18, 0, 1})
)

// Config is what a cluster needs to run.
type Config struct {
	// ID names the cluster in its status.
	ID string
	// Dir is the cluster's folder; see package controlapi.
	Dir string
	// Spec is the shape of the cluster. It must stay the same for a folder.
	Spec lab.ClusterSpec
	// EtcdQuota bounds etcd's database in bytes.
	EtcdQuota int64
	// Clock is the time of the simulated nodes.
	Clock clock.Clock
	Log   *slog.Logger
}

// stopTimeout is how long each part may take to end in a graceful stop.
const stopTimeout = 2 * time.Second
