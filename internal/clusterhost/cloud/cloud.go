// Package cloud is the simulated cloud that a cluster's autoscalers order machines
// from: a catalogue of sizes with prices, and a small HTTP API in the virtual
// network, which a learner's Pods can call as well. What it opens are simulated
// nodes; how many is bounded by a quota.
//
// It holds the API's server and client. The machines themselves are the owner's
// business, behind Machines.
package cloud

import (
	"context"
	"fmt"
	"time"
)

// Address is where the API listens in the virtual network, as a cloud's own addresses
// are outside of the cluster's ranges.
const Address = "172.18.255.254"

// Endpoint is the API's base URL.
const Endpoint = "http://" + Address

// MaxInstances is the quota: how many machines a cluster may have from here at a time.
const MaxInstances = 20

// ProviderPrefix begins the providerID of a machine: kubistro:///ZONE/ID.
const ProviderPrefix = "kubistro:///"

// Instance is a machine that was ordered.
type Instance struct {
	ID           string            `json:"id"`   // i-0123456789abcdef0
	Node         string            `json:"node"` // its node's name
	Type         string            `json:"type"`
	Zone         string            `json:"zone"`
	CapacityType string            `json:"capacityType"`
	Address      string            `json:"address"`
	Token        string            `json:"token,omitempty"` // of its order
	Tags         map[string]string `json:"tags,omitempty"`
	Launched     time.Time         `json:"launched"`
}

// ProviderID is the machine's name in Node.spec.providerID.
func (i Instance) ProviderID() string { return ProviderPrefix + i.Zone + "/" + i.ID }

// LaunchRequest orders a machine.
type LaunchRequest struct {
	Type         string `json:"type"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType,omitempty"` // on-demand when empty
	// Labels and Taints are those that its kubelet registers with; taints as kubectl taint takes them.
	Labels map[string]string `json:"labels,omitempty"`
	Taints []string          `json:"taints,omitempty"`
	// Token makes the order safe to repeat: one with the token of a machine that
	// there is gives that machine.
	Token string            `json:"token,omitempty"`
	Tags  map[string]string `json:"tags,omitempty"`
}

// Machines opens and closes machines. Its methods are called concurrently; their
// errors are *Error where the request is to blame or the quota.
type Machines interface {
	// Launch opens a machine; its node joins later.
	Launch(ctx context.Context, r LaunchRequest) (Instance, error)
	// Terminate closes a machine at once, with its Node.
	Terminate(ctx context.Context, id string) error
	// Instances are the machines that there are, in the order of their launch.
	Instances() []Instance
}

// Codes of errors.
const (
	CodeInvalid     = "InvalidParameterValue"
	CodeNotFound    = "InvalidInstanceID.NotFound"
	CodeLimit       = "InstanceLimitExceeded"
	CodeUnavailable = "Unavailable"
)

// Error is what a refused request comes to.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Errorf makes an Error.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Validate refuses an order that the catalogue can't serve; it fills in what may be empty.
func (r *LaunchRequest) Validate() error {
	if r.CapacityType == "" {
		r.CapacityType = OnDemand
	}
	t, ok := Find(r.Type)
	switch {
	case !ok:
		return Errorf(CodeInvalid, "there is no instance type %q", r.Type)
	case !t.Offered(r.Zone, r.CapacityType):
		return Errorf(CodeInvalid, "%s can't be had in zone %q as %q", r.Type, r.Zone, r.CapacityType)
	case len(r.Tags) > maxTags || len(r.Token) > maxText:
		return Errorf(CodeInvalid, "more than %d tags, or a token longer than %d characters", maxTags, maxText)
	}
	for k, v := range r.Tags {
		if len(k) > maxText || len(v) > maxText {
			return Errorf(CodeInvalid, "a tag is longer than %d characters", maxText)
		}
	}
	return nil
}

// Bounds of what is kept with a machine.
const (
	maxTags = 20
	maxText = 256
)
