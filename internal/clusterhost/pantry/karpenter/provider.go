package karpenter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/awslabs/operatorpkg/object"
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"kubistro/internal/clusterhost/cloud"
)

// Tags of machines, as Karpenter's provider for AWS sets them.
const (
	tagPool  = v1.NodePoolLabelKey
	tagClaim = "karpenter.sh/nodeclaim"
)

// provider is Karpenter's CloudProvider over the simulated cloud.
type provider struct {
	machines *cloud.Client
	kube     client.Client
	classes  []status.Object

	mu    sync.Mutex
	types []*cloudprovider.InstanceType // nil until the cloud has been asked
}

var _ cloudprovider.CloudProvider = (*provider)(nil)

// Name is what Karpenter's metrics call the cloud.
func (p *provider) Name() string { return "kubistro" }

// GetSupportedNodeClasses are the kinds of node classes that NodePools may name.
func (p *provider) GetSupportedNodeClasses() []status.Object { return p.classes }

// IsDrifted: nothing that the cloud gave changes by itself.
func (p *provider) IsDrifted(context.Context, *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	return "", nil
}

// GetInstanceTypes is the catalogue, which stays the same.
func (p *provider) GetInstanceTypes(ctx context.Context, _ *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.types == nil {
		all, err := p.machines.InstanceTypes(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range all {
			p.types = append(p.types, instanceType(t))
		}
	}
	return p.types, nil
}

// Create orders the cheapest machine that the claim allows.
func (p *provider) Create(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	if err := p.classReady(ctx, claim); err != nil {
		return nil, err
	}
	t, offering, err := p.cheapest(ctx, claim)
	if err != nil {
		return nil, err
	}
	order := cloud.LaunchRequest{
		Type: t.Name, Zone: offering.Zone(), CapacityType: offering.CapacityType(), Token: string(claim.UID),
		Tags: map[string]string{tagPool: claim.Labels[v1.NodePoolLabelKey], tagClaim: claim.Name},
	}
	for _, taints := range [][]corev1.Taint{claim.Spec.Taints, claim.Spec.StartupTaints, {v1.UnregisteredNoExecuteTaint}} {
		for _, taint := range taints {
			order.Taints = append(order.Taints, taint.ToString())
		}
	}
	i, err := p.machines.Launch(ctx, order)
	switch {
	case cloud.IsLimit(err):
		return nil, cloudprovider.NewInsufficientCapacityError(fmt.Errorf("creating instance, %w", err))
	case err != nil:
		return nil, cloudprovider.NewCreateError(fmt.Errorf("creating instance, %w", err), "LaunchFailed", fmt.Sprintf("Error creating machine: %v", err))
	}
	return p.claim(i, t), nil
}

// classReady refuses what names a node class that isn't there or not ready.
func (p *provider) classReady(ctx context.Context, claim *v1.NodeClaim) error {
	for _, c := range p.classes {
		if gvk := object.GVK(c); gvk.Group != claim.Spec.NodeClassRef.Group || gvk.Kind != claim.Spec.NodeClassRef.Kind {
			continue
		}
		found := c.DeepCopyObject().(status.Object)
		err := p.kube.Get(ctx, client.ObjectKey{Name: claim.Spec.NodeClassRef.Name}, found)
		switch {
		case apierrors.IsNotFound(err):
			return cloudprovider.NewInsufficientCapacityError(fmt.Errorf("resolving node class, %w", err))
		case err != nil:
			return fmt.Errorf("resolving node class, %w", err)
		}
		if ready := found.StatusConditions().Get(status.ConditionReady); ready.IsFalse() {
			return cloudprovider.NewNodeClassNotReadyError(errors.New(ready.Message))
		}
		return nil
	}
	return cloudprovider.NewInsufficientCapacityError(fmt.Errorf("no node class of kind %s in group %s", claim.Spec.NodeClassRef.Kind, claim.Spec.NodeClassRef.Group))
}

// cheapest finds the type and the offering; among equal prices the choice is by chance, as among zones.
func (p *provider) cheapest(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.InstanceType, *cloudprovider.Offering, error) {
	all, err := p.GetInstanceTypes(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	wanted := scheduling.NewNodeSelectorRequirementsWithMinValues(claim.Spec.Requirements...)
	var best *cloudprovider.InstanceType
	var offering *cloudprovider.Offering
	equal := 0
	for _, t := range all {
		if wanted.Intersects(t.Requirements) != nil || !fits(claim.Spec.Resources.Requests, t.Allocatable()) {
			continue
		}
		for _, o := range t.Offerings.Available().Compatible(wanted) {
			switch {
			case offering == nil || o.Price < offering.Price:
				best, offering, equal = t, o, 1
			case o.Price == offering.Price:
				if equal++; rand.IntN(equal) == 0 {
					best, offering = t, o
				}
			}
		}
	}
	if best == nil {
		return nil, nil, cloudprovider.NewInsufficientCapacityError(errors.New("no instance type of the catalogue has room for what is requested"))
	}
	return best, offering, nil
}

func fits(requests, room corev1.ResourceList) bool {
	for name, q := range requests {
		if have := room[name]; q.Cmp(have) > 0 {
			return false
		}
	}
	return true
}

// Delete gives a machine back. It is gone when that succeeds, so Karpenter needn't ask again.
func (p *provider) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	id, ok := cloud.IDOf(claim.Status.ProviderID)
	if !ok {
		return cloudprovider.NewNodeClaimNotFoundError(fmt.Errorf("%q is no machine of this cloud", claim.Status.ProviderID))
	}
	err := p.machines.Terminate(ctx, id)
	if err == nil {
		err = fmt.Errorf("instance %s is terminated", id)
	} else if !cloud.IsNotFound(err) {
		return fmt.Errorf("terminating instance, %w", err)
	}
	return cloudprovider.NewNodeClaimNotFoundError(err)
}

// Get is the machine of a providerID.
func (p *provider) Get(ctx context.Context, providerID string) (*v1.NodeClaim, error) {
	id, ok := cloud.IDOf(providerID)
	if !ok {
		return nil, cloudprovider.NewNodeClaimNotFoundError(fmt.Errorf("%q is no machine of this cloud", providerID))
	}
	i, err := p.machines.Instance(ctx, id)
	switch {
	case cloud.IsNotFound(err):
		return nil, cloudprovider.NewNodeClaimNotFoundError(err)
	case err != nil:
		return nil, fmt.Errorf("getting instance, %w", err)
	}
	return p.claim(i, p.find(ctx, i.Type)), nil
}

// List is the machines that Karpenter has ordered.
func (p *provider) List(ctx context.Context) ([]*v1.NodeClaim, error) {
	all, err := p.machines.Instances(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing instances, %w", err)
	}
	var out []*v1.NodeClaim
	for _, i := range all {
		if i.Tags[tagClaim] != "" {
			out = append(out, p.claim(i, p.find(ctx, i.Type)))
		}
	}
	return out, nil
}

// find is the type of a name; nil when the cloud doesn't answer.
func (p *provider) find(ctx context.Context, name string) *cloudprovider.InstanceType {
	all, err := p.GetInstanceTypes(ctx, nil)
	if err != nil {
		return nil
	}
	for _, t := range all {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// claim describes a machine as Karpenter wants it.
func (p *provider) claim(i cloud.Instance, t *cloudprovider.InstanceType) *v1.NodeClaim {
	out := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: i.Tags[tagClaim], CreationTimestamp: metav1.NewTime(i.Launched),
			Labels: map[string]string{v1.NodePoolLabelKey: i.Tags[tagPool]},
		},
		Status: v1.NodeClaimStatus{ProviderID: i.ProviderID()},
	}
	if t != nil {
		for key, r := range t.Requirements {
			if r.Len() == 1 {
				out.Labels[key] = r.Any()
			}
		}
		out.Status.Capacity, out.Status.Allocatable = present(t.Capacity), present(t.Allocatable())
	}
	out.Labels[corev1.LabelTopologyZone], out.Labels[v1.CapacityTypeLabelKey] = i.Zone, i.CapacityType
	return out
}

// present leaves out what is zero.
func present(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range list {
		if !q.IsZero() {
			out[name] = q
		}
	}
	return out
}
