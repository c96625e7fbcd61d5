package kubelet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var (
	noon  = time.Date(2026, 11, 6, 12, 0, 0, 0, time.UTC)
	later = noon.Add(time.Minute)
)

// testPod is a Pod with init containers and containers of these names.
func testPod(policy corev1.RestartPolicy, init []string, names ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "grill", Namespace: "default", UID: "u1", Generation: 2}}
	p.Spec.RestartPolicy = policy
	for _, n := range init {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: n, Image: "toolbox"})
	}
	for _, n := range names {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: n, Image: "grill-cook:1.4"})
	}
	return p
}

func runs(ready bool) containerView {
	return containerView{cur: &containerState{ID: "c1", Phase: containerRunning, Started: noon}, started: true, ready: ready, image: "docker.io/library/grill-cook:1.4"}
}

func ended(code int32) containerView {
	return containerView{cur: &containerState{ID: "c1", Phase: containerExited, Started: noon, Finished: later, ExitCode: code, Reason: map[bool]string{true: "Completed", false: "Error"}[code == 0]}}
}

func crashLoop() containerView {
	c := ended(1)
	c.restarts, c.waiting = 3, &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	return c
}

func TestPhaseAndReady(t *testing.T) {
	always, onFailure, never := corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	sidecarPod := testPod(always, []string{"proxy"}, "web")
	sidecarPod.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	type views = map[string]containerView
	tests := []struct {
		name     string
		pod      *corev1.Pod
		views    views
		terminal bool
		phase    corev1.PodPhase
		ready    string // status and reason of condition Ready
		init     string // of condition Initialized
	}{
		{"nothing made yet", testPod(always, nil, "web"), views{"web": {}}, false, "Pending", "False ContainersNotReady", "True "},
		{"runs and ready", testPod(always, nil, "web"), views{"web": runs(true)}, false, "Running", "True ", "True "},
		{"runs, probe fails", testPod(always, nil, "web"), views{"web": runs(false)}, false, "Running", "False ContainersNotReady", "True "},
		{"image can't be pulled", testPod(always, nil, "web"), views{"web": {waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}, false, "Pending", "False ContainersNotReady", "True "},
		{"one of two runs", testPod(always, nil, "web", "log"), views{"web": runs(true), "log": {}}, false, "Pending", "False ContainersNotReady", "True "},
		{"just crashed", testPod(always, nil, "web"), views{"web": ended(1)}, false, "Running", "False ContainersNotReady", "True "},
		{"crash loop", testPod(always, nil, "web"), views{"web": crashLoop()}, false, "Running", "False ContainersNotReady", "True "},
		{"never, success", testPod(never, nil, "web"), views{"web": ended(0)}, false, "Succeeded", "False PodCompleted", "True PodCompleted"},
		{"never, failure", testPod(never, nil, "web"), views{"web": ended(1)}, false, "Failed", "False PodFailed", "True "},
		{"on failure, success", testPod(onFailure, nil, "web"), views{"web": ended(0)}, false, "Succeeded", "False PodCompleted", "True PodCompleted"},
		{"on failure, failure", testPod(onFailure, nil, "web"), views{"web": ended(1)}, false, "Running", "False ContainersNotReady", "True "},
		{"deleted while running, exit 0", testPod(always, nil, "web"), views{"web": ended(0)}, true, "Succeeded", "False PodCompleted", "True PodCompleted"},
		{"deleted, killed", testPod(always, nil, "web"), views{"web": ended(137)}, true, "Failed", "False PodFailed", "True "},
		{"init runs", testPod(always, []string{"i"}, "web"), views{"i": runs(true), "web": {}}, false, "Pending", "False ContainersNotReady", "False ContainersNotInitialized"},
		{"init done", testPod(always, []string{"i"}, "web"), views{"i": ended(0), "web": {}}, false, "Pending", "False ContainersNotReady", "True "},
		{"init failed, never", testPod(never, []string{"i"}, "web"), views{"i": ended(1), "web": {}}, false, "Failed", "False PodFailed", "False ContainersNotInitialized"},
		{"init failed, always", testPod(always, []string{"i"}, "web"), views{"i": crashLoop(), "web": {}}, false, "Pending", "False ContainersNotReady", "False ContainersNotInitialized"},
		{"sidecar up, web not", sidecarPod, views{"proxy": runs(true), "web": {}}, false, "Pending", "False ContainersNotReady", "True "},
		{"sidecar unready", sidecarPod, views{"proxy": runs(false), "web": runs(true)}, false, "Running", "False ContainersNotReady", "True "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := composeStatus(tt.pod, podView{sandbox: true, ips: []string{"10.244.1.7"}, hostIP: "172.18.0.3", containers: tt.views, terminal: tt.terminal}, corev1.PodStatus{}, later)
			if s.Phase != tt.phase {
				t.Errorf("phase %q, want %q", s.Phase, tt.phase)
			}
			for kind, want := range map[corev1.PodConditionType]string{corev1.PodReady: tt.ready, corev1.ContainersReady: tt.ready, corev1.PodInitialized: tt.init} {
				c := findCondition(s.Conditions, kind)
				if got := string(c.Status) + " " + c.Reason; got != want {
					t.Errorf("%s: %q, want %q", kind, got, want)
				}
			}
		})
	}
}

