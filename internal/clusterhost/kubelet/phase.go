package kubelet

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func terminalPhase(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// shouldRestart says whether a container that ended with code is to start again:
// pkg/api/v1/pod/util.go, ContainerShouldRestart.
func shouldRestart(pod *corev1.Pod, c *corev1.Container, code int32) bool {
	if c.RestartPolicy != nil {
		for _, r := range c.RestartPolicyRules {
			if e := r.ExitCodes; e != nil && r.Action == corev1.ContainerRestartRuleActionRestart {
				in := slices.Contains(e.Values, code)
				if in == (e.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
					return true
				}
			}
		}
		switch *c.RestartPolicy {
		case corev1.ContainerRestartPolicyAlways:
			return true
		case corev1.ContainerRestartPolicyOnFailure:
			return code != 0
		}
		return false
	}
	switch pod.Spec.RestartPolicy {
	case corev1.RestartPolicyAlways, "":
		return true
	case corev1.RestartPolicyOnFailure:
		return code != 0
	}
	return false
}

func statusOf(all []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// podPhase follows kubelet_pods.go, getPhase.
func podPhase(pod *corev1.Pod, all []corev1.ContainerStatus, v podView) corev1.PodPhase {
	pendingInit, pendingSidecars, initFailed := 0, 0, false
	running, waiting, stopped, final, succeeded := 0, 0, 0, 0, 0
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		st := statusOf(all, c.Name)
		if sidecar(c) {
			switch {
			case st.State.Running != nil:
				if !*st.Started {
					pendingSidecars++
				}
				running++
			case st.State.Waiting != nil && st.LastTerminationState.Terminated == nil:
				pendingSidecars++
				waiting++
			}
			continue
		}
		ended := st.State.Terminated
		if st.State.Waiting != nil {
			ended = st.LastTerminationState.Terminated
		}
		switch {
		case ended == nil:
			pendingInit++
		case ended.ExitCode != 0 && !shouldRestart(pod, c, ended.ExitCode):
			initFailed = true
		case ended.ExitCode != 0 && !v.terminal:
			pendingInit++
		}
	}
	regularStarted := false
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		st := statusOf(all, c.Name)
		if v.containers[c.Name].cur != nil {
			regularStarted = true
		}
		ended := st.State.Terminated
		if st.State.Waiting != nil {
			ended = st.LastTerminationState.Terminated
		}
		switch {
		case st.State.Running != nil:
			running++
		case ended == nil:
			waiting++
		default:
			stopped++
			if !v.containers[c.Name].renewed && !shouldRestart(pod, c, ended.ExitCode) {
				final++
			}
			if ended.ExitCode == 0 && st.State.Terminated != nil {
				succeeded++
			}
		}
	}
	switch {
	case initFailed:
		return corev1.PodFailed
	case pendingInit > 0, pendingSidecars > 0 && !regularStarted, waiting > 0:
		return corev1.PodPending
	case running > 0:
		return corev1.PodRunning
	case stopped > 0:
		if v.terminal && !isStatic(pod) {
			if stopped == succeeded {
				return corev1.PodSucceeded
			}
			return corev1.PodFailed
		}
		if stopped != final {
			return corev1.PodRunning
		}
		if stopped == succeeded {
			return corev1.PodSucceeded
		}
		return corev1.PodFailed
	}
	return corev1.PodPending
}

// kubeletCondition says whether the kubelet owns a condition: types/pod_status.go.
func kubeletCondition(t corev1.PodConditionType) bool {
	switch t {
	case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized, corev1.ContainersReady,
		corev1.PodReadyToStartContainers, corev1.PodResizePending, corev1.PodResizeInProgress:
		return true
	}
	return false
}

