package cloud

import (
	"fmt"
	"strconv"
)

// Region is where machines are, in three zones.
const Region = "kubistro-1"

// Zones of the region.
var Zones = []string{Region + "a", Region + "b", Region + "c"}

// How a machine is paid for. Spot machines are cheaper; none is taken back here.
const (
	OnDemand = "on-demand"
	Spot     = "spot"
)

// What every machine has and keeps, whatever its type.
const (
	EvictionMiB = 100 // of its memory, which the kubelet keeps back: Pods can have the rest
	DiskMiB     = 256
	MaxPods     = 110
)

// InstanceType is a size of machine that can be ordered.
type InstanceType struct {
	Name       string     `json:"name"`     // m7i.large
	Category   string     `json:"category"` // c: 2 GiB for each CPU, m: 4, r: 8, t: small, g: with GPUs
	Family     string     `json:"family"`   // m7i
	Generation int        `json:"generation"`
	Size       string     `json:"size"` // large
	CPU        int        `json:"cpu"`
	MemoryMiB  int64      `json:"memoryMiB"`
	GPUs       int        `json:"gpus,omitempty"` // nvidia.com/gpu
	Offerings  []Offering `json:"offerings"`
}

// Offering is a zone and a way to pay in which a type can be had.
type Offering struct {
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"price"` // of an hour, in dollars
}

// families are named and priced like those of a big cloud, so that what tutorials
// ask for exists: price is an hour of the size large.
var families = []struct {
	name, category string
	generation     int
	perCPU         int64 // MiB
	price          float64
}{
	{"c6i", "c", 6, 2048, 0.0850}, {"m6i", "m", 6, 4096, 0.0960}, {"r6i", "r", 6, 8192, 0.1260},
	{"c7i", "c", 7, 2048, 0.08925}, {"m7i", "m", 7, 4096, 0.1008}, {"r7i", "r", 7, 8192, 0.1323},
}

var sizes = []struct {
	name string
	cpu  int
}{{"large", 2}, {"xlarge", 4}, {"2xlarge", 8}, {"4xlarge", 16}}

// spotShare is what a spot machine costs of the price on demand.
const spotShare = 0.38

// Catalogue is the types that can be ordered, in a fixed order.
func Catalogue() []InstanceType {
	out := []InstanceType{
		newType("t3", "t", 3, "small", 2, 2048, 0, 0.0208),
		newType("t3", "t", 3, "medium", 2, 4096, 0, 0.0416),
	}
	for _, f := range families {
		for _, s := range sizes {
			out = append(out, newType(f.name, f.category, f.generation, s.name, s.cpu, int64(s.cpu)*f.perCPU, 0, f.price*float64(s.cpu)/2))
		}
	}
	return append(out, newType("g6", "g", 6, "xlarge", 4, 16384, 1, 0.8048))
}

func newType(family, category string, generation int, size string, cpu int, memory int64, gpus int, price float64) InstanceType {
	t := InstanceType{Name: family + "." + size, Category: category, Family: family, Generation: generation, Size: size, CPU: cpu, MemoryMiB: memory, GPUs: gpus}
	for _, zone := range Zones {
		t.Offerings = append(t.Offerings, Offering{zone, OnDemand, price}, Offering{zone, Spot, price * spotShare})
	}
	return t
}

// Find is the type of a name.
func Find(name string) (InstanceType, bool) {
	for _, t := range Catalogue() {
		if t.Name == name {
			return t, true
		}
	}
	return InstanceType{}, false
}

// Offered reports whether the type can be had so.
func (t InstanceType) Offered(zone, capacityType string) bool {
	for _, o := range t.Offerings {
		if o.Zone == zone && o.CapacityType == capacityType {
			return true
		}
	}
	return false
}

// AllocatableMiB is the memory that Pods can have.
func (t InstanceType) AllocatableMiB() int64 { return t.MemoryMiB - EvictionMiB }

// Labels are what the type says of its machines, under the keys that Karpenter's
// provider for AWS uses and tutorials select by.
func (t InstanceType) Labels() map[string]string {
	l := map[string]string{}
	for key, value := range map[string]string{
		"category": t.Category, "family": t.Family, "generation": strconv.Itoa(t.Generation), "size": t.Size,
		"cpu": strconv.Itoa(t.CPU), "memory": fmt.Sprint(t.MemoryMiB),
	} {
		l[LabelPrefix+key] = value
	}
	if t.GPUs > 0 {
		l[LabelPrefix+"gpu-count"] = strconv.Itoa(t.GPUs)
	}
	return l
}

// LabelPrefix begins the keys of Labels.
const LabelPrefix = "karpenter.k8s.aws/instance-"
