package kubelet_test

import (
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func podYAML(name, spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: " + spec
}

func TestPodLife(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("grill", `{containers: [{name: cook, image: "grill-cook:1.4", resources: {requests: {cpu: 10m}}}]}`))
	p := h.pod(t, ns, "grill", ready)
	c := container(p)
	if p.Status.PodIP == "" || p.Status.HostIP == "" || p.Status.StartTime == nil || p.Status.QOSClass != corev1.PodQOSBurstable || p.Status.ObservedGeneration != p.Generation {
		t.Errorf("status: %+v", p.Status)
	}
	if !strings.HasPrefix(c.ContainerID, "containerd://") || c.Image != "docker.io/library/grill-cook:1.4" || !strings.Contains(c.ImageID, "@sha256:") || !c.Ready || !*c.Started {
		t.Errorf("container: %+v", c)
	}
	for reason, text := range map[string]string{
		"Scheduled": "Successfully assigned", "Pulled": "grill-cook:1.4", "Created": "Container created", "Started": "Container started",
	} {
		if e := h.event(t, ns, "grill", reason, text); reason != "Scheduled" && (e.Source.Component != "kubelet" || e.InvolvedObject.FieldPath != "spec.containers{cook}") {
			t.Errorf("%s comes from %v for %q", reason, e.Source, e.InvolvedObject.FieldPath)
		}
	}
	if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), "grill", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.event(t, ns, "grill", "Killing", "Stopping container cook")
	h.gone(t, ns, "grill")
}

func TestExitCodeAndMessage(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("bad", `{restartPolicy: Never, containers: [{name: c, image: busybox, command: [sh, -c, "echo burnt; echo too hot > /dev/termination-log; exit 3"]}]}`))
	h.apply(t, ns, podYAML("logs", `{restartPolicy: Never, containers: [{name: c, image: busybox, terminationMessagePolicy: FallbackToLogsOnError, command: [sh, -c, "echo last words; exit 1"]}]}`))
	h.apply(t, ns, podYAML("good", `{restartPolicy: OnFailure, containers: [{name: c, image: busybox, command: [sh, -c, "echo done"]}]}`))
	h.apply(t, ns, podYAML("nope", `{restartPolicy: Never, containers: [{name: c, image: busybox, command: [no-such-program]}]}`))
	ended := func(name string, phase corev1.PodPhase) *corev1.ContainerStateTerminated {
		return container(h.pod(t, ns, name, over(phase))).State.Terminated
	}
	if s := ended("bad", corev1.PodFailed); s == nil || s.ExitCode != 3 || s.Reason != "Error" || strings.TrimSpace(s.Message) != "too hot" {
		t.Errorf("bad: %+v", s)
	}
	if s := ended("logs", corev1.PodFailed); s == nil || strings.TrimSpace(s.Message) != "last words" {
		t.Errorf("logs: %+v", s)
	}
	if s := ended("good", corev1.PodSucceeded); s == nil || s.ExitCode != 0 || s.Reason != "Completed" {
		t.Errorf("good: %+v", s)
	}
	if s := ended("nope", corev1.PodFailed); s == nil || s.ExitCode != 128 || s.Reason != "StartError" || !strings.Contains(s.Message, `exec: "no-such-program": executable file not found in $PATH`) {
		t.Errorf("nope: %+v", s)
	}
	if got := h.logs(t, ns, "bad", corev1.PodLogOptions{}); got != "burnt\n" {
		t.Errorf("logs of an ended container: %q", got)
	}
}

