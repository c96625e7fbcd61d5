package course

import (
	"fmt"
	"slices"

	"kubistro/internal/lab"
)

// kitchens reads worker nodes.
func (b *builder) kitchens(file string, nodes []kitchenNode) []lab.Kitchen {
	var out []lab.Kitchen
	for _, k := range nodes {
		labels := map[string]string{}
		for key, v := range k.Labels {
			labels[key] = v.Value
		}
		var taints []string
		for _, t := range k.Taints {
			taints = append(taints, t.Value)
		}
		if slices.ContainsFunc(out, func(x lab.Kitchen) bool { return x.Name == k.Name.Value }) {
			b.faults = append(b.faults, Fault{File: file, Line: k.Name.Line, Message: fmt.Sprintf("kitchen %q stands here twice", k.Name.Value)})
		}
		out = append(out, lab.Kitchen{
			Name: k.Name.Value, CPU: k.CPU.Value, Memory: k.Memory.Value, Labels: labels, Taints: taints, Resources: b.extended(file, k.Resources),
		})
	}
	return out
}

// speed reads the clock's speed; 0 when it was left out.
func (b *builder) speed(file string, line, speed int) int {
	if speed < 0 || speed > lab.MaxSpeed {
		b.faults = append(b.faults, Fault{File: file, Line: line, Message: fmt.Sprintf("speed is from 1 to %d", lab.MaxSpeed)})
	}
	return speed
}

// extended reads a kitchen's extended resources.
func (b *builder) extended(file string, in map[string]word) map[string]string {
	out := map[string]string{}
	for name, v := range in {
		if problem := lab.CheckExtendedResource(name, v.Value); problem != nil {
			b.faults = append(b.faults, Fault{File: file, Line: v.Line, Message: problem.Error()})
			continue
		}
		out[name] = v.Value
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// shape reads what a level's cluster is like where it isn't as the course's.
func (b *levelBuilder) shape(src *levelCluster) *lab.ClusterSpec {
	if src == nil {
		return nil
	}
	spec := b.course.Spec
	spec.WithoutLoadBalancers = spec.WithoutLoadBalancers || src.NoDoors
	if len(src.Kitchens) > 0 {
		spec.Kitchens = b.kitchens(b.file, src.Kitchens)
	}
	if src.Speed != 0 {
		spec.Speed = b.speed(b.file, src.Line, src.Speed)
	}
	return &spec
}

// panels reads which panels the page shows.
func panels(src *[]word) []string {
	if src == nil {
		return Panels()
	}
	out := []string{}
	for _, p := range *src {
		out = append(out, p.Value)
	}
	return out
}
