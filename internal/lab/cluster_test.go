package lab

import "testing"

func TestCheckExtendedResource(t *testing.T) {
	for name, ok := range map[string]bool{
		"nvidia.com/gpu": true, "example.com/pizza-oven": true, "gpu": false, "kubernetes.io/gpu": false,
		"node.kubernetes.io/gpu": false, "requests.nvidia.com/gpu": false, "nvidia.com/": false, "/gpu": false, "Nvidia.com/gpu": false,
	} {
		if err := CheckExtendedResource(name, "2"); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, amount := range []string{"", "-1", "1.5", "500m", "2Gi", "99999999"} {
		if CheckExtendedResource("nvidia.com/gpu", amount) == nil {
			t.Errorf("an amount of %q is taken", amount)
		}
	}
}
