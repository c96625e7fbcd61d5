package stream

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kubistro/internal/checker"
	"kubistro/internal/lab"
)

// bounds of a reduced object: a learner may make objects of a megabyte.
const (
	maxLabels    = 32
	maxImages    = 16
	maxEndpoints = 64
	maxPorts     = 16
	maxText      = 256
)

// Ref names an object.
func Ref(kind string, o *unstructured.Unstructured) lab.ObjectRef {
	return lab.ObjectRef{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID())}
}

// reduce makes the form of an object that the page draws from. It never holds a
// ConfigMap's or Secret's contents.
func reduce(kind string, o *unstructured.Unstructured) lab.ObjectState {
	s := lab.ObjectState{
		Ref:      Ref(kind, o),
		Labels:   boundedLabels(o.GetLabels()),
		Created:  o.GetCreationTimestamp().Time,
		Deleting: o.GetDeletionTimestamp() != nil,
	}
	if c := controller(o); c != nil {
		s.Owner = c
	}
	switch kind {
	case "Pod":
		decode(o, &s, reducePod)
		s.Status = checker.PodStatus(o.Object)
		s.Ready, s.Containers = checker.PodReady(o.Object)
		s.Restarts = checker.PodRestarts(o.Object)
	case "Node":
		decode(o, &s, reduceNode)
	case "Namespace":
		decode(o, &s, func(n *corev1.Namespace, s *lab.ObjectState) { s.Status = string(n.Status.Phase) })
	case "Deployment":
		s.Revision = o.GetAnnotations()["deployment.kubernetes.io/revision"]
		decode(o, &s, reduceDeployment)
	case "ReplicaSet":
		s.Revision = o.GetAnnotations()["deployment.kubernetes.io/revision"]
		decode(o, &s, reduceReplicaSet)
	case "StatefulSet":
		decode(o, &s, reduceStatefulSet)
	case "DaemonSet":
		decode(o, &s, reduceDaemonSet)
	case "Job":
		decode(o, &s, reduceJob)
	case "CronJob":
		decode(o, &s, reduceCronJob)
	case "Service":
		decode(o, &s, reduceService)
	case "EndpointSlice":
		decode(o, &s, reduceEndpointSlice)
	case "Ingress":
		decode(o, &s, reduceIngress)
	case "HorizontalPodAutoscaler":
		decode(o, &s, reduceHPA)
	}
	return s
}

// decode fills a typed object and lets f read it; an object that doesn't decode
// (the API server wouldn't have accepted it) keeps its metadata only.
func decode[T any](o *unstructured.Unstructured, s *lab.ObjectState, f func(*T, *lab.ObjectState)) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err == nil {
		f(typed, s)
	}
}

func controller(o *unstructured.Unstructured) *lab.ObjectRef {
	c := metav1.GetControllerOf(o)
	if c == nil {
		return nil
	}
	return &lab.ObjectRef{Kind: c.Kind, Namespace: o.GetNamespace(), Name: c.Name, UID: string(c.UID)}
}

func reducePod(p *corev1.Pod, s *lab.ObjectState) {
	s.Node, s.IP = p.Spec.NodeName, p.Status.PodIP
	s.Images = images(p.Spec)
}

func images(spec corev1.PodSpec) []string {
	var out []string
	for _, c := range spec.Containers {
		if len(out) == maxImages {
			break
		}
		out = append(out, cut(c.Image))
	}
	return out
}

func reduceNode(n *corev1.Node, s *lab.ObjectState) {
	s.CPU, s.Memory = n.Status.Allocatable.Cpu().String(), n.Status.Allocatable.Memory().String()
	s.Unschedulable = n.Spec.Unschedulable
	for _, t := range n.Spec.Taints {
		if len(s.Taints) == maxPorts {
			break
		}
		taint := t.Key
		if t.Value != "" {
			taint += "=" + t.Value
		}
		s.Taints = append(s.Taints, cut(taint+":"+string(t.Effect)))
	}
	slices.Sort(s.Taints)
	s.Status = "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			s.Status = "Ready"
		} else if c.Type == corev1.NodeReady {
			s.Status = "NotReady"
		}
	}
	if n.Spec.Unschedulable {
		s.Status += ",SchedulingDisabled"
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && s.IP == "" {
			s.IP = a.Address
		}
	}
}

func reduceDeployment(d *appsv1.Deployment, s *lab.ObjectState) {
	s.Desired = replicas(d.Spec.Replicas)
	s.Actual, s.Ready = int(d.Status.Replicas), int(d.Status.ReadyReplicas)
	s.Updated, s.Available = int(d.Status.UpdatedReplicas), int(d.Status.AvailableReplicas)
	s.Images = images(d.Spec.Template.Spec)
	s.Selector = selector(d.Spec.Selector)
}

func reduceReplicaSet(r *appsv1.ReplicaSet, s *lab.ObjectState) {
	s.Desired = replicas(r.Spec.Replicas)
	s.Actual, s.Ready, s.Available = int(r.Status.Replicas), int(r.Status.ReadyReplicas), int(r.Status.AvailableReplicas)
	s.Images = images(r.Spec.Template.Spec)
	s.Selector = selector(r.Spec.Selector)
}

