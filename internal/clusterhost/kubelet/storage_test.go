package kubelet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func claimYAML(name, class, size string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s}\nspec: {accessModes: [ReadWriteOnce], storageClassName: %q, resources: {requests: {storage: %s}}}", name, class, size)
}

func bound(c *corev1.PersistentVolumeClaim) string {
	if c.Status.Phase != corev1.ClaimBound {
		return "isn't bound"
	}
	return ""
}

// onNode runs a command in a Pod that sees a node's whole disk at /host, as
// kubectl debug node does, and returns its output.
func (h *host) onNode(t *testing.T, ns, node, name, command string) string {
	t.Helper()
	h.apply(t, ns, podYAML(name, fmt.Sprintf(`{nodeName: %s, restartPolicy: Never, containers: [{name: c, image: busybox, command: [sh, -c, %q], volumeMounts: [{name: host, mountPath: /host}]}], volumes: [{name: host, hostPath: {path: /}}]}`, node, command)))
	h.pod(t, ns, name, over(corev1.PodSucceeded))
	return h.logs(t, ns, name, corev1.PodLogOptions{})
}

func TestClaimOfTheDefaultClass(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, strings.Replace(claimYAML("data", "", "2Gi"), `storageClassName: "", `, "", 1))
	h.event(t, ns, "data", "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
	user := `{terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sh, -c, "echo from $HOSTNAME >> /data/log; sleep 600"], volumeMounts: [{name: d, mountPath: /data}]}], volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}`
	h.apply(t, ns, podYAML("first", user))
	claim := until(t, h, "persistentvolumeclaims", ns, "data", bound)
	node := h.pod(t, ns, "first", ready).Spec.NodeName
	pv := until(t, h, "persistentvolumes", "", claim.Spec.VolumeName, func(*corev1.PersistentVolume) string { return "" })
	if pv.Name != "pvc-"+string(claim.UID) || pv.Spec.StorageClassName != "standard" || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete ||
		pv.Spec.Capacity.Storage().String() != "2Gi" || pv.Annotations["pv.kubernetes.io/provisioned-by"] != "rancher.io/local-path" {
		t.Errorf("volume: %+v", pv)
	}
	if got := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values; len(got) != 1 || got[0] != node || claim.Annotations["volume.kubernetes.io/selected-node"] != node {
		t.Errorf("the volume is bound to %v, the Pod to %s", got, node)
	}
	h.event(t, ns, "data", "Provisioning", fmt.Sprintf("External provisioner is provisioning volume for claim %q", ns+"/data"))
	if e := h.event(t, ns, "data", "ProvisioningSucceeded", "Successfully provisioned volume "+pv.Name); !strings.HasPrefix(e.Source.Component, "rancher.io/local-path_local-path-provisioner-") {
		t.Errorf("the Event comes from %q", e.Source.Component)
	}

	if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.gone(t, ns, "first")
	h.apply(t, ns, podYAML("second", user))
	if p := h.pod(t, ns, "second", ready); p.Spec.NodeName != node {
		t.Errorf("the second Pod runs on %s, the data are on %s", p.Spec.NodeName, node)
	}
	if got := h.mustExec(t, ns, "second", "cat", "/data/log"); got != "from first\nfrom second\n" {
		t.Errorf("data: %q", got)
	}
	dir := "/host" + pv.Spec.HostPath.Path
	if got := h.onNode(t, ns, node, "look", "cat "+dir+"/log"); got != "from first\nfrom second\n" {
		t.Errorf("the folder on the node: %q", got)
	}

	for _, pod := range []string{"second", "look"} {
		if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), pod, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.client.CoreV1().PersistentVolumeClaims(ns).Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.volumeGone(t, pv.Name)
	if got := h.onNode(t, ns, node, "after", "ls /host/var/local-path-provisioner"); strings.Contains(got, pv.Name) {
		t.Errorf("the data are still on the node: %q", got)
	}
}

func (h *host) volumeGone(t *testing.T, name string) {
	t.Helper()
	w, err := h.client.CoreV1().PersistentVolumes().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := h.client.CoreV1().PersistentVolumes().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		return
	}
	deadline, stop := deadline(t)
	defer stop()
	for {
		select {
		case e := <-w.ResultChan():
			if e.Type == "DELETED" {
				return
			}
		case <-deadline:
			t.Fatalf("volume %s is still there", name)
		}
	}
}

// TestVolumeDeletedFirst: the data go as well when somebody deletes the volume
// before the provisioner has seen that it is released.
func TestVolumeDeletedFirst(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, claimYAML("data", "standard", "1Gi"))
	h.apply(t, ns, podYAML("user", `{terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sh, -c, "echo x > /data/f; sleep 600"], volumeMounts: [{name: d, mountPath: /data}]}], volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}`))
	node := h.pod(t, ns, "user", ready).Spec.NodeName
	volume := until(t, h, "persistentvolumeclaims", ns, "data", bound).Spec.VolumeName
	if err := h.client.CoreV1().PersistentVolumes().Delete(t.Context(), volume, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), "user", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := h.client.CoreV1().PersistentVolumeClaims(ns).Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.volumeGone(t, volume)
	h.onNode(t, ns, node, "wait", "while ls /host/var/local-path-provisioner | grep "+volume+"; do sleep 1; done")
}

