package kind

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/lab"
)

const managerManifest = `apiVersion: v1
kind: Pod
spec:
  containers:
  - command:
    - kube-controller-manager
    - --allocate-node-cidrs=true
    - --controllers=*,bootstrapsigner,tokencleaner
    - --node-monitor-period=5s
    image: registry.k8s.io/kube-controller-manager:v1.37.2
`

func TestFlagsOfAManifest(t *testing.T) {
	flags := map[string]string{"controllers": "*,bootstrapsigner,tokencleaner,-replicaset-controller", "node-eviction-rate": "1"}
	got, err := withFlags(managerManifest, "kube-controller-manager", flags)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(managerManifest, "tokencleaner\n", "tokencleaner,-replicaset-controller\n", 1)
	want = strings.Replace(want, "- kube-controller-manager\n", "- kube-controller-manager\n    - --node-eviction-rate=1\n", 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if again, err := withFlags(got, "kube-controller-manager", flags); err != nil || again != got {
		t.Errorf("a second time: %v, %s", err, cmp.Diff(got, again))
	}
	if _, err := withFlags(managerManifest, "kube-scheduler", flags); err == nil {
		t.Error("another program's manifest was changed")
	}
	if _, err := withFlags(managerManifest, "kube-controller-manager", map[string]string{"x": "a\n    - --evil"}); err == nil {
		t.Error("a flag of two lines was written")
	}
}

func TestParseControllers(t *testing.T) {
	help := "  --controllers strings\n    A list of controllers to enable. '*' enables all. All controllers: job-controller,\n    daemonset-controller, service-lb-controller\n    Disabled-by-default controllers: bootstrap-signer-controller (default [*])\n"
	got, err := parseControllers(help)
	if err != nil || !slices.Equal(got, []string{"daemonset-controller", "job-controller", "service-lb-controller"}) {
		t.Errorf("controllers = %v, %v", got, err)
	}
	if _, err := parseControllers("Usage: something else"); err == nil {
		t.Error("controllers were found where there are none")
	}
}

func TestMergeYAML(t *testing.T) {
	old := "nodeStatusUpdateFrequency: 10s\nclusterDNS: [10.96.0.10]\ncrashLoopBackOff: {}\n"
	got, err := mergeYAML(old, map[string]any{"nodeStatusUpdateFrequency": "2s", "crashLoopBackOff": map[string]any{"maxContainerRestartPeriod": "10s"}})
	if err != nil || got != "clusterDNS:\n- 10.96.0.10\ncrashLoopBackOff:\n  maxContainerRestartPeriod: 10s\nnodeStatusUpdateFrequency: 2s\n" {
		t.Errorf("merged = %q, %v", got, err)
	}
	if same, err := mergeYAML(got, map[string]any{"nodeStatusUpdateFrequency": "2s"}); err != nil || same != "" {
		t.Errorf("without a change: %q, %v", same, err)
	}
}

func TestKitchensOfARecord(t *testing.T) {
	r := newRecord("k", lab.DefaultClusterSpec(), time.Now())
	r.Changes.Removed = []string{"kitchen-2"}
	r.Changes.Added = []lab.Kitchen{{Name: "annex"}}
	if got := r.kitchens(); !slices.Equal(got, []string{"kitchen-1", "kitchen-3", "annex"}) {
		t.Errorf("kitchens = %v", got)
	}
	r.Changes.Added = append(r.Changes.Added, lab.Kitchen{Name: "kitchen-2", CPU: "4"})
	if got := r.kitchens(); !slices.Equal(got, []string{"kitchen-1", "kitchen-3", "annex", "kitchen-2"}) || r.kitchen("kitchen-2").CPU != "4" {
		t.Errorf("a kitchen came back: %v", got)
	}
	if _, err := r.container("office"); !errors.Is(err, errNotFound) {
		t.Errorf("the office is a kitchen: %v", err)
	}
	if r.kitchen("office") != nil || r.office() != "k-control-plane" || r.Nodes["kitchen-3"] != "k-worker3" {
		t.Errorf("record = %+v", r)
	}
}

func TestNewWorkerIsLikeKinds(t *testing.T) {
	var like likeNode
	err := json.Unmarshal([]byte(`{"Config":{"Image":"kindest/node:x","Env":["HTTP_PROXY=p","container=docker","KUBECONFIG=/etc/kubernetes/admin.conf"]},
		"HostConfig":{"UsernsMode":"host","Binds":["/lib/modules:/lib/modules:ro"],"Devices":[{"PathOnHost":"/dev/fuse"}]},"NetworkSettings":{"Networks":{"kind":{}}}}`), &like)
	if err != nil {
		t.Fatal(err)
	}
	args := workerArguments("k-worker4", "k", like)
	line := strings.Join(args, " ")
	for _, want := range []string{"run --name k-worker4 --hostname k-worker4 ", " --label io.x-k8s.kind.cluster=k ", " --label io.x-k8s.kind.role=worker ", " --privileged ", " --net kind ",
		" --volume /lib/modules:/lib/modules:ro ", " --device /dev/fuse ", " --userns=host ", " -e HTTP_PROXY=p "} {
		if !strings.Contains(line, want) {
			t.Errorf("%q has no %q", line, want)
		}
	}
	if args[len(args)-1] != "kindest/node:x" || strings.Contains(line, "KUBECONFIG") {
		t.Errorf("args = %q", line)
	}
	e := newFakeEngine()
	d := &Driver{engine: e}
	for _, name := range []string{"k-control-plane", "k-worker", "k-worker7", "other-worker9"} {
		e.add(name, true)
	}
	if name, err := d.freeName(t.Context(), "k"); err != nil || name != "k-worker8" {
		t.Errorf("next name = %q, %v", name, err)
	}
}