func TestConditionsInTheKubeletsOrder(t *testing.T) {
	old := corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: "example.com/gate", Status: corev1.ConditionTrue},
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)},
	}}
	s := composeStatus(testPod(corev1.RestartPolicyAlways, nil, "web"), podView{containers: map[string]containerView{"web": {}}}, old, later)
	var got []string
	for _, c := range s.Conditions {
		got = append(got, string(c.Type))
		if kubeletCondition(c.Type) && c.ObservedGeneration != 2 {
			t.Errorf("%s: observedGeneration %d, want 2", c.Type, c.ObservedGeneration)
		}
	}
	want := []string{"example.com/gate", "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got)\n%s", diff)
	}
	if c := findCondition(s.Conditions, corev1.PodScheduled); !c.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("PodScheduled changed its time to %v although its status stayed", c.LastTransitionTime)
	}
	if c := findCondition(s.Conditions, corev1.PodReadyToStartContainers); c.Message != "no pod sandbox exists" || c.Reason != "PodSandboxNotReady" {
		t.Errorf("PodReadyToStartContainers: %+v", c)
	}
}

func TestContainerStates(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, nil, "web")
	one := func(c containerView) corev1.ContainerStatus {
		return composeStatus(pod, podView{sandbox: true, containers: map[string]containerView{"web": c}}, corev1.PodStatus{}, later).ContainerStatuses[0]
	}
	t.Run("crash loop shows the end as last state", func(t *testing.T) {
		st := one(crashLoop())
		if st.State.Waiting == nil || st.LastTerminationState.Terminated == nil || st.LastTerminationState.Terminated.ExitCode != 1 || st.RestartCount != 3 {
			t.Errorf("%+v", st)
		}
	})
	t.Run("restarted shows the life before", func(t *testing.T) {
		c := runs(true)
		c.prev, c.restarts = ended(2).cur, 1
		st := one(c)
		if st.State.Running == nil || st.LastTerminationState.Terminated.ExitCode != 2 || !st.Ready || !*st.Started {
			t.Errorf("%+v", st)
		}
	})
	t.Run("waits for postStart", func(t *testing.T) {
		c := runs(true)
		c.cur.Phase = containerCreated
		if st := one(c); st.State.Waiting == nil || st.State.Waiting.Reason != "ContainerCreating" || st.Ready {
			t.Errorf("%+v", st)
		}
	})
	t.Run("startup probe holds readiness back", func(t *testing.T) {
		c := runs(true)
		c.started = false
		if st := one(c); *st.Started || st.Ready {
			t.Errorf("%+v", st)
		}
	})
	t.Run("start error", func(t *testing.T) {
		c := ended(128)
		c.cur.Started, c.cur.Reason = time.Unix(0, 0), "StartError"
		c.waiting = &corev1.ContainerStateWaiting{Reason: "RunContainerError"}
		if st := one(c); !st.LastTerminationState.Terminated.StartedAt.Time.Equal(time.Unix(0, 0)) || st.State.Waiting.Reason != "RunContainerError" {
			t.Errorf("%+v", st)
		}
	})
}

