package clusterautoscaler

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// Where the status is. Cluster Autoscaler writes it at every pass; here it is written
// when more than its times has changed.
const (
	statusName    = "cluster-autoscaler-status"
	statusUpdated = "cluster-autoscaler.kubernetes.io/last-updated"
	statusTime    = "2006-01-02 15:04:05.999999999 -0700 MST"
)

// The status as clusterstate/api/types.go has it since 1.30.
type (
	statusDocument struct {
		Time             string        `json:"time"`
		AutoscalerStatus string        `json:"autoscalerStatus"`
		ClusterWide      statusOf      `json:"clusterWide"`
		NodeGroups       []statusGroup `json:"nodeGroups,omitempty"`
	}
	statusGroup struct {
		Name     string `json:"name"`
		statusOf `json:",inline"`
	}
	statusOf struct {
		Health    statusHealth    `json:"health"`
		ScaleUp   statusCondition `json:"scaleUp"`
		ScaleDown statusCondition `json:"scaleDown"`
	}
	statusHealth struct {
		statusCondition     `json:",inline"`
		NodeCounts          statusCounts `json:"nodeCounts"`
		CloudProviderTarget *int         `json:"cloudProviderTarget,omitempty"`
		MinSize             *int         `json:"minSize,omitempty"`
		MaxSize             *int         `json:"maxSize,omitempty"`
	}
	statusCondition struct {
		Status             string `json:"status"`
		Candidates         int    `json:"candidates,omitempty"`
		LastProbeTime      string `json:"lastProbeTime,omitempty"`
		LastTransitionTime string `json:"lastTransitionTime,omitempty"`
	}
	statusCounts struct {
		Registered struct {
			Total      int `json:"total"`
			Ready      int `json:"ready"`
			NotStarted int `json:"notStarted"`
		} `json:"registered"`
		LongUnregistered int `json:"longUnregistered"`
		Unregistered     int `json:"unregistered"`
	}
)

// statusKeeper remembers what was written, without its times, and when each condition changed.
type statusKeeper struct {
	written string
	since   map[string]transition
}

type transition struct {
	status string
	at     time.Time
}

// report writes the status when something but its times has changed.
func (a *autoscaler) report(ctx context.Context, s *snapshot, scaled bool, now time.Time) {
	if !a.o.status {
		return
	}
	if a.status.since == nil {
		a.status.since = map[string]transition{}
	}
	d := statusDocument{AutoscalerStatus: "Running"}
	candidates := map[string]int{}
	for name := range a.unneeded {
		candidates[s.grouped[name]]++
	}
	all, err := a.nodes.List(labels.Everything())
	if err != nil {
		return
	}
	registered, usable := map[string]int{}, map[string]int{}
	for _, n := range all {
		g := s.grouped[n.Name]
		if registered[g]++; ready(n) {
			usable[g]++
		}
	}
	d.ClusterWide = a.statusOf("", len(all), total(usable), total(s.sizes)-total(registered)+registered[""], scaled || s.coming > 0, len(a.unneeded))
	for _, g := range a.o.groups {
		size := s.sizes[g.Name]
		one := statusGroup{Name: g.Name, statusOf: a.statusOf(g.Name, registered[g.Name], usable[g.Name], size-registered[g.Name], size > usable[g.Name], candidates[g.Name])}
		one.Health.CloudProviderTarget, one.Health.MinSize, one.Health.MaxSize = &size, &g.MinSize, &g.MaxSize
		d.NodeGroups = append(d.NodeGroups, one)
	}
	raw, err := yaml.Marshal(d)
	if err != nil || string(raw) == a.status.written {
		return
	}
	plain := string(raw)
	stamp := now.UTC().Format(statusTime)
	d.Time = stamp
	d.ClusterWide = a.stamped("", d.ClusterWide, now)
	for i := range d.NodeGroups {
		d.NodeGroups[i].statusOf = a.stamped(d.NodeGroups[i].Name, d.NodeGroups[i].statusOf, now)
	}
	if raw, err = yaml.Marshal(d); err == nil {
		err = a.write(ctx, string(raw), stamp)
	}
	if err != nil {
		a.logf("Failed to write status configmap: %v", err)
		return
	}
	a.status.written = plain
}

func total(m map[string]int) (n int) {
	for v := range maps.Values(m) {
		n += v
	}
	return n
}

func (a *autoscaler) statusOf(name string, registered, usable, unregistered int, growing bool, candidates int) statusOf {
	var o statusOf
	o.Health.Status, o.ScaleUp.Status, o.ScaleDown.Status = "Healthy", "NoActivity", "NoCandidates"
	o.Health.NodeCounts.Registered.Total, o.Health.NodeCounts.Registered.Ready = registered, usable
	o.Health.NodeCounts.Unregistered = max(0, unregistered)
	switch {
	case growing:
		o.ScaleUp.Status = "InProgress"
	case name != "" && a.backoff[name].After(a.env.Clock.Now()):
		o.ScaleUp.Status = "Backoff"
	}
	if candidates > 0 {
		o.ScaleDown.Status, o.ScaleDown.Candidates = "CandidatesPresent", candidates
	}
	return o
}

// stamped adds the times of the conditions.
func (a *autoscaler) stamped(group string, o statusOf, now time.Time) statusOf {
	for what, c := range map[string]*statusCondition{"health": &o.Health.statusCondition, "up": &o.ScaleUp, "down": &o.ScaleDown} {
		key := group + "/" + what
		if a.status.since[key].status != c.Status {
			a.status.since[key] = transition{c.Status, now}
		}
		c.LastProbeTime, c.LastTransitionTime = now.UTC().Format(time.RFC3339Nano), a.status.since[key].at.UTC().Format(time.RFC3339Nano)
	}
	return o
}

func (a *autoscaler) write(ctx context.Context, text, stamp string) error {
	maps := a.client.CoreV1().ConfigMaps(a.o.namespace)
	cm, err := maps.Get(ctx, statusName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: statusName, Namespace: a.o.namespace, Annotations: map[string]string{statusUpdated: stamp}},
			Data:       map[string]string{"status": text},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	if cm.Annotations == nil {
		cm.Annotations = map[string]string{}
	}
	cm.Annotations[statusUpdated], cm.Data = stamp, map[string]string{"status": text}
	_, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
	return err
}

// note writes an Event of the status, as Cluster Autoscaler does for what concerns no single object.
func (a *autoscaler) note(kind, reason, format string, args ...any) {
	a.events.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: a.o.namespace, Name: statusName}, kind, reason, fmt.Sprintf(format, args...))
}
