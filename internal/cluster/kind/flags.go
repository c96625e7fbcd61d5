package kind

import (
	"fmt"
	"strconv"
	"time"

	"kubistro/internal/clusterhost/balancer"
	"kubistro/internal/clusterhost/pace"
)

// apiServerFlags are the API server's flags besides kubeadm's.
func apiServerFlags(c *pace.Clock) map[string]string {
	seconds := func(p pace.Period) string { return strconv.Itoa(int(c.Of(p) / time.Second)) }
	return map[string]string{
		"audit-policy-file": auditPolicy, "audit-log-path": auditLog,
		"audit-log-maxsize": "8", "audit-log-maxbackup": "1", // megabytes, files: what a learner can fill
		"token-auth-file":                        tokenFile,
		"default-not-ready-toleration-seconds":   seconds(pace.NotReadyToleration),
		"default-unreachable-toleration-seconds": seconds(pace.UnreachableToleration),
	}
}

// managerFlags are the controller manager's flags besides kubeadm's. It is the only
// one, and needs no election: a new one begins to work at once.
func managerFlags(c *pace.Clock) map[string]string {
	out := map[string]string{"enable-hostpath-provisioner": "true", "leader-elect": "false"}
	for name, period := range map[string]pace.Period{
		"node-monitor-grace-period": pace.NodeMonitorGrace, "node-monitor-period": pace.NodeMonitor, "node-startup-grace-period": pace.NodeStartupGrace,
		"horizontal-pod-autoscaler-sync-period": pace.HPASync, "horizontal-pod-autoscaler-downscale-stabilization": pace.HPADownscaleStabilization,
		"horizontal-pod-autoscaler-cpu-initialization-period": pace.HPACPUInitialization, "horizontal-pod-autoscaler-initial-readiness-delay": pace.HPAInitialReadiness,
	} {
		out[name] = c.Of(period).String()
	}
	out["node-eviction-rate"] = strconv.FormatFloat(float64(time.Second)/float64(c.Of(pace.NodeEviction)), 'g', 4, 32)
	return out
}

// kubeletPeriods are the kubelet's settings that the clock compresses. It renews its
// lease four times in the lease's duration: pkg/kubelet/kubelet.go.
func kubeletPeriods(c *pace.Clock) map[string]any {
	return map[string]any{
		"nodeStatusUpdateFrequency": c.Of(pace.NodeStatus).String(),
		"nodeLeaseDurationSeconds":  int(4 * c.Of(pace.LeaseRenewal) / time.Second),
		"syncFrequency":             c.Of(pace.ConfigRefresh).String(),
		"crashLoopBackOff":          map[string]any{"maxContainerRestartPeriod": c.Of(pace.RestartBackoffMax).String()},
	}
}

// policy is the audit policy: writes, without those that are only the cluster's own
// heartbeat or change no object, and sessions in containers. The embedded
// driver's API server logs the same.
const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: Metadata
  verbs: [get, create]
  resources: [{group: "", resources: [pods/exec, pods/attach]}]
- level: None
  resources:
  - group: coordination.k8s.io
  - group: events.k8s.io
  - group: authentication.k8s.io
  - group: authorization.k8s.io
  - group: ""
    resources: [events, serviceaccounts/token, pods/portforward, pods/proxy, services/proxy, nodes/proxy]
- level: None
  userGroups: ["system:nodes"]
  resources: [{group: "", resources: [nodes, nodes/status]}]
- level: Metadata
  omitStages: [ResponseStarted]
  verbs: [create]
  resources: [{group: "", resources: [secrets, configmaps, serviceaccounts, pods/binding, pods/eviction]}]
- level: RequestResponse
  omitStages: [ResponseStarted]
  verbs: [create]
- level: Metadata
  omitStages: [ResponseStarted]
  verbs: [update, patch, delete, deletecollection]
- level: None
`

// tokens is the API server's token file.
func tokens(r *record, trusted bool) string {
	group := learnerGroup
	if trusted {
		group = adminGroup
	}
	line := func(token, user, groups string) string {
		return fmt.Sprintf("%s,%s,%s,%q\n", token, user, user, groups)
	}
	return line(r.LabToken, labUser, adminGroup) + line(r.LearnerToken, learnerUser, group) + line(r.BalancerToken, balancer.User, balancer.Groups)
}