func TestTerminalPhaseStays(t *testing.T) {
	pod := testPod(corev1.RestartPolicyNever, nil, "web")
	old := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded"}
	s := composeStatus(pod, podView{containers: map[string]containerView{"web": runs(true)}}, old, later)
	if s.Phase != corev1.PodFailed || s.Reason != "DeadlineExceeded" {
		t.Errorf("phase %s reason %s", s.Phase, s.Reason)
	}
}

func TestReadinessGate(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, nil, "web")
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	view := podView{sandbox: true, containers: map[string]containerView{"web": runs(true)}}
	c := findCondition(composeStatus(pod, view, corev1.PodStatus{}, later).Conditions, corev1.PodReady)
	if c.Status != corev1.ConditionFalse || c.Reason != "ReadinessGatesNotReady" || c.Message != `corresponding condition of pod readiness gate "example.com/gate" does not exist.` {
		t.Errorf("without the condition: %+v", c)
	}
	old := corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "example.com/gate", Status: corev1.ConditionTrue}}}
	if c := findCondition(composeStatus(pod, view, old, later).Conditions, corev1.PodReady); c.Status != corev1.ConditionTrue {
		t.Errorf("with it: %+v", c)
	}
}

// What others wrote after the kubelet had made its status stays, whatever it is.
func TestForeignStatusStays(t *testing.T) {
	own := composeStatus(testPod(corev1.RestartPolicyAlways, nil, "web"), podView{containers: map[string]containerView{"web": runs(true)}}, corev1.PodStatus{}, later)
	own.Conditions = append(own.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet"})
	claim := "claim"
	api := corev1.PodStatus{
		NominatedNodeName:                    "kitchen-2",
		ResourceClaimStatuses:                []corev1.PodResourceClaimStatus{{Name: "a", ResourceClaimName: &claim}},
		ExtendedResourceClaimStatus:          &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: claim},
		NodeAllocatableResourceClaimStatuses: []corev1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: claim}},
		Conditions: []corev1.PodCondition{
			{Type: "example.com/gate", Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionFalse},
		},
	}
	got := keepForeign(api, own)
	if c := findCondition(got.Conditions, "example.com/gate"); c == nil || c.Status != corev1.ConditionTrue {
		t.Errorf("the gate is gone: %+v", got.Conditions)
	}
	if c := findCondition(got.Conditions, corev1.PodReady); c == nil || c.Status != corev1.ConditionTrue {
		t.Errorf("ready isn't the kubelet's own: %+v", c)
	}
	if c := findCondition(got.Conditions, corev1.DisruptionTarget); c == nil || c.Reason != "TerminationByKubelet" {
		t.Errorf("the kubelet's disruption is gone: %+v", c)
	}
	if len(got.Conditions) != len(own.Conditions)+1 {
		t.Errorf("conditions: %+v", got.Conditions)
	}
	got.Conditions, api.Conditions = nil, nil
	want := own
	want.Conditions, want.NominatedNodeName = nil, api.NominatedNodeName
	want.ResourceClaimStatuses, want.ExtendedResourceClaimStatus = api.ResourceClaimStatuses, api.ExtendedResourceClaimStatus
	want.NodeAllocatableResourceClaimStatuses = api.NodeAllocatableResourceClaimStatuses
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	api.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
	if c := findCondition(keepForeign(api, own).Conditions, corev1.DisruptionTarget); c.Reason != "EvictionByEvictionAPI" {
		t.Errorf("another's disruption is replaced: %+v", c)
	}
}
