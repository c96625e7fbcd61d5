// Package cluster runs learners' clusters: the Driver interface that each way
// to run one implements, and the Manager that owns the warm pool, hibernation,
// replacement and recovery after a crash. It knows nothing of lessons or people.
package cluster

import (
	"context"
	"net"
	"time"

	"k8s.io/client-go/rest"

	"kubistro/internal/lab"
)

// Capability is something that a lesson may need and not every driver can do.
type Capability string

// The capabilities of drivers.
const (
	CapEvents         Capability = "events"          // object watch and Kubernetes Events
	CapAudit          Capability = "audit"           // who did it
	CapNetwork        Capability = "network"         // dial into the cluster's network
	CapKitchenPower   Capability = "kitchen-power"   // power a node off and on, and cut it off: KitchenOperator
	CapKitchens       Capability = "kitchens"        // add and remove nodes: KitchenOperator
	CapControlLoops   Capability = "control-loops"   // send a control loop home and call it back: LoopOperator
	CapClock          Capability = "clock"           // compressed time: ClockSetter
	CapEtcd           Capability = "etcd"            // etcd's raw bytes and encryption at rest: StorageOperator
	CapRealContainers Capability = "real-containers" // any image, a real kernel
)

// Progress receives the stages of a start; it must not block.
type Progress func(lab.Stage)

// Instance is a running cluster as its driver gives it. Its methods may be
// called concurrently; after the cluster ended they return errors.
type Instance interface {
	// ID is the name that Create was called with.
	ID() string
	// REST returns a copy of the configuration that reaches the API server as a
	// cluster-admin named "learner" (audit user name "learner").
	REST() *rest.Config
	// DialAPI opens a raw (not TLS) connection to the API server's TLS port, for proxies.
	DialAPI(ctx context.Context) (net.Conn, error)
	// Dial opens a connection inside the cluster's network as the terminal of the
	// learner does: Pod, Service and node addresses and cluster DNS names
	// (a name without a namespace is looked up in "default"). With network "street" it
	// dials as a guest outside of the cluster, with "from:IP" as the Pod of that address.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Audit streams the writes that the API server accepted, from the one after
	// number after on (0: all that is kept); the channel is closed when the
	// cluster or ctx ends.
	Audit(ctx context.Context, after uint64) (<-chan lab.AuditEntry, error)
	// Lost is closed when the cluster has ended by itself (crash or kill).
	Lost() <-chan struct{}
	// Usage is what the cluster costs the machine now.
	Usage(ctx context.Context) (Usage, error)
}

// Usage is what a cluster costs the machine.
type Usage struct {
	PSSBytes   int64         `json:"pssBytes"`
	CPU        time.Duration `json:"cpuNanos"` // user and system time since its start
	DiskBytes  int64         `json:"diskBytes"`
	Goroutines int           `json:"goroutines,omitempty"`
}

// Driver is one way to run clusters. Implementations are safe for concurrent use.
type Driver interface {
	// Name is the driver's name on the command line.
	Name() string
	// Capabilities lists what its clusters can do.
	Capabilities() []Capability
	// Create starts a new cluster and returns when it is ready: API, controllers,
	// nodes Ready and system Pods running. On error nothing of it is left.
	Create(ctx context.Context, id string, spec lab.ClusterSpec, progress Progress) (Instance, error)
	// Delete ends the cluster and removes all that it kept; deleting what isn't there is no error.
	Delete(ctx context.Context, id string) error
	// List finds the clusters of this driver's data folder after a restart of the server.
	List(ctx context.Context) ([]Found, error)
}

// Found is a cluster that List found.
type Found struct {
	ID      string
	Spec    lab.ClusterSpec
	Running bool      // its process answers: Adopt can be used
	Created time.Time // zero when unknown
}

// Adopter takes over a cluster that a former server process left running.
type Adopter interface {
	Adopt(ctx context.Context, id string) (Instance, error)
}

// Sizer says how much memory a running cluster with a learner's Pods needs, in bytes,
// where that isn't some 300 MB.
type Sizer interface {
	Footprint(spec lab.ClusterSpec) int64
}

// Sleeper stops a cluster so that its state is kept and its memory freed, and
// starts it again with that state. Wake also restarts a cluster whose process crashed.
type Sleeper interface {
	Sleep(ctx context.Context, id string) error
	Wake(ctx context.Context, id string, progress Progress) (Instance, error)
}
