package localpath

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// scripts are what helper Pods run, by action; the ConfigMap holds them.
var scripts = map[string]string{"create": "setup", "delete": "teardown"}

// onNode runs the script of an action on a node, in a helper Pod, for the folder of
// a volume; it returns when the Pod has done it.
func (p *provisioner) onNode(ctx context.Context, action string, v *corev1.PersistentVolume, node string) error {
	dir := v.Spec.HostPath
	if dir == nil || !strings.HasPrefix(path.Clean(dir.Path), folder+"/") {
		return fmt.Errorf("failed to %s volume %s: its path isn't in %s", action, v.Name, folder)
	}
	pod := helperPod(action, v, node)
	p.logf("%s the volume %v at %v:%v", action, v.Name, node, dir.Path)
	pods := p.client.CoreV1().Pods(namespace)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("failed to %s volume %s: %w", action, v.Name, err)
	}
	err := p.completed(ctx, pod.Name)
	// Also after the end of ctx: nobody else would remove it.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), helperLimit/10)
	defer cancel()
	if gone := pods.Delete(clean, pod.Name, metav1.DeleteOptions{}); gone != nil && !apierrors.IsNotFound(gone) {
		err = errors.Join(err, gone)
	}
	if err != nil {
		return fmt.Errorf("failed to %s volume %s: %w", action, v.Name, err)
	}
	return nil
}

// completed waits for the success of a helper Pod.
func (p *provisioner) completed(ctx context.Context, name string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := p.clock.NewTimer(helperLimit)
	defer t.Stop()
	p.wg.Go(func() {
		select {
		case <-t.C():
			cancel(fmt.Errorf("create process timeout after %v seconds", helperLimit.Seconds()))
		case <-ctx.Done():
		}
	})
	for ctx.Err() == nil {
		w, err := p.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			break
		}
		for e := range w.ResultChan() {
			pod, ok := e.Object.(*corev1.Pod)
			if !ok {
				break
			}
			switch {
			case e.Type == watch.Deleted:
				w.Stop()
				return fmt.Errorf("helper pod %s is gone", name)
			case pod.Status.Phase == corev1.PodSucceeded:
				w.Stop()
				return nil
			case pod.Status.Phase == corev1.PodFailed:
				w.Stop()
				return fmt.Errorf("helper pod %s failed: %s", name, ending(pod))
			}
		}
		w.Stop()
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return fmt.Errorf("helper pod %s can't be watched", name)
}

// ending says how a Pod has failed.
func ending(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			return fmt.Sprintf("exit code %d, %s", t.ExitCode, t.Reason)
		}
	}
	return p.Status.Reason
}

func helperPod(action string, v *corev1.PersistentVolume, node string) *corev1.Pod {
	capacity := v.Spec.Capacity[corev1.ResourceStorage]
	dir, size := v.Spec.HostPath.Path, strconv.FormatInt(capacity.Value(), 10)
	mode := string(ptr.Deref(v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem))
	name := "helper-pod-" + action + "-" + v.Name
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name[:min(len(name), 128)], Namespace: namespace},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: account,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "helper-pod", Image: HelperImage, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"/bin/sh", "/script/" + scripts[action]},
				Args:    []string{"-p", dir, "-s", size, "-m", mode, "-a", action},
				Env:     []corev1.EnvVar{{Name: "VOL_DIR", Value: dir}, {Name: "VOL_MODE", Value: mode}, {Name: "VOL_SIZE_BYTES", Value: size}},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "data", MountPath: path.Dir(dir) + "/"}, {Name: "script", MountPath: "/script"},
				},
				SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
			}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path.Dir(dir), Type: ptr.To(corev1.HostPathDirectoryOrCreate)}}},
				{Name: "script", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "local-path-config"},
					Items:                []corev1.KeyToPath{{Key: "setup", Path: "setup"}, {Key: "teardown", Path: "teardown"}},
				}}},
			},
		},
	}
}
