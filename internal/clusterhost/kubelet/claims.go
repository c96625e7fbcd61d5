package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/pantry/memfs"
)

// pvcProtection keeps a claim while Pods use it: pkg/volume/util/finalizer.go.
const pvcProtection = "kubernetes.io/pvc-protection"

// mountError is an error with the whole text of the FailedMount Event.
type mountError struct{ event string }

func (e *mountError) Error() string { return e.event }

// mountEvent is the text of the Event of a volume that can't be mounted:
// volumemanager/volume_manager.go and operationexecutor/operation_generator.go.
func mountEvent(name string, err error) string {
	var whole *mountError
	if errors.As(err, &whole) {
		return whole.event
	}
	return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", name, err)
}

// unprocessed is the error of a volume that the volume manager can't even begin to mount.
func unprocessed(v corev1.Volume, err error) error {
	return &mountError{fmt.Sprintf("Unable to attach or mount volumes: unmounted volumes=[%s], unattached volumes=[], failed to process volumes=[%[1]s]: %v", v.Name, err)}
}

// claim mounts what a claim is bound to: populator/desired_state_of_world_populator.go, createVolumeSpec.
func (m volumeMaker) claim(ctx context.Context, v corev1.Volume) (*volume, error) {
	pod := m.facts.pod
	source := v.PersistentVolumeClaim
	own := source == nil
	if own {
		source = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: ephemeral.VolumeClaimName(pod, &v)}
	}
	pvc, pv, err := m.bound(ctx, source.ClaimName)
	if err != nil {
		return nil, unprocessed(v, fmt.Errorf("error processing PVC %s/%s: %w", pod.Namespace, source.ClaimName, err))
	}
	if own {
		if err := ephemeral.VolumeIsForPod(pod, pvc); err != nil {
			return nil, unprocessed(v, err)
		}
	}
	mode := ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	mounted, asDevice := volumeUses(pod, v.Name)
	switch {
	case mounted && mode != corev1.PersistentVolumeFilesystem:
		return nil, unprocessed(v, fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeMounts", v.Name, mode))
	case asDevice && mode != corev1.PersistentVolumeBlock:
		return nil, unprocessed(v, fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeDevices", v.Name, mode))
	case asDevice:
		return nil, unprocessed(v, fmt.Errorf("failed to get Plugin from volumeSpec for volume %q err=no block volume plugin matched", pv.Name))
	}
	out := &volume{spec: v, readOnly: source.ReadOnly}
	out.fs, out.sub, err = m.persistent(pv)
	return out, err
}

// bound gets a claim of the Pod's namespace and its volume.
func (m volumeMaker) bound(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	api := m.b.k.cfg.Client.CoreV1()
	pvc, err := api.PersistentVolumeClaims(m.facts.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("failed to fetch PVC from API server: %w", err)
	case pvc.DeletionTimestamp != nil && !slices.Contains(pvc.Finalizers, pvcProtection):
		return nil, nil, errors.New("PVC is being deleted")
	case pvc.Status.Phase != corev1.ClaimBound:
		return nil, nil, errors.New("PVC is not bound")
	case pvc.Spec.VolumeName == "":
		return nil, nil, errors.New("PVC has empty pvc.Spec.VolumeName")
	}
	pv, err := api.PersistentVolumes().Get(ctx, pvc.Spec.VolumeName, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("failed to fetch PV %s from API server: %w", pvc.Spec.VolumeName, err)
	case pv.Spec.ClaimRef == nil:
		return nil, nil, fmt.Errorf("found PV object %s but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim", pv.Name)
	case pv.Spec.ClaimRef.UID != pvc.UID:
		return nil, nil, fmt.Errorf("found PV object %s but its pv.Spec.ClaimRef.UID %s does not point to claim.UID %s", pv.Name, pv.Spec.ClaimRef.UID, pvc.UID)
	}
	return pvc, pv, nil
}

// persistent finds the folder of a volume on the node's disk.
func (m volumeMaker) persistent(pv *corev1.PersistentVolume) (disk *memfs.FS, sub string, err error) {
	failed := func(step string, err error) error {
		return &mountError{fmt.Sprintf("MountVolume.%s for volume %q : %v", step, pv.Name, err)}
	}
	if err := storagehelpers.CheckNodeAffinity(pv, m.b.node.get().Labels); err != nil {
		return nil, "", failed("NodeAffinity check failed", err)
	}
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.HostPath != nil:
		if disk, sub, err = m.b.k.hostPath(s.HostPath); err != nil {
			err = failed("SetUp failed", err)
		}
		return disk, sub, err
	case s.Local != nil:
		info, err := m.b.k.host.fs.Stat(s.Local.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, "", failed("NewMounter initialization failed", fmt.Errorf("path %q does not exist", s.Local.Path))
		case err != nil:
			return nil, "", failed("NewMounter initialization failed", err)
		case !info.IsDir():
			return nil, "", failed("NewMounter initialization failed", errors.New("only directory and block device are supported"))
		}
		return m.b.k.host.fs, path.Clean(s.Local.Path), nil
	}
	return nil, "", failed("SetUp failed", errors.New("this simulated node has no volume plugin for it; it has hostPath and local"))
}

// volumeUses says whether containers mount a volume and whether they have it as a device.
func volumeUses(pod *corev1.Pod, name string) (mounted, device bool) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers, ephemeralContainers(pod)} {
		for _, c := range list {
			mounted = mounted || slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })
			device = device || slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == name })
		}
	}
	return mounted, device
}