func TestCrashLoop(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("grill", `{containers: [{name: cook, image: "grill-cook:1.4"}]}`))
	before := h.pod(t, ns, "grill", ready)
	h.mustExec(t, ns, "grill", "burn-dish")
	after := h.pod(t, ns, "grill", restarts(1))
	c := container(after)
	if after.Status.PodIP != before.Status.PodIP || after.UID != before.UID || c.ContainerID == container(before).ContainerID {
		t.Errorf("the same Pod was to be restarted in place: %s %s, then %s %s", before.Status.PodIP, before.UID, after.Status.PodIP, after.UID)
	}
	if l := c.LastTerminationState.Terminated; l == nil || l.ExitCode == 0 || l.ContainerID != container(before).ContainerID {
		t.Errorf("last state: %+v", l)
	}
	if old := h.logs(t, ns, "grill", corev1.PodLogOptions{Previous: true}); old == "" || strings.Contains(old, "not found") {
		t.Errorf("previous logs: %q", old)
	}
	h.mustExec(t, ns, "grill", "burn-dish")
	p := h.pod(t, ns, "grill", waiting("CrashLoopBackOff"))
	if m := container(p).State.Waiting.Message; !strings.HasPrefix(m, "back-off 10s restarting failed container=cook pod=grill_"+ns+"(") {
		t.Errorf("message %q", m)
	}
	h.event(t, ns, "grill", "BackOff", "Back-off restarting failed container cook in pod grill_"+ns)
}

func TestImageCannotBePulled(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("tag", `{containers: [{name: c, image: "nginx:doesnotexist"}]}`))
	h.apply(t, ns, podYAML("repo", `{containers: [{name: c, image: mysql}]}`))
	h.apply(t, ns, podYAML("name", `{containers: [{name: c, image: "Not:A:Name"}]}`))
	h.apply(t, ns, podYAML("never", `{containers: [{name: c, image: "grill-cook:9.9", imagePullPolicy: Never}]}`))
	h.pod(t, ns, "tag", waiting("ErrImagePull"))
	h.event(t, ns, "tag", "Failed", `Failed to pull image "nginx:doesnotexist": rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nginx:doesnotexist"`)
	h.event(t, ns, "tag", "Failed", "Error: ErrImagePull")
	h.event(t, ns, "tag", "BackOff", `Back-off pulling image "nginx:doesnotexist"`)
	h.event(t, ns, "tag", "Failed", "Error: ImagePullBackOff")
	p := h.pod(t, ns, "tag", waiting("ImagePullBackOff"))
	if m := container(p).State.Waiting.Message; !strings.HasPrefix(m, `Back-off pulling image "nginx:doesnotexist": ErrImagePull: rpc error`) || p.Status.Phase != corev1.PodPending {
		t.Errorf("phase %s message %q", p.Status.Phase, m)
	}
	h.event(t, ns, "repo", "Failed", "grill-cook") // names what there is
	h.pod(t, ns, "name", waiting("InvalidImageName"))
	h.pod(t, ns, "never", waiting("ErrImageNeverPull"))
	// The reason alternates between the back-off and the next try.
	if got := h.logs(t, ns, "tag", corev1.PodLogOptions{}); !strings.Contains(got, "is waiting to start: trying and failing to pull image") && !strings.Contains(got, "is waiting to start: image can't be pulled") {
		t.Errorf("logs: %s", got)
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("env", `{containers: [{name: c, image: busybox, command: [sleep, "600"], env: [{name: DISH, valueFrom: {configMapKeyRef: {name: menu, key: dish}}}]}]}`))
	h.apply(t, ns, podYAML("files", `{containers: [{name: c, image: busybox, command: [sleep, "600"], volumeMounts: [{name: m, mountPath: /menu}, {name: m, mountPath: /one, subPath: dish}, {name: s, mountPath: /safe}]}],
  volumes: [{name: m, configMap: {name: menu}}, {name: s, secret: {secretName: key, items: [{key: code, path: deep/code}], defaultMode: 256}}]}`))
	p := h.pod(t, ns, "env", waiting("CreateContainerConfigError"))
	if m := container(p).State.Waiting.Message; m != `configmap "menu" not found` {
		t.Errorf("message %q", m)
	}
	h.event(t, ns, "env", "Failed", `Error: configmap "menu" not found`)
	h.event(t, ns, "files", "FailedMount", `MountVolume.SetUp failed for volume "m" : configmap "menu" not found`)
	h.event(t, ns, "files", "FailedMount", `MountVolume.SetUp failed for volume "s" : secret "key" not found`)
	h.apply(t, ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: menu}\ndata: {dish: soup}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {code: '1234'}")
	h.pod(t, ns, "env", running)
	if got := h.mustExec(t, ns, "env", "sh", "-c", "echo $DISH $KUBERNETES_SERVICE_HOST"); got != "soup 10.96.0.1\n" {
		t.Errorf("environment: %q", got)
	}
	h.pod(t, ns, "files", running)
	if got := h.mustExec(t, ns, "files", "cat", "/menu/dish", "/one", "/safe/deep/code"); got != "soupsoup1234" {
		t.Errorf("files: %q", got)
	}
	if _, _, err := h.exec(t, ns, "files", nil, false, "sh", "-c", "echo x > /menu/dish"); err == nil {
		t.Error("a ConfigMap volume can be written to")
	}
}

