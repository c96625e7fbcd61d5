package kubelet_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubistro/internal/clusterhost/controlapi"
)

// TestSleepCrashAndPower takes a cluster of its own through a graceful stop, a
// crash and a loss of power.
func TestSleepCrashAndPower(t *testing.T) {
	dir := scratch(t)
	h, err := start(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { h.kill() }()
	again := func() {
		t.Helper()
		if h, err = start(dir); err != nil {
			t.Fatal(err)
		}
	}
	ns := h.space(t)
	h.apply(t, ns, claimYAML("data", "standard", "1Gi"))
	h.apply(t, ns, podYAML("grill", `{nodeSelector: {kubernetes.io/hostname: kitchen-1}, containers: [{name: c, image: busybox, command: [sh, -c, "echo hello; sleep 600"], volumeMounts: [{name: w, mountPath: /w}, {name: d, mountPath: /d}]}], volumes: [{name: w, emptyDir: {}}, {name: d, persistentVolumeClaim: {claimName: data}}]}`))
	h.apply(t, ns, podYAML("job", `{nodeName: kitchen-1, restartPolicy: Never, containers: [{name: c, image: busybox, command: [sh, -c, "echo done"]}]}`))
	before := h.pod(t, ns, "grill", ready)
	h.pod(t, ns, "job", over(corev1.PodSucceeded))
	h.mustExec(t, ns, "grill", "sh", "-c", "echo kept > /w/f; echo layer > /tmp/f; echo data > /d/f")

	h.stop()
	again()
	p := h.pod(t, ns, "grill", ready)
	if c := container(p); c.RestartCount != 0 || c.ContainerID != container(before).ContainerID || !c.State.Running.StartedAt.Equal(&container(before).State.Running.StartedAt) {
		t.Errorf("after a graceful stop the container goes on: %+v", c)
	}
	if p.Status.PodIP != before.Status.PodIP {
		t.Errorf("address %s, before %s", p.Status.PodIP, before.Status.PodIP)
	}
	var out string
	for end := time.Now().Add(patience); time.Now().Before(end) && out == ""; { // the API knows the Pod as running before its program is started again
		out, _, _ = h.exec(t, ns, "grill", nil, false, "cat", "/w/f", "/tmp/f", "/d/f")
	}
	if out != "kept\nlayer\ndata\n" {
		t.Errorf("files: %q", out)
	}
	if got := h.logs(t, ns, "job", corev1.PodLogOptions{}); got != "done\n" {
		t.Errorf("logs of an ended Pod: %q", got)
	}

	h.kill()
	again()
	p = h.pod(t, ns, "grill", restarts(1))
	if l := container(p).LastTerminationState.Terminated; l == nil || l.ExitCode != 255 || l.Reason != "Unknown" || container(p).RestartCount != 1 {
		t.Errorf("after a crash: %+v", container(p))
	}
	h.event(t, ns, "grill", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
	if out := h.mustExec(t, ns, "grill", "sh", "-c", "cat /d/f; ls /w"); out != "data\n" {
		t.Errorf("after a crash the claim's data are kept and those of an emptyDir are lost: %q", out)
	}
	if p := h.pod(t, ns, "job", over(corev1.PodSucceeded)); container(p).RestartCount != 0 {
		t.Errorf("an ended Pod was restarted: %+v", container(p))
	}

	if err := h.api.Power(t.Context(), controlapi.PowerRequest{Node: "kitchen-1"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if out, err := h.client.CoreV1().Pods(ns).GetLogs("grill", &corev1.PodLogOptions{}).DoRaw(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("a node without power answers: %q %v", out, err)
	}
	if err := h.api.Power(t.Context(), controlapi.PowerRequest{Node: "kitchen-1", On: true}); err != nil {
		t.Fatal(err)
	}
	h.pod(t, ns, "grill", restarts(2))
	if out := h.mustExec(t, ns, "grill", "cat", "/d/f"); out != "data\n" {
		t.Errorf("data after a loss of power: %q", out)
	}
	h.event(t, "default", "kitchen-1", "Rebooted", "Node kitchen-1 has been rebooted, boot id: ")
}
