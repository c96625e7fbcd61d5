package lab

import (
	"encoding/json"
	"time"
)

// EventType tells what an event was made from.
type EventType string

// The types of event frames.
const (
	EventObject   EventType = "object"   // an object of the cluster was added, changed or removed
	EventEvent    EventType = "event"    // a Kubernetes Event
	EventAudit    EventType = "audit"    // a write that the API server accepted, with who made it
	EventLab      EventType = "lab"      // something that the lab did: setup, check, reset, state
	EventSnapshot EventType = "snapshot" // the present state, sent first to a client that is too far behind
)

// ObjectRef names a Kubernetes object.
type ObjectRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// Event is one frame of a session's numbered stream. Numbers start at 1, have
// no gaps and survive restarts of the server and of the cluster.
type Event struct {
	N    uint64    `json:"n"`
	Time time.Time `json:"time"`
	Type EventType `json:"type"`
	// Actor is who did it: "learner", "deployment-controller", "kube-scheduler",
	// "kubelet/kitchen-2", ...; empty when unknown, never guessed.
	Actor string `json:"actor"`
	// Verb is create, update, patch, delete, bind for audit; add, update, remove
	// for object; the lab's own words for lab (setup, check, solve, reset, state).
	Verb   string    `json:"verb"`
	Object ObjectRef `json:"object"`
	// Cause is the number of the earlier event that led to this one, or nil
	// where it is not known.
	Cause *uint64 `json:"cause"`
	// Reason and Message are those of a Kubernetes Event, or the lab's.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Text is the message of a lab event in every language.
	Text *Text `json:"text,omitempty"`
	// Warning: a Kubernetes Event of type Warning.
	Warning bool `json:"warning,omitempty"`
	// State is the object's reduced form (ObjectState) for type object and verbs
	// add and update; for type snapshot a list of all of them.
	State json.RawMessage `json:"state,omitempty"`
}

// ObjectState is the reduced form of an object that the page draws from. Only
// the fields of its kind are set.
type ObjectState struct {
	Ref     ObjectRef         `json:"ref"`
	Labels  map[string]string `json:"labels,omitempty"`
	Owner   *ObjectRef        `json:"owner,omitempty"` // the controlling owner
	Created time.Time         `json:"created,omitzero"`
	// Deleting: the object has a deletion timestamp.
	Deleting bool `json:"deleting,omitempty"`

	// Pod.
	Node       string   `json:"node,omitempty"`
	IP         string   `json:"ip,omitempty"`
	Status     string   `json:"status,omitempty"` // kubectl's STATUS column; also for Node and Job
	Ready      int      `json:"ready,omitempty"`  // ready containers; ready replicas
	Containers int      `json:"containers,omitempty"`
	Restarts   int      `json:"restarts,omitempty"`
	Images     []string `json:"images,omitempty"` // of a Pod or a Pod template

	// Node.
	CPU           string   `json:"cpu,omitempty"` // allocatable
	Memory        string   `json:"memory,omitempty"`
	Unschedulable bool     `json:"unschedulable,omitempty"`
	Taints        []string `json:"taints,omitempty"` // key=value:Effect

	// Deployment, ReplicaSet, StatefulSet, DaemonSet, Job.
	Desired   int    `json:"desired,omitempty"`
	Actual    int    `json:"actual,omitempty"`
	Updated   int    `json:"updated,omitempty"`
	Available int    `json:"available,omitempty"`
	Revision  string `json:"revision,omitempty"`

	// Service and EndpointSlice.
	ClusterIP string            `json:"clusterIP,omitempty"`
	Type      string            `json:"type,omitempty"`
	Ports     []string          `json:"ports,omitempty"` // 80/TCP, 80:30080/TCP
	Selector  map[string]string `json:"selector,omitempty"`
	Service   string            `json:"service,omitempty"` // of an EndpointSlice
	Endpoints []Endpoint        `json:"endpoints,omitempty"`
}

// Endpoint is one address of an EndpointSlice.
type Endpoint struct {
	IP    string `json:"ip"`
	Ready bool   `json:"ready"`
	Pod   string `json:"pod,omitempty"`
}