func reduceStatefulSet(t *appsv1.StatefulSet, s *lab.ObjectState) {
	s.Desired = replicas(t.Spec.Replicas)
	s.Actual, s.Ready = int(t.Status.Replicas), int(t.Status.ReadyReplicas)
	s.Updated, s.Available = int(t.Status.UpdatedReplicas), int(t.Status.AvailableReplicas)
	s.Images = images(t.Spec.Template.Spec)
	s.Selector = selector(t.Spec.Selector)
}

func reduceDaemonSet(d *appsv1.DaemonSet, s *lab.ObjectState) {
	s.Desired, s.Actual = int(d.Status.DesiredNumberScheduled), int(d.Status.CurrentNumberScheduled)
	s.Ready, s.Updated, s.Available = int(d.Status.NumberReady), int(d.Status.UpdatedNumberScheduled), int(d.Status.NumberAvailable)
	s.Images = images(d.Spec.Template.Spec)
	s.Selector = selector(d.Spec.Selector)
}

func reduceJob(j *batchv1.Job, s *lab.ObjectState) {
	s.Desired = 1
	if j.Spec.Completions != nil {
		s.Desired = int(*j.Spec.Completions)
	}
	s.Actual, s.Ready, s.Available = int(j.Status.Active), int(ptr(j.Status.Ready)), int(j.Status.Succeeded)
	s.Images = images(j.Spec.Template.Spec)
	s.Status = "Running"
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobFailed, batchv1.JobSuspended:
			s.Status = string(c.Type)
		}
	}
}

func reduceCronJob(c *batchv1.CronJob, s *lab.ObjectState) {
	s.Type, s.Actual = cut(c.Spec.Schedule), len(c.Status.Active)
	s.Images = images(c.Spec.JobTemplate.Spec.Template.Spec)
	if ptr(c.Spec.Suspend) {
		s.Status = "Suspended"
	}
}

func reduceService(v *corev1.Service, s *lab.ObjectState) {
	s.ClusterIP, s.Type = v.Spec.ClusterIP, string(v.Spec.Type)
	s.Selector = boundedLabels(v.Spec.Selector)
	for _, p := range v.Spec.Ports {
		if len(s.Ports) == maxPorts {
			break
		}
		port := strconv.Itoa(int(p.Port))
		if p.NodePort != 0 {
			port += ":" + strconv.Itoa(int(p.NodePort))
		}
		s.Ports = append(s.Ports, port+"/"+string(p.Protocol))
	}
	for _, in := range v.Status.LoadBalancer.Ingress {
		if s.IP == "" {
			s.IP = in.IP + in.Hostname
		}
	}
}

func reduceEndpointSlice(e *discoveryv1.EndpointSlice, s *lab.ObjectState) {
	s.Service = e.Labels[discoveryv1.LabelServiceName]
	for _, p := range e.Ports {
		if len(s.Ports) < maxPorts {
			s.Ports = append(s.Ports, fmt.Sprintf("%d/%s", ptr(p.Port), ptr(p.Protocol)))
		}
	}
	for _, ep := range e.Endpoints {
		if len(s.Endpoints) == maxEndpoints || len(ep.Addresses) == 0 {
			break
		}
		v := lab.Endpoint{IP: ep.Addresses[0], Ready: ep.Conditions.Ready == nil || *ep.Conditions.Ready}
		if ep.TargetRef != nil && ep.TargetRef.Kind == "Pod" {
			v.Pod = ep.TargetRef.Name
		}
		s.Endpoints = append(s.Endpoints, v)
	}
	slices.SortFunc(s.Endpoints, func(a, b lab.Endpoint) int {
		if a.IP < b.IP {
			return -1
		} else if a.IP > b.IP {
			return 1
		}
		return 0
	})
}

func reduceIngress(i *networkingv1.Ingress, s *lab.ObjectState) {
	s.Type = ptr(i.Spec.IngressClassName)
	for _, r := range i.Spec.Rules {
		if len(s.Ports) < maxPorts {
			s.Ports = append(s.Ports, cut(r.Host))
		}
	}
	for _, in := range i.Status.LoadBalancer.Ingress {
		if s.IP == "" {
			s.IP = in.IP + in.Hostname
		}
	}
}

func reduceHPA(h *autoscalingv2.HorizontalPodAutoscaler, s *lab.ObjectState) {
	s.Desired, s.Actual = int(h.Status.DesiredReplicas), int(h.Status.CurrentReplicas)
	s.Service = cut(h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name)
	for _, c := range h.Status.Conditions {
		if c.Type == autoscalingv2.ScalingActive && c.Status != corev1.ConditionTrue {
			s.Status = c.Reason
		}
	}
}

func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

func ptr[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func selector(s *metav1.LabelSelector) map[string]string {
	if s == nil {
		return nil
	}
	return boundedLabels(s.MatchLabels)
}

func boundedLabels(in map[string]string) map[string]string {
	if len(in) <= maxLabels {
		return in
	}
	keys := make([]string, 0, len(in))
	for k := range in {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := make(map[string]string, maxLabels)
	for _, k := range keys[:maxLabels] {
		out[k] = in[k]
	}
	return out
}

// cut bounds a text without splitting a character.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
