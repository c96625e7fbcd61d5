// Package controlapi is the small control API of a cluster host: HTTP with JSON
// over a unix socket in the cluster's folder. It holds the types and the client;
// the server is in package clusterhost/controlserver. Who can open the socket
// rules the cluster, so its folder has mode 0700.
//
// The cluster's folder DIR holds:
//
//	spec.json     lab.ClusterSpec, written by the driver before the first start
//	control.sock  the control API
//	api.sock      the API server's TLS port, on a unix socket (no TCP port is opened)
//	pid           the process id, written at start
//	log           the host's own log (stderr)
//	pki/          CA, serving certificate, service account key, tokens
//	etcd/         the whiteboard
//	encryption.yaml  the EncryptionConfiguration, once one was set
//	nodes/        checkpoints and disks of the simulated kubelets
//	changes.json  what was changed since: kitchens, control loops that are home, the clock
//
// Program: clusterhost run --dir DIR [--orphan 10m] [--memory 512Mi] [--etcd-quota 128Mi]. It exits by
// itself when no one has used the control API for --orphan. SIGTERM: the graceful
// stop that sleep uses (Pods are frozen into checkpoints and go on after the
// next start, without a restart being counted). After a crash or SIGKILL the
// next start counts a restart of every container, as after a power cut of a real node.
package controlapi

import (
	"time"

	"kubistro/internal/lab"
)

// Paths of the control API.
const (
	PathStatus   = "/v1/status"   // GET: Status; also keeps the host from ending as an orphan
	PathAccess   = "/v1/access"   // GET: Access; 503 until the API server answers
	PathAudit    = "/v1/audit"    // GET ?after=N: stream of lab.AuditEntry, one JSON object a line
	PathDial     = "/v1/dial"     // CONNECT-like: GET with Upgrade: kubistro-dial, ?network=tcp&address=host:port (or network=street, or from:IP); 101 and raw bytes, or an error status with DialError
	PathShutdown = "/v1/shutdown" // POST: 202, then the graceful stop
	PathUsage    = "/v1/usage"    // GET: Usage
	PathPower    = "/v1/power"    // POST PowerRequest: power a kitchen off or on
	PathCable    = "/v1/cable"    // POST CableRequest: pull a kitchen's network cable or plug it in
	PathKitchens = "/v1/kitchens" // GET: []lab.KitchenState; POST lab.Kitchen: add one; DELETE /v1/kitchens/NAME: remove it
	PathLoops    = "/v1/loops"    // GET: []lab.ControlLoop; POST LoopRequest: send one home or call it back
	PathClock    = "/v1/clock"    // GET: lab.Clock; PUT ClockRequest
)

// Files of the cluster's folder.
const (
	FileSpec    = "spec.json"
	FileControl = "control.sock"
	FileAPI     = "api.sock"
	FilePID     = "pid"
	FileLog     = "log"
)

// Names of the stages of a start, in order.
const (
	StageEtcd        = "etcd"
	StageAPIServer   = "apiserver"
	StageControllers = "controllers"
	StageScheduler   = "scheduler"
	StageKitchens    = "kitchens"
	StageReady       = "ready"
)

// Status is how far the cluster is.
type Status struct {
	ID      string      `json:"id"`
	PID     int         `json:"pid"`
	Started time.Time   `json:"started"`
	Ready   bool        `json:"ready"`
	Stages  []lab.Stage `json:"stages"`
	Problem string      `json:"problem,omitempty"` // a start that failed: why, for the log
}

// Access is how to reach the API server.
type Access struct {
	Socket     string `json:"socket"`     // absolute path of api.sock
	ServerName string `json:"serverName"` // for TLS verification
	CAPEM      []byte `json:"caPEM"`
	Token      string `json:"token"` // bearer token of user "learner", group system:masters
}

// PowerRequest powers a node off (silence, as a tripped breaker) or on.
type PowerRequest struct {
	Node string `json:"node"`
	On   bool   `json:"on"`
}

// CableRequest pulls a node's network cable or plugs it in: the node runs on, and
// nothing passes between it and the rest of the cluster.
type CableRequest struct {
	Node string `json:"node"`
	In   bool   `json:"in"`
}

// LoopRequest sends a control loop home or calls it back. Name is as in
// lab.ControlLoop; a controller may be called by its alias (deployment).
type LoopRequest struct {
	Name string `json:"name"`
	Home bool   `json:"home"`
}

// ClockRequest sets how many times faster the periods of lab.Clock pass.
type ClockRequest struct {
	Speed int `json:"speed"`
}

// Usage is what the host process uses.
type Usage struct {
	PSSBytes   int64 `json:"pssBytes"`
	CPUNanos   int64 `json:"cpuNanos"`
	EtcdBytes  int64 `json:"etcdBytes"`
	Goroutines int   `json:"goroutines"`
}

// DialError is the body of a refused dial. Kind is what the learner's tools
// would see: "refused", "timeout", "unreachable", "name" (no such host).
type DialError struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}
