package noderules

import (
	"testing"

	"kubistro/internal/lab"
)

func TestKitchensThatCanBeAdded(t *testing.T) {
	good := lab.Kitchen{Name: "annex", CPU: "500m", Memory: "1Gi", Labels: map[string]string{"size": "big", "topology.kubernetes.io/zone": "z"}, Taints: []string{"a=b:NoSchedule"}, Resources: map[string]string{"nvidia.com/gpu": "1"}}
	if err := Validate(good); err != nil {
		t.Error(err)
	}
	for what, spoil := range map[string]func(*lab.Kitchen){
		"name": func(k *lab.Kitchen) { k.Name = "Annex" }, "no size": func(k *lab.Kitchen) { k.CPU = "" }, "size": func(k *lab.Kitchen) { k.Memory = "-1" },
		"label": func(k *lab.Kitchen) { k.Labels = map[string]string{"a b": "c"} }, "role": func(k *lab.Kitchen) { k.Labels = map[string]string{"node-role.kubernetes.io/x": ""} },
		"taint": func(k *lab.Kitchen) { k.Taints = []string{"x"} }, "resource": func(k *lab.Kitchen) { k.Resources = map[string]string{"cpu": "1"} },
	} {
		k := good
		spoil(&k)
		if Validate(k) == nil {
			t.Errorf("%s: %+v was taken", what, k)
		}
	}
}
