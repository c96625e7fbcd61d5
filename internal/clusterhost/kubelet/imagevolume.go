package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/pantry/memfs"
)

// pullVolumes pulls the images of a Pod's image volumes before a container starts, with the
// same events and back-off as its own: kuberuntime/kuberuntime_manager.go, getImageVolumes. The
// problem is that of a volume which this container mounts.
func (w *worker) pullVolumes(ctx context.Context, c *corev1.Container) *startProblem {
	var problem *startProblem
	for _, v := range w.pod.Spec.Volumes {
		if v.Image == nil || w.volumes[v.Name] == nil || w.volumes[v.Name].fs != nil {
			continue
		}
		_, p := w.ensureImage(ctx, &corev1.Container{Image: v.Image.Reference, ImagePullPolicy: v.Image.PullPolicy}, "")
		for _, m := range c.VolumeMounts {
			if p != nil && m.Name == v.Name {
				problem = p
			}
		}
	}
	return problem
}

// showImage makes an image volume's content of an image that the node has.
func (w *worker) showImage(v *volume) error {
	_, normal, err := withTag(v.spec.Image.Reference)
	if err != nil {
		return err
	}
	img := w.b.k.images.have(normal)
	if img == nil {
		return fmt.Errorf("image %q of volume %q is not present", v.spec.Image.Reference, v.spec.Name)
	}
	fs := memfs.New(w.b.k.disk.Part(objectBytes, layerFiles))
	if err := pantry.Unpack(img, fs); err != nil {
		fs.Discard()
		return err
	}
	fs.SetReadOnly(true)
	v.fs = fs
	return nil
}