func TestInitContainersAndVolumes(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("p", `{
  initContainers: [{name: first, image: busybox, command: [sh, -c, "echo one > /w/f"], volumeMounts: [{name: w, mountPath: /w}]},
    {name: second, image: busybox, command: [sh, -c, "echo two >> /w/f"], volumeMounts: [{name: w, mountPath: /w}]}],
  containers: [{name: c, image: busybox, command: [sleep, "600"], args: ["$(SECONDS_)"], env: [{name: SECONDS_, value: "500"}, {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}],
    volumeMounts: [{name: w, mountPath: /w}, {name: d, mountPath: /d}]}],
  volumes: [{name: w, emptyDir: {}}, {name: d, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}`))
	p := h.pod(t, ns, "p", ready)
	for _, st := range p.Status.InitContainerStatuses {
		if st.State.Terminated == nil || st.State.Terminated.Reason != "Completed" || !st.Ready {
			t.Errorf("init container %s: %+v", st.Name, st)
		}
	}
	if got := h.mustExec(t, ns, "p", "sh", "-c", "cat /w/f /d/name; echo; echo $IP"); got != "one\ntwo\np\n"+p.Status.PodIP+"\n" {
		t.Errorf("%q", got)
	}
	token := h.mustExec(t, ns, "p", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
	if strings.Count(token, ".") != 2 {
		t.Errorf("the token of the service account: %q", token)
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("ready", `{containers: [{name: c, image: busybox, command: [sleep, "600"], readinessProbe: {exec: {command: [cat, /tmp/ok]}, periodSeconds: 1, failureThreshold: 1}}]}`))
	h.apply(t, ns, podYAML("live", `{terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sleep, "600"], livenessProbe: {tcpSocket: {port: 81}, periodSeconds: 1, failureThreshold: 2}}]}`))
	h.apply(t, ns, podYAML("http", `{containers: [{name: c, image: "grill-cook:1.4", readinessProbe: {httpGet: {path: /no-such-page, port: 8080}, periodSeconds: 1}}]}`))
	h.apply(t, ns, podYAML("start", `{containers: [{name: c, image: busybox, command: [sleep, "600"], startupProbe: {exec: {command: [cat, /tmp/ok]}, periodSeconds: 1, failureThreshold: 600},
  livenessProbe: {exec: {command: ["false"]}, periodSeconds: 1, failureThreshold: 1}}]}`))

	h.event(t, ns, "ready", "Unhealthy", "Readiness probe failed: ")
	if p := h.pod(t, ns, "ready", running); container(p).Ready || container(p).RestartCount != 0 {
		t.Errorf("without the file: %+v", container(p))
	}
	h.mustExec(t, ns, "ready", "touch", "/tmp/ok")
	h.pod(t, ns, "ready", ready)
	h.mustExec(t, ns, "ready", "rm", "/tmp/ok")
	h.pod(t, ns, "ready", func(p *corev1.Pod) string {
		if ready(p) == "" {
			return "is still ready"
		}
		return ""
	})

	h.event(t, ns, "live", "Unhealthy", "Liveness probe failed: dial tcp ")
	h.event(t, ns, "live", "Killing", "Container c failed liveness probe, will be restarted")
	if c := container(h.pod(t, ns, "live", restarts(1))); c.LastTerminationState.Terminated.ExitCode != 137 {
		t.Errorf("last state: %+v", c.LastTerminationState.Terminated)
	}
	h.event(t, ns, "http", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 404")

	p := h.pod(t, ns, "start", running)
	if *container(p).Started || container(p).Ready {
		t.Errorf("before startup: %+v", container(p))
	}
	h.mustExec(t, ns, "start", "touch", "/tmp/ok")
	h.event(t, ns, "start", "Killing", "Container c failed liveness probe, will be restarted")
}

// A running Pod's image can be changed, and its container starts again whatever the restart policy says.
func TestImageOfRunningPodChanges(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("p", `{restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: c, image: "grill-cook:1.4"}]}`))
	h.pod(t, ns, "p", running)
	patch := []byte(`{"spec":{"containers":[{"name":"c","image":"grill-cook:1.5"}]}}`)
	if _, err := h.client.CoreV1().Pods(ns).Patch(t.Context(), "p", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if c := container(h.pod(t, ns, "p", restarts(1))); c.RestartCount != 1 || c.Image != "docker.io/library/grill-cook:1.5" {
		t.Errorf("after the change: %d restarts, image %s", c.RestartCount, c.Image)
	}
	h.event(t, ns, "p", "Killing", "Container c definition changed, will be restarted")
}

func TestTermination(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("deaf", `{terminationGracePeriodSeconds: 3, containers: [{name: c, image: busybox, command: [sh, -c, "sleep 600"], lifecycle: {preStop: {exec: {command: [sh, -c, "echo bye > /proc/1/fd/1"]}}}}]}`))
	h.pod(t, ns, "deaf", running)
	follow, err := h.client.CoreV1().Pods(ns).GetLogs("deaf", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer follow.Close()
	begin := time.Now()
	if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), "deaf", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(follow) // ends with the container
	if err != nil || string(out) != "bye\n" {
		t.Errorf("logs until the end: %q %v", out, err)
	}
	h.gone(t, ns, "deaf")
	if took := time.Since(begin); took < 2*time.Second {
		t.Errorf("a container that ignores SIGTERM was gone after %v, grace period 3 s", took)
	}
}

