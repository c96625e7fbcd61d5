package karpenter

import (
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"kubistro/internal/clusterhost/cloud"
)

// repairAfter is how long a node may be lost before it is replaced, where the
// feature gate NodeRepair is on.
const repairAfter = 10 * time.Minute

// RepairPolicies are the conditions of a node that is broken.
func (p *provider) RepairPolicies() []cloudprovider.RepairPolicy {
	return []cloudprovider.RepairPolicy{
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionFalse, TolerationDuration: repairAfter},
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionUnknown, TolerationDuration: repairAfter},
	}
}

// instanceType translates a type of the catalogue.
func instanceType(t cloud.InstanceType) *cloudprovider.InstanceType {
	in := func(key string, values ...string) *scheduling.Requirement {
		return scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...)
	}
	out := &cloudprovider.InstanceType{
		Name: t.Name,
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewQuantity(int64(t.CPU), resource.DecimalSI),
			corev1.ResourceMemory:           resource.MustParse(fmt.Sprintf("%dMi", t.MemoryMiB)),
			corev1.ResourcePods:             *resource.NewQuantity(cloud.MaxPods, resource.DecimalSI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(cloud.DiskMiB<<20, resource.BinarySI),
		},
		Overhead: &cloudprovider.InstanceTypeOverhead{EvictionThreshold: corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", cloud.EvictionMiB)),
		}},
	}
	if t.GPUs > 0 {
		out.Capacity["nvidia.com/gpu"] = *resource.NewQuantity(int64(t.GPUs), resource.DecimalSI)
	}
	zones, capacityTypes := []string{}, []string{}
	for _, o := range t.Offerings {
		zones, capacityTypes = append(zones, o.Zone), append(capacityTypes, o.CapacityType)
		out.Offerings = append(out.Offerings, &cloudprovider.Offering{
			Requirements: scheduling.NewRequirements(in(v1.CapacityTypeLabelKey, o.CapacityType), in(corev1.LabelTopologyZone, o.Zone)),
			Price:        o.Price, Available: true,
		})
	}
	out.Requirements = scheduling.NewRequirements(
		in(corev1.LabelInstanceTypeStable, t.Name), in(corev1.LabelArchStable, runtime.GOARCH), in(corev1.LabelOSStable, string(corev1.Linux)),
		in(corev1.LabelTopologyRegion, cloud.Region), in(corev1.LabelTopologyZone, zones...), in(v1.CapacityTypeLabelKey, capacityTypes...),
	)
	for key, value := range t.Labels() {
		out.Requirements.Add(in(key, value))
	}
	if t.GPUs == 0 { // a well-known label that a type lacks has to be said
		out.Requirements.Add(scheduling.NewRequirement(cloud.LabelPrefix+"gpu-count", corev1.NodeSelectorOpDoesNotExist))
	}
	return out
}