func TestClaimThatCannotBeProvisioned(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, strings.Replace(claimYAML("many", "standard", "1Gi"), "ReadWriteOnce", "ReadWriteMany", 1))
	h.apply(t, ns, podYAML("user", `{terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sleep, "600"], volumeMounts: [{name: d, mountPath: /data}]}], volumes: [{name: d, persistentVolumeClaim: {claimName: many}}]}`))
	h.event(t, ns, "many", "ProvisioningFailed", `failed to provision volume with StorageClass "standard": NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes`)
}

// TestStaticVolumes binds claims to volumes that the cluster's admin has made.
func TestStaticVolumes(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	local := "/mnt/" + ns
	affinity := &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"kitchen-2"}}},
	}}}}
	for name, spec := range map[string]corev1.PersistentVolumeSpec{
		"host-" + ns:  {PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/" + ns}}},
		"local-" + ns: {PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: local}}, NodeAffinity: affinity},
	} {
		kind, _, _ := strings.Cut(name, "-")
		spec.StorageClassName, spec.AccessModes = "manual-"+kind+ns, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		if _, err := h.client.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			h.client.CoreV1().PersistentVolumes().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
		h.apply(t, ns, claimYAML(kind, "manual-"+kind+ns, "500Mi"))
		h.apply(t, ns, podYAML(kind, `{terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sh, -c, "echo `+kind+` > /data/f; sleep 600"], volumeMounts: [{name: d, mountPath: /data}]}], volumes: [{name: d, persistentVolumeClaim: {claimName: `+kind+`}}]}`))
	}
	node := h.pod(t, ns, "host", ready).Spec.NodeName
	if got := h.onNode(t, ns, node, "look", "cat /host/srv/"+ns+"/f"); got != "host\n" {
		t.Errorf("hostPath volume: %q", got)
	}
	h.event(t, ns, "local", "FailedMount", fmt.Sprintf("MountVolume.NewMounter initialization failed for volume %q : path %q does not exist", "local-"+ns, local))
	h.onNode(t, ns, "kitchen-2", "maker", "mkdir -p /host"+local)
	if p := h.pod(t, ns, "local", ready); p.Spec.NodeName != "kitchen-2" {
		t.Errorf("the Pod of a local volume of kitchen-2 runs on %s", p.Spec.NodeName)
	}
}

func TestHostPathTypes(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	for name, c := range map[string]struct{ kind, path, event string }{
		"directory": {"Directory", "/nowhere", `hostPath type check failed, /nowhere is not a directory, unable to determine its type: path "/nowhere" does not exist`},
		"file":      {"File", "/etc", `hostPath type check failed: /etc is not a file, it's a Directory`},
		"socket":    {"Socket", "/etc/hostname", `hostPath type check failed: /etc/hostname is not a socket file, it's a File`},
		"parent":    {"FileOrCreate", "/nowhere/f", `open /nowhere/f: no such file or directory`},
	} {
		h.apply(t, ns, podYAML(name, fmt.Sprintf(`{terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sleep, "600"], volumeMounts: [{name: d, mountPath: /data}]}], volumes: [{name: d, hostPath: {path: %s, type: %s}}]}`, c.path, c.kind)))
		h.event(t, ns, name, "FailedMount", `MountVolume.SetUp failed for volume "d" : `+c.event)
	}
	h.apply(t, ns, podYAML("good", `{nodeName: kitchen-1, terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sh, -c, "cat /name; sleep 600"], volumeMounts: [{name: d, mountPath: /name}]}], volumes: [{name: d, hostPath: {path: /etc/hostname, type: File}}]}`))
	h.pod(t, ns, "good", ready)
	if got := h.logs(t, ns, "good", corev1.PodLogOptions{}); got != "kitchen-1\n" {
		t.Errorf("a file of the node: %q", got)
	}
}

// TestGenericEphemeralVolume: the claim lives and dies with its Pod.
func TestGenericEphemeralVolume(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("scratch", `{terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sh, -c, "echo x > /data/f; sleep 600"], volumeMounts: [{name: d, mountPath: /data}]}], volumes: [{name: d, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}`))
	h.pod(t, ns, "scratch", ready)
	claim := until(t, h, "persistentvolumeclaims", ns, "scratch-d", bound)
	if err := h.client.CoreV1().Pods(ns).Delete(t.Context(), "scratch", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.volumeGone(t, claim.Spec.VolumeName)
}