// podConditions makes the kubelet's conditions in its order: status/generate.go.
func podConditions(pod *corev1.Pod, s corev1.PodStatus, all []corev1.ContainerStatus, sandbox bool) []corev1.PodCondition {
	make := func(t corev1.PodConditionType, ok bool, reason, message string) corev1.PodCondition {
		c := corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: pod.Generation}
		if !ok {
			c.Status = corev1.ConditionFalse
		}
		return c
	}
	out := []corev1.PodCondition{make(corev1.PodReadyToStartContainers, true, "", "")}
	if !sandbox {
		out[0] = make(corev1.PodReadyToStartContainers, false, "PodSandboxNotReady", "pod sandbox is not ready")
		if s.PodIP == "" {
			out[0].Message = "no pod sandbox exists"
		}
	}
	out = append(out, initializedCondition(pod, s, all, make))

	var unready []string
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if sidecar(c) && !statusOf(all, c.Name).Ready {
			unready = append(unready, c.Name)
		}
	}
	for i := range pod.Spec.Containers {
		if name := pod.Spec.Containers[i].Name; !statusOf(all, name).Ready {
			unready = append(unready, name)
		}
	}
	containersReady := make(corev1.ContainersReady, true, "", "")
	switch {
	case s.Phase == corev1.PodSucceeded:
		containersReady = make(corev1.ContainersReady, false, "PodCompleted", "")
	case s.Phase == corev1.PodFailed:
		containersReady = make(corev1.ContainersReady, false, "PodFailed", "")
	case len(unready) > 0:
		containersReady = make(corev1.ContainersReady, false, "ContainersNotReady", "containers with unready status: "+formatNames(unready))
	}
	ready := containersReady
	ready.Type = corev1.PodReady
	if ready.Status == corev1.ConditionTrue {
		if msgs := readinessGates(pod, s.Conditions); len(msgs) > 0 {
			ready = make(corev1.PodReady, false, "ReadinessGatesNotReady", strings.Join(msgs, ", "))
		}
	}
	return append(out, ready, containersReady, make(corev1.PodScheduled, true, "", ""))
}

func initializedCondition(pod *corev1.Pod, s corev1.PodStatus, all []corev1.ContainerStatus,
	make func(corev1.PodConditionType, bool, string, string) corev1.PodCondition,
) corev1.PodCondition {
	if s.Phase == corev1.PodSucceeded {
		return make(corev1.PodInitialized, true, "PodCompleted", "")
	}
	for i := range pod.Spec.Containers {
		st := statusOf(all, pod.Spec.Containers[i].Name)
		if st.State.Running != nil || st.State.Terminated != nil || st.LastTerminationState.Terminated != nil {
			return make(corev1.PodInitialized, true, "", "")
		}
	}
	var incomplete []string
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		st := statusOf(all, c.Name)
		if done := st.Ready || sidecar(c) && *st.Started; !done {
			incomplete = append(incomplete, c.Name)
		}
	}
	if len(incomplete) > 0 {
		return make(corev1.PodInitialized, false, "ContainersNotInitialized", "containers with incomplete status: "+formatNames(incomplete))
	}
	return make(corev1.PodInitialized, true, "", "")
}

func readinessGates(pod *corev1.Pod, conditions []corev1.PodCondition) []string {
	var msgs []string
	for _, g := range pod.Spec.ReadinessGates {
		switch c := findCondition(conditions, g.ConditionType); {
		case c == nil:
			msgs = append(msgs, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", string(g.ConditionType)))
		case c.Status != corev1.ConditionTrue:
			msgs = append(msgs, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", string(g.ConditionType), c.Status))
		}
	}
	return msgs
}

// qosClass follows pkg/apis/core/v1/helper/qos: for static Pods, which the API server hasn't seen.
func qosClass(pod *corev1.Pod) corev1.PodQOSClass {
	guaranteed, any := true, false
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			req, limit := c.Resources.Requests[r], c.Resources.Limits[r]
			any = any || !req.IsZero() || !limit.IsZero()
			if limit.IsZero() || !req.IsZero() && req.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
