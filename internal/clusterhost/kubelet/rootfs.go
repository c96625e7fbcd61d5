package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/pantry/memfs"
)

const terminationFile = "/log"

// rootfs gives inst its root: the image's files, what the node adds, and the
// mounts. On an error nothing is left of it.
func (w *worker) rootfs(ctx context.Context, c *corev1.Container, img *pantry.Image, inst *instance) error {
	disk := w.b.k.disk
	o := pantry.RootOptions{
		Hostname: w.hostname(), Hosts: string(w.hostsFile()), Resolv: string(w.resolvConf()),
		Stdout: liveWriter{inst.stdout, inst.term, false}, Stderr: liveWriter{inst.stderr, inst.term, true},
		MemoryBytes: w.b.k.cfg.Capacity.Memory().Value(), CPUs: int(w.b.k.cfg.Capacity.Cpu().Value()),
	}
	part := disk.Part(layerBytes, layerFiles)
	root, err := pantry.NewRoot(img, o, part)
	if err != nil {
		return err
	}
	inst.fs, inst.mounts = root, map[string]bool{}
	inst.last = memfs.New(disk.Part(objectBytes, objectFiles))
	if err := w.fillRoot(ctx, c, inst); err != nil {
		inst.discard()
		return err
	}
	inst.layer = newLayer(part)
	return nil
}

func (w *worker) fillRoot(ctx context.Context, c *corev1.Container, inst *instance) error {
	if err := errors.Join(cgroupFiles(inst.fs, inst.proc.Usage), sysctlFiles(inst.fs, w.pod)); err != nil {
		return err
	}
	if c.WorkingDir != "" {
		if err := inst.fs.MkdirAll(c.WorkingDir, 0o755); err != nil {
			return err
		}
	}
	if c.TerminationMessagePath != "" {
		err := errors.Join(inst.last.WriteFile(terminationFile, nil, 0o666), inst.mount(c.TerminationMessagePath, inst.last, terminationFile, false))
		if err != nil {
			return err
		}
	}
	for _, m := range c.VolumeMounts {
		v := w.volumes[m.Name]
		if v == nil {
			return fmt.Errorf("cannot find volume %q to mount into container %q", m.Name, c.Name)
		}
		if v.fs == nil {
			if err := w.showImage(v); err != nil {
				return err
			}
		}
		src, sub, err := w.subPath(ctx, c, v, m)
		if err != nil {
			return err
		}
		if err := inst.mount(m.MountPath, src, sub, m.ReadOnly || v.readOnly || v.objects()); err != nil {
			return err
		}
	}
	if sc := c.SecurityContext; sc != nil && sc.ReadOnlyRootFilesystem != nil {
		inst.fs.SetReadOnly(*sc.ReadOnlyRootFilesystem)
	}
	return nil
}

func (i *instance) mount(at string, src *memfs.FS, sub string, readOnly bool) error {
	i.mounts[path.Clean("/"+at)] = true
	return i.fs.Mount(at, src, sub, readOnly)
}

// subPath finds what of the volume a mount shows: kubelet_pods.go, makeMounts. A
// sub path of objects keeps what it shows now until the container's end.
func (w *worker) subPath(ctx context.Context, c *corev1.Container, v *volume, m corev1.VolumeMount) (src *memfs.FS, sub string, err error) {
	sub = m.SubPath
	if m.SubPathExpr != "" {
		env, err := w.environment(ctx, c)
		if err != nil {
			return nil, "", err
		}
		var missing []string
		sub = expand(m.SubPathExpr, func(n string) (string, bool) {
			v := env[n]
			if v == "" && !slices.Contains(missing, n) {
				missing = append(missing, n)
			}
			return v, true
		})
		if len(missing) > 0 {
			slices.Sort(missing)
			return nil, "", fmt.Errorf("missing value for %s", strings.Join(missing, ", "))
		}
	}
	switch {
	case path.IsAbs(sub):
		return nil, "", fmt.Errorf("error SubPath `%s` must not be an absolute path", sub)
	case slices.Contains(strings.Split(sub, "/"), ".."):
		return nil, "", fmt.Errorf("unable to provision SubPath `%s`: must not contain '..'", sub)
	}
	sub = path.Clean("/" + sub)
	if sub == "/" {
		return v.fs, v.sub, nil
	}
	if v.objects() {
		copied, err := v.snapshot(w.b.k.disk)
		return copied, sub, err
	}
	sub = path.Join(v.sub, sub)
	if _, err := v.fs.Stat(sub); err != nil {
		if err := v.fs.MkdirAll(sub, 0o750); err != nil {
			return nil, "", fmt.Errorf("failed to create subPath directory for volumeMount %q of container %q", m.Name, c.Name)
		}
	}
	return v.fs, sub, nil
}

// discard gives the files' memory back, and what the container's group counts.
func (i *instance) discard() {
	if i.proc.Usage != nil {
		i.proc.Usage.Close()
	}
	if i.fs != nil {
		i.fs.Discard()
		i.last.Discard()
		i.fs, i.last = nil, nil
	}
}
