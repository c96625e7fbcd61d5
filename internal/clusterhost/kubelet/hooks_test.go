package kubelet_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

func TestPostStart(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("greets", `{containers: [{name: c, image: busybox, command: [sh, -c, "sleep 600"], lifecycle: {postStart: {exec: {command: [sh, -c, "echo hello > /tmp/greeting"]}}}}]}`))
	h.apply(t, ns, podYAML("trips", `{terminationGracePeriodSeconds: 1, containers: [{name: c, image: busybox, command: [sh, -c, "sleep 600"], lifecycle: {postStart: {exec: {command: [sh, -c, "exit 7"]}}}}]}`))
	h.pod(t, ns, "greets", running)
	if got := h.mustExec(t, ns, "greets", "cat", "/tmp/greeting"); got != "hello\n" {
		t.Errorf("what postStart wrote: %q", got)
	}
	h.event(t, ns, "trips", "FailedPostStartHook", "PostStartHook failed")
	h.pod(t, ns, "trips", func(p *corev1.Pod) string {
		if c := p.Status.ContainerStatuses; len(c) == 0 || c[0].RestartCount == 0 {
			return "a container whose postStart fails is killed and started again"
		}
		return ""
	})
}

func TestSidecarStartsFirstAndStays(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("pair", `{restartPolicy: Never, terminationGracePeriodSeconds: 1, initContainers: [{name: side, image: busybox, restartPolicy: Always, command: [sh, -c, "sleep 600"]}], containers: [{name: main, image: busybox, command: [sh, -c, "exit 0"]}]}`))
	p := h.pod(t, ns, "pair", func(p *corev1.Pod) string {
		if p.Status.Phase != corev1.PodSucceeded {
			return "phase " + string(p.Status.Phase)
		}
		return ""
	})
	side := p.Status.InitContainerStatuses[0]
	if side.State.Terminated == nil || side.RestartCount != 0 {
		t.Errorf("the sidecar ends when the main container has: %+v", side)
	}
	main := p.Status.ContainerStatuses[0].State.Terminated
	if main == nil || main.Reason != "Completed" || side.State.Terminated.FinishedAt.Time.Before(main.FinishedAt.Time) {
		t.Errorf("main %+v, sidecar %+v", main, side.State.Terminated)
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("ear", `{containers: [{name: c, image: busybox, stdin: true, stdinOnce: true, command: [sh, -c, "read word; echo heard $word"]}], restartPolicy: Never}`))
	h.pod(t, ns, "ear", running)
	req := h.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(ns).Name("ear").SubResource("attach").
		VersionedParams(&corev1.PodAttachOptions{Container: "c", Stdin: true, Stdout: true}, scheme.ParameterCodec)
	e, err := remotecommand.NewSPDYExecutor(h.rest, "POST", req.URL())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("soup\n"), Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "heard soup\n" {
		t.Errorf("attached output: %q", out.String())
	}
}

func TestEphemeralContainer(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("patient", `{containers: [{name: c, image: "registry.k8s.io/pause:3.10"}]}`))
	p := h.pod(t, ns, "patient", running)
	p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "doctor", Image: "busybox", Command: []string{"sh", "-c", "sleep 600"}},
	})
	if _, err := h.client.CoreV1().Pods(ns).UpdateEphemeralContainers(t.Context(), "patient", p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	p = h.pod(t, ns, "patient", func(p *corev1.Pod) string {
		if s := p.Status.EphemeralContainerStatuses; len(s) != 1 || s[0].State.Running == nil {
			return "the ephemeral container doesn't run"
		}
		return ""
	})
	if since := time.Since(p.Status.EphemeralContainerStatuses[0].State.Running.StartedAt.Time); since > time.Minute {
		t.Errorf("started %v ago", since)
	}
}