func TestForcedDeletion(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("slow", `{terminationGracePeriodSeconds: 600, containers: [{name: c, image: busybox, command: [sleep, "600"]}]}`))
	h.pod(t, ns, "slow", running)
	pods := h.client.CoreV1().Pods(ns)
	if err := pods.Delete(t.Context(), "slow", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.event(t, ns, "slow", "Killing", "Stopping container c")
	if err := pods.Delete(t.Context(), "slow", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	h.gone(t, ns, "slow")
}

func TestActiveDeadline(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("p", `{activeDeadlineSeconds: 1, restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: c, image: busybox, command: [sleep, "600"]}]}`))
	p := h.pod(t, ns, "p", over(corev1.PodFailed))
	if p.Status.Reason != "DeadlineExceeded" || p.Status.Message != "Pod was active on the node longer than the specified deadline" {
		t.Errorf("%s: %s", p.Status.Reason, p.Status.Message)
	}
}

func TestNoRoom(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("big", `{nodeName: kitchen-1, containers: [{name: c, image: busybox, resources: {requests: {cpu: "64"}}}]}`))
	p := h.pod(t, ns, "big", over(corev1.PodFailed))
	if p.Status.Reason != "OutOfcpu" || !strings.HasPrefix(p.Status.Message, "Pod was rejected: Node didn't have enough resource: cpu, requested: 64000, used: ") {
		t.Errorf("%s: %s", p.Status.Reason, p.Status.Message)
	}
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("p", `{containers: [{name: c, image: "grill-cook:1.4", resources: {limits: {memory: 64Mi}}}]}`))
	h.pod(t, ns, "p", ready)
	h.exec(t, ns, "p", nil, false, "hoard", "100")
	p := h.pod(t, ns, "p", restarts(1))
	if l := container(p).LastTerminationState.Terminated; l.Reason != "OOMKilled" || l.ExitCode != 137 {
		t.Errorf("last state %+v", l)
	}
}
