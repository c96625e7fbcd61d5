package controlplane

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	appsdefaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/lab"
)

// Clock tells how periods are compressed.
func (h *Host) Clock() lab.Clock { return h.clock.Report() }

// SetClock changes how periods are compressed, for good. The controllers start anew
// with their new flags, as they would with a new manifest; defaults in objects that
// exist stay as they are.
func (h *Host) SetClock(ctx context.Context, speed int) error {
	return h.changing(ctx, func(ctx context.Context) error {
		if speed == h.clock.Speed() {
			return nil
		}
		if err := h.clock.Set(speed); err != nil {
			return fmt.Errorf("%w: %w", controlapi.ErrInvalid, err)
		}
		h.changes.Speed = speed
		if h.manager == nil {
			return nil
		}
		h.manager.close(h.log)
		h.manager = nil
		return h.startManager()
	})
}

// clockFlags are the flags of kube-controller-manager that the clock compresses.
func clockFlags(c *pace.Clock) []string {
	var out []string
	for name, period := range map[string]pace.Period{
		"node-monitor-grace-period": pace.NodeMonitorGrace, "node-monitor-period": pace.NodeMonitor, "node-startup-grace-period": pace.NodeStartupGrace,
		"horizontal-pod-autoscaler-sync-period": pace.HPASync, "horizontal-pod-autoscaler-downscale-stabilization": pace.HPADownscaleStabilization,
		"horizontal-pod-autoscaler-cpu-initialization-period": pace.HPACPUInitialization, "horizontal-pod-autoscaler-initial-readiness-delay": pace.HPAInitialReadiness,
	} {
		out = append(out, "--"+name+"="+c.Of(period).String())
	}
	rate := float64(time.Second) / float64(c.Of(pace.NodeEviction)) // nodes a second
	if rate == 1 {
		// The limiter that stands still while all nodes are lost calls itself one of 1 a second,
		// and wouldn't be replaced by another of that rate: nodelifecycle/scheduler, SwapLimiter.
		rate = 1.01
	}
	return append(out, "--node-eviction-rate="+strconv.FormatFloat(rate, 'g', 4, 32))
}

// compressDefaults compresses what the API server writes into objects where their
// author wrote nothing: the tolerations of Pods for lost nodes and the progress
// deadline of Deployments. With the real speed both are as they always are.
func compressDefaults(o *options.ServerRunOptions, c *pace.Clock) {
	first := admission.DecoratorFunc(func(plugin admission.Interface, name string) admission.Interface {
		if inner, ok := plugin.(admission.MutationInterface); ok && name == defaulttolerationseconds.PluginName {
			return &pacedTolerations{inner, c}
		}
		return plugin
	})
	a := o.Admission.GenericAdmission
	a.Decorators = append(admission.Decorators{first}, a.Decorators...)
	legacyscheme.Scheme.AddTypeDefaultingFunc(&appsv1.Deployment{}, func(object any) {
		d := object.(*appsv1.Deployment)
		if d.Spec.ProgressDeadlineSeconds == nil && c.Speed() > 1 {
			// Validation wants it above minReadySeconds.
			seconds := max(int32(c.Of(pace.ProgressDeadline)/time.Second), d.Spec.MinReadySeconds+1)
			d.Spec.ProgressDeadlineSeconds = ptr.To(min(seconds, int32(pace.Real(pace.ProgressDeadline)/time.Second)))
		}
		appsdefaults.SetObjectDefaults_Deployment(d)
	})
}

// pacedTolerations is DefaultTolerationSeconds with compressed seconds.
type pacedTolerations struct {
	admission.MutationInterface
	clock *pace.Clock
}

// Admit adds the tolerations that the plugin adds; those that are there stay.
func (p *pacedTolerations) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*api.Pod)
	before := 0
	if ok {
		before = len(pod.Spec.Tolerations)
	}
	if err := p.MutationInterface.Admit(ctx, a, o); err != nil || !ok || len(pod.Spec.Tolerations) < before {
		return err
	}
	for i := range pod.Spec.Tolerations[before:] {
		t := &pod.Spec.Tolerations[before+i]
		period := pace.NotReadyToleration
		if t.Key == corev1.TaintNodeUnreachable {
			period = pace.UnreachableToleration
		}
		t.TolerationSeconds = ptr.To(int64(p.clock.Of(period) / time.Second)) // a pointer of its own: the plugin's is shared
	}
	return nil
}
