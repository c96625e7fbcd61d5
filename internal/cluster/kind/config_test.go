package kind

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/lab"
)

// patchOf reads a kubeadm patch.
func patchOf(t *testing.T, patches []string) map[string]any {
	t.Helper()
	var out map[string]any
	if len(patches) != 1 || json.Unmarshal([]byte(patches[0]), &out) != nil {
		t.Fatalf("patches = %v", patches)
	}
	return out
}

func TestConfigNamesNodesAsTheSpecDoes(t *testing.T) {
	spec := lab.ClusterSpec{Kitchens: []lab.Kitchen{
		{Name: "kitchen-1", CPU: "2", Memory: "2Gi", Labels: map[string]string{"kitchen": "1"}},
		{Name: "garden", CPU: "1", Memory: "1Gi", Taints: []string{"event=wedding:NoSchedule", "closed:NoExecute"}},
	}}
	clock, err := pace.New(1)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := configOf(spec, "image:1", clock)
	if err != nil {
		t.Fatal(err)
	}
	var names []any
	for i, n := range cfg.Nodes {
		p := patchOf(t, n.KubeadmConfigPatches)
		reg := p["nodeRegistration"].(map[string]any)
		names = append(names, p["kind"], reg["name"])
		if n.Image != "image:1" || (n.Role == v1alpha4.ControlPlaneRole) != (i == 0) {
			t.Errorf("node %d = %+v", i, n)
		}
		if i == 2 {
			want := []any{map[string]any{"key": "event", "value": "wedding", "effect": "NoSchedule"}, map[string]any{"key": "closed", "effect": "NoExecute"}}
			if diff := cmp.Diff(want, reg["taints"]); diff != "" {
				t.Error(diff)
			}
		}
	}
	if diff := cmp.Diff([]any{"InitConfiguration", "office", "JoinConfiguration", "kitchen-1", "JoinConfiguration", "garden"}, names); diff != "" {
		t.Error(diff)
	}
	if cfg.Nodes[1].Labels["kitchen"] != "1" || cfg.Networking.APIServerAddress != "127.0.0.1" {
		t.Errorf("config = %+v", cfg)
	}
	if _, err := configOf(lab.ClusterSpec{Kitchens: []lab.Kitchen{{Name: "x", Taints: []string{"nonsense"}}}}, "i", clock); err == nil {
		t.Error("a taint without an effect was taken")
	}
}

func TestClockReachesTheFlags(t *testing.T) {
	for speed, want := range map[int][3]string{1: {"300", "50s", "10s"}, 30: {"10", "8s", "2s"}} {
		c, err := pace.New(speed)
		if err != nil {
			t.Fatal(err)
		}
		got := [3]string{apiServerFlags(c)["default-not-ready-toleration-seconds"], managerFlags(c)["node-monitor-grace-period"], kubeletPeriods(c)["nodeStatusUpdateFrequency"].(string)}
		if got != want {
			t.Errorf("speed %d: %v, want %v", speed, got, want)
		}
	}
}

func TestPolicyIsReadable(t *testing.T) {
	var p struct {
		APIVersion string `json:"apiVersion"`
		Rules      []struct {
			Level string `json:"level"`
		} `json:"rules"`
	}
	if err := yaml.Unmarshal([]byte(policy), &p); err != nil || p.APIVersion != "audit.k8s.io/v1" || len(p.Rules) != 7 || p.Rules[6].Level != "None" {
		t.Errorf("policy = %+v, %v", p, err)
	}
}

func TestParseInfo(t *testing.T) {
	for text, want := range map[string]machine{
		`{"NCPU":4,"MemTotal":8589934592,"CgroupVersion":"2"}`:           {4, 8 << 30},
		`{"host":{"cpus":2,"memTotal":4294967296,"cgroupVersion":"v2"}}`: {2, 4 << 30},
	} {
		if m, err := parseInfo(text); err != nil || m != want {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
	for _, bad := range []string{"", "nonsense", `{"ServerErrors":["Cannot connect to the Docker daemon"]}`} {
		if m, err := parseInfo(bad); err == nil {
			t.Errorf("%q: %+v", bad, m)
		}
	}
}

func TestParseUsage(t *testing.T) {
	u, err := parseUsage("1048576\n2000000000\n4\n")
	if err != nil || u.PSSBytes != 1<<20 || u.CPU != 2e9 || u.DiskBytes != 4<<10 {
		t.Errorf("usage = %+v, %v", u, err)
	}
	for _, bad := range []string{"", "1 2", "1 2 x"} {
		if _, err := parseUsage(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
