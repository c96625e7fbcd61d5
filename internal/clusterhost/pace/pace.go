// Package pace is a cluster's one clock setting: it compresses the periods of
// Kubernetes that a class would only wait for (until a node counts as lost, until
// its Pods are evicted, until a crashed container is started again) and knows the
// real figure of each. It never changes what somebody wrote into an object.
package pace

import (
	"fmt"
	"sync"
	"time"

	"kubistro/internal/lab"
)

// Period is one of the periods that are compressed.
type Period int

// The periods, each with the name of the flag or field that it belongs to.
const (
	NodeMonitorGrace Period = iota
	NodeMonitor
	NodeStartupGrace
	NodeEviction
	LeaseRenewal
	NodeStatus
	NotReadyToleration
	UnreachableToleration
	HPASync
	HPADownscaleStabilization
	HPACPUInitialization
	HPAInitialReadiness
	RestartBackoffFirst
	RestartBackoffMax
	PullBackoffFirst
	PullBackoffMax
	ConfigRefresh
	ProgressDeadline
	ConsolidationValidation
	ScanInterval
	ScaleDownUnneeded
	ScaleDownDelayAfterAdd
	periods
)

// table holds the figures of Kubernetes 1.37: pkg/controller/nodelifecycle/config,
// pkg/controller/podautoscaler/config, pkg/kubelet/kubelet.go, apis/apps/v1/defaults.go
// and plugin/pkg/admission/defaulttolerationseconds, and of Karpenter
// (pkg/controllers/disruption/consolidation.go) and Cluster Autoscaler (config/flags). No period goes below its floor,
// where a busy machine would give false alarms, or the API wants whole seconds.
var table = [periods]struct {
	component, name string
	real, floor     time.Duration
}{
	NodeMonitorGrace:          {"kube-controller-manager", "node-monitor-grace-period", 50 * time.Second, 8 * time.Second},
	NodeMonitor:               {"kube-controller-manager", "node-monitor-period", 5 * time.Second, time.Second},
	NodeStartupGrace:          {"kube-controller-manager", "node-startup-grace-period", 60 * time.Second, 10 * time.Second},
	NodeEviction:              {"kube-controller-manager", "node-eviction-rate", 10 * time.Second, time.Second},
	LeaseRenewal:              {"kubelet", "nodeLeaseRenewInterval", 10 * time.Second, 2 * time.Second},
	NodeStatus:                {"kubelet", "nodeStatusUpdateFrequency", 10 * time.Second, 2 * time.Second},
	NotReadyToleration:        {"kube-apiserver", "default-not-ready-toleration-seconds", 300 * time.Second, 5 * time.Second},
	UnreachableToleration:     {"kube-apiserver", "default-unreachable-toleration-seconds", 300 * time.Second, 5 * time.Second},
	HPASync:                   {"kube-controller-manager", "horizontal-pod-autoscaler-sync-period", 15 * time.Second, 2 * time.Second},
	HPADownscaleStabilization: {"kube-controller-manager", "horizontal-pod-autoscaler-downscale-stabilization", 5 * time.Minute, 5 * time.Second},
	HPACPUInitialization:      {"kube-controller-manager", "horizontal-pod-autoscaler-cpu-initialization-period", 5 * time.Minute, 5 * time.Second},
	HPAInitialReadiness:       {"kube-controller-manager", "horizontal-pod-autoscaler-initial-readiness-delay", 30 * time.Second, time.Second},
	RestartBackoffFirst:       {"kubelet", "containerRestartBackoff", 10 * time.Second, time.Second},
	RestartBackoffMax:         {"kubelet", "crashLoopBackOff.maxContainerRestartPeriod", 300 * time.Second, 5 * time.Second},
	PullBackoffFirst:          {"kubelet", "imagePullBackoff", 10 * time.Second, time.Second},
	PullBackoffMax:            {"kubelet", "maxImagePullBackoff", 300 * time.Second, 5 * time.Second},
	ConfigRefresh:             {"kubelet", "syncFrequency", time.Minute, 2 * time.Second},
	ProgressDeadline:          {"Deployment", "spec.progressDeadlineSeconds", 600 * time.Second, 10 * time.Second},
	ScanInterval:              {"cluster-autoscaler", "scan-interval", 10 * time.Second, 2 * time.Second},
	ScaleDownUnneeded:         {"cluster-autoscaler", "scale-down-unneeded-time", 10 * time.Minute, 10 * time.Second},
	ScaleDownDelayAfterAdd:    {"cluster-autoscaler", "scale-down-delay-after-add", 10 * time.Minute, 10 * time.Second},
	ConsolidationValidation:   {"karpenter", "commandValidationDelay", 15 * time.Second, 2 * time.Second},
}

// Clock is a cluster's clock setting. It is safe for concurrent use; a nil Clock
// gives the real figures.
type Clock struct {
	mu      sync.Mutex
	speed   int
	changed chan struct{}
}

// New makes a clock that runs at a speed; 0 means 1, the real figures.
func New(speed int) (*Clock, error) {
	c := &Clock{speed: 1, changed: make(chan struct{})}
	return c, c.Set(max(speed, 1))
}

// Set changes the speed, from 1 to lab.MaxSpeed.
func (c *Clock) Set(speed int) error {
	if speed < 1 || speed > lab.MaxSpeed {
		return fmt.Errorf("the clock's speed is from 1 to %d, not %d", lab.MaxSpeed, speed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.speed != speed {
		c.speed = speed
		close(c.changed)
		c.changed = make(chan struct{})
	}
	return nil
}

// Speed is how many times faster the periods pass.
func (c *Clock) Speed() int {
	if c == nil {
		return 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.speed
}

// Changed is closed at the next change of the speed.
func (c *Clock) Changed() <-chan struct{} {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Of is how long a period is now. Whole seconds stay whole seconds.
func (c *Clock) Of(p Period) time.Duration {
	return at(p, c.Speed())
}

func at(p Period, speed int) time.Duration {
	t := table[p]
	d := (t.real / time.Duration(speed)).Truncate(time.Second)
	return min(t.real, max(t.floor, d))
}

// Real is how long a period is on a real cluster.
func Real(p Period) time.Duration { return table[p].real }

// Report shows every period with its real figure.
func (c *Clock) Report() lab.Clock {
	out := lab.Clock{Speed: c.Speed()}
	for p := range periods {
		out.Figures = append(out.Figures, lab.Figure{
			Component: table[p].component, Name: table[p].name,
			RealMillis: table[p].real.Milliseconds(), NowMillis: at(p, out.Speed).Milliseconds(),
		})
	}
	return out
}
