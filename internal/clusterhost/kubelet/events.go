package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// events sends the node's Events with the recorder that the real kubelet uses:
// it counts repeats, aggregates what is alike and drops a flood.
type events struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorderLogger
}

func (b *boot) startEvents(ctx context.Context) {
	bc := record.NewBroadcaster(record.WithContext(klog.NewContext(ctx, klog.Logger{})))
	b.events = events{bc, bc.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: b.k.cfg.Name})}
	bc.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: b.k.cfg.Client.CoreV1().Events("")})
}

// podEvent records an Event of a Pod, or of one of its containers when path is set.
func (b *boot) podEvent(pod *corev1.Pod, path, kind, reason, format string, args ...any) {
	if b.dark.Load() || !b.k.work.isOpen() {
		return
	}
	ref := &corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		ResourceVersion: pod.ResourceVersion, FieldPath: path,
	}
	b.events.recorder.Event(ref, kind, reason, fmt.Sprintf(format, args...))
}

// annotatedPodEvent records an Event of a Pod that carries annotations.
func (b *boot) annotatedPodEvent(pod *corev1.Pod, annotations map[string]string, kind, reason, message string) {
	if b.dark.Load() {
		return
	}
	ref := &corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}
	b.events.recorder.AnnotatedEventf(ref, annotations, kind, reason, "%s", message)
}

// nodeEvent records an Event of the node.
func (b *boot) nodeEvent(kind, reason, message string) {
	if b.dark.Load() || !b.k.work.isOpen() {
		return
	}
	ref := &corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: b.k.cfg.Name, UID: b.nodeUID()}
	b.events.recorder.Event(ref, kind, reason, message)
}

// nodeStatusEvent is the form of kubelet_node_status.go, recordNodeStatusEvent.
func (b *boot) nodeStatusEvent(reason string) {
	b.nodeEvent(corev1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", b.k.cfg.Name, reason))
}

func podName(p *corev1.Pod) string { return p.Name + "_" + p.Namespace }
