package kubelet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/controlapi"
)

// TestAutoscaler runs the HorizontalPodAutoscaler on a cluster of its own, whose clock
// is fast and whose metrics go away at the end.
func TestAutoscaler(t *testing.T) {
	h := startFast(t, 30)
	t.Run("load from the street", func(t *testing.T) { scaleWithGuests(t, h) })
	t.Run("memory", func(t *testing.T) { scaleByMemory(t, h) })
	t.Run("policies", func(t *testing.T) { scaleByPolicy(t, h) })
	t.Run("unknown", func(t *testing.T) { scaleBlindly(t, h) })
}

// cooks creates a Deployment of grill-cook and its autoscaler of the same name.
func (h *host) cooks(t *testing.T, ns, name, container, autoscaler string) {
	t.Helper()
	h.create(t, "/apis/apps/v1/namespaces/"+ns+"/deployments", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: `+name+`},
  spec: {selector: {matchLabels: {app: `+name+`}}, template: {metadata: {labels: {app: `+name+`}}, spec: {containers: [{name: c, image: "grill-cook:1.4", `+container+`}]}}}}`)
	h.create(t, "/apis/autoscaling/v2/namespaces/"+ns+"/horizontalpodautoscalers", `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: `+name+`},
  spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: `+name+`}, `+autoscaler+`}}`)
}

// autoscaler waits for a state of a HorizontalPodAutoscaler.
func (h *host) autoscaler(t *testing.T, ns, name string, check func(*autoscalingv2.HorizontalPodAutoscaler) string) *autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	var a *autoscalingv2.HorizontalPodAutoscaler
	eventually(t, func(ctx context.Context) (wrong string) {
		var err error
		if a, err = h.client.AutoscalingV2().HorizontalPodAutoscalers(ns).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if wrong = check(a); wrong != "" {
			wrong = fmt.Sprintf("%s: %s: %+v", name, wrong, a.Status)
		}
		return wrong
	})
	return a
}

func replicas(n int32) func(*autoscalingv2.HorizontalPodAutoscaler) string {
	return func(a *autoscalingv2.HorizontalPodAutoscaler) string {
		if a.Status.CurrentReplicas != n || a.Status.DesiredReplicas != n {
			return fmt.Sprintf("there aren't %d", n)
		}
		return ""
	}
}

// said waits for a condition of an autoscaler with a reason and a part of its message.
func said(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason, part string) func(*autoscalingv2.HorizontalPodAutoscaler) string {
	return func(a *autoscalingv2.HorizontalPodAutoscaler) string {
		if slices.ContainsFunc(a.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
			return c.Type == kind && c.Status == status && c.Reason == reason && strings.Contains(c.Message, part)
		}) {
			return ""
		}
		return fmt.Sprintf("no condition %s=%s because of %s with %q", kind, status, reason, part)
	}
}

// scaleWithGuests has guests in the street order dishes until there are more cooks, and leave.
func scaleWithGuests(t *testing.T, h *host) {
	ns := h.space(t)
	h.cooks(t, ns, "grill", `resources: {requests: {cpu: 200m}, limits: {cpu: 500m}}`,
		`minReplicas: 1, maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]`)
	h.apply(t, ns, "apiVersion: v1\nkind: Service\nmetadata: {name: grill}\nspec: {type: LoadBalancer, selector: {app: grill}, ports: [{port: 80, targetPort: 8080}]}")
	var door string
	settles(t, func() string {
		s, err := h.client.CoreV1().Services(ns).Get(t.Context(), "grill", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if len(s.Status.LoadBalancer.Ingress) == 0 {
			return "the Service has no door"
		}
		door = s.Status.LoadBalancer.Ingress[0].IP
		return ""
	})
	leave := h.guests(t, "http://"+door+"/cook?ms=60", 6)
	h.autoscaler(t, ns, "grill", replicas(3))
	h.event(t, ns, "grill", "SuccessfulRescale", "reason: cpu resource utilization (percentage of request) above target")
	h.autoscaler(t, ns, "grill", said(autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound", "from cpu resource utilization"))
	leave()
	// the highest recommendation of the stabilization window holds at first
	h.autoscaler(t, ns, "grill", said(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ScaleDownStabilized", "recent recommendations were higher than current one"))
	h.autoscaler(t, ns, "grill", replicas(1))
	h.event(t, ns, "grill", "SuccessfulRescale", "New size: 1; reason: All metrics below target")
}

// guests ask for a URL from the street, n at a time, until the returned function is called.
func (h *host) guests(t *testing.T, url string, n int) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return h.api.Dial(ctx, controlapi.NetworkStreet, address)
	}}}
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if res, err := client.Do(req); err == nil { // there may be nobody to answer yet
					res.Body.Close()
				} else if !sleep(ctx, 100*time.Millisecond) {
					return
				}
			}
		})
	}
	leave = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	t.Cleanup(leave)
	return leave
}

// sleep reports false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// scaleByMemory has one autoscaler for what Pods hold on average and one for the share of what they request.
func scaleByMemory(t *testing.T, h *host) {
	ns := h.space(t)
	const request = `args: [--hoard, "88"], resources: {requests: {memory: 100Mi}}` // and 12 that a cook holds anyway
	h.cooks(t, ns, "share", request, `maxReplicas: 2, metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 60}}}]`)
	h.cooks(t, ns, "value", request, `maxReplicas: 3, metrics: [{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 50Mi}}}]`)
	h.cooks(t, ns, "enough", request, `maxReplicas: 3, metrics: [{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 100Mi}}}]`)
	h.autoscaler(t, ns, "share", func(a *autoscalingv2.HorizontalPodAutoscaler) string {
		if m := a.Status.CurrentMetrics; a.Status.CurrentReplicas != 2 || len(m) != 1 || m[0].Resource == nil || ptr.Deref(m[0].Resource.Current.AverageUtilization, 0) != 100 {
			return "two that use all they request"
		}
		return ""
	})
	h.autoscaler(t, ns, "share", said(autoscalingv2.ScalingLimited, corev1.ConditionTrue, "TooManyReplicas", "more than the maximum replica count"))
	h.event(t, ns, "share", "SuccessfulRescale", "New size: 2; reason: memory resource utilization (percentage of request) above target")
	h.autoscaler(t, ns, "value", replicas(3))
	h.event(t, ns, "value", "SuccessfulRescale", "reason: memory resource above target")
	h.autoscaler(t, ns, "enough", func(a *autoscalingv2.HorizontalPodAutoscaler) string {
		if m := a.Status.CurrentMetrics; len(m) != 1 || m[0].Resource == nil || m[0].Resource.Current.AverageValue == nil || m[0].Resource.Current.AverageValue.Value() != 100<<20 || a.Status.DesiredReplicas != 1 {
			return "one that holds what it may"
		}
		return ""
	})
}

// scaleByPolicy bounds how fast an autoscaler may go in each direction.
func scaleByPolicy(t *testing.T, h *host) {
	ns := h.space(t)
	h.cooks(t, ns, "slow", `args: [--load, 80m], resources: {requests: {cpu: 100m}}`,
		`maxReplicas: 4, behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 5}]}, scaleDown: {selectPolicy: Disabled}},
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 20}}}]`)
	h.autoscaler(t, ns, "slow", said(autoscalingv2.ScalingLimited, corev1.ConditionTrue, "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"))
	h.autoscaler(t, ns, "slow", replicas(4))
	for n := 2; n <= 4; n++ { // one after the other, where all at once was asked for
		h.event(t, ns, "slow", "SuccessfulRescale", fmt.Sprintf("New size: %d; ", n))
	}
	// their work ends, and they stay: nobody may be sent home
	for _, p := range h.readyPods(t, ns, "app=slow", 4) {
		h.mustExec(t, ns, p.Name, "load", "off")
	}
	h.autoscaler(t, ns, "slow", said(autoscalingv2.ScalingLimited, corev1.ConditionTrue, "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"))
	h.autoscaler(t, ns, "slow", replicas(4))
	// with a policy instead they leave one by one, without the usual stabilization
	if _, err := h.client.AutoscalingV2().HorizontalPodAutoscalers(ns).Patch(t.Context(), "slow", "application/merge-patch+json",
		[]byte(`{"spec":{"behavior":{"scaleDown":{"selectPolicy":"Max","stabilizationWindowSeconds":0,"policies":[{"type":"Pods","value":1,"periodSeconds":4}]}}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	h.autoscaler(t, ns, "slow", replicas(1))
	for n := 3; n >= 1; n-- {
		h.event(t, ns, "slow", "SuccessfulRescale", fmt.Sprintf("New size: %d; reason: All metrics below target", n))
	}
}

// scaleBlindly looks at the two ways to have no metric: nobody gives any, and a share of nothing.
func scaleBlindly(t *testing.T, h *host) {
	ns := h.space(t)
	const target = `maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]`
	h.cooks(t, ns, "shapeless", `args: [--load, 90m]`, target)
	h.cooks(t, ns, "good", `args: [--load, 90m], resources: {requests: {cpu: 100m}}`, target)
	h.autoscaler(t, ns, "shapeless", said(autoscalingv2.ScalingActive, corev1.ConditionFalse, "FailedGetResourceMetric", "failed to get cpu utilization: missing request for cpu in container c of Pod shapeless-"))
	h.event(t, ns, "shapeless", "FailedGetResourceMetric", "missing request for cpu in container c of Pod shapeless-")
	h.shows(t, ns, "shapeless", "cpu: <unknown>/50%")
	h.autoscaler(t, ns, "good", replicas(3))

	h.scale(t, metav1.NamespaceSystem, "metrics-server", "0")
	away := "unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server is currently unable to handle the request (get pods.metrics.k8s.io)"
	h.autoscaler(t, ns, "good", said(autoscalingv2.ScalingActive, corev1.ConditionFalse, "FailedGetResourceMetric", away))
	h.event(t, ns, "good", "FailedGetResourceMetric", away)
	h.shows(t, ns, "good", "cpu: <unknown>/50%")
	if a := h.autoscaler(t, ns, "good", func(*autoscalingv2.HorizontalPodAutoscaler) string { return "" }); a.Status.DesiredReplicas != 3 {
		t.Errorf("blind, it wants %d", a.Status.DesiredReplicas)
	}

	const service = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"
	if err := h.client.RESTClient().Delete().AbsPath(service).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	h.autoscaler(t, ns, "good", said(autoscalingv2.ScalingActive, corev1.ConditionFalse, "FailedGetResourceMetric",
		"unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"))
}

// shows waits until a column of kubectl get hpa reads so.
func (h *host) shows(t *testing.T, ns, name, want string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		var table metav1.Table
		raw, err := h.client.AutoscalingV2().RESTClient().Get().Namespace(ns).Resource("horizontalpodautoscalers").Name(name).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
		if err == nil {
			err = json.Unmarshal(raw, &table)
		}
		if err != nil {
			return err.Error()
		}
		if len(table.Rows) != 1 || !slices.Contains(table.Rows[0].Cells, any(want)) {
			return fmt.Sprintf("the table has %v, want %q", table.Rows, want)
		}
		return ""
	})
}
