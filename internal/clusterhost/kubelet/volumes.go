package kubelet

import (
	"context"
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"
)

// volume is a mounted volume of a Pod: one tree that its containers share.
type volume struct {
	spec  corev1.Volume
	root  *inode
	quota *quota // emptyDir only
}

// payload is the content of a volume that is made of objects.
type payload map[string]*inode

// volumeMaker mounts a Pod's volumes.
type volumeMaker struct {
	b     *boot
	facts podFacts
	age   time.Duration // how old a ConfigMap or Secret may be
}

// mount makes volume v. Its error has the wording of the volume plugin
// (pkg/volume/configmap, secret, projected, ...), without the prefix.
func (m volumeMaker) mount(ctx context.Context, v corev1.Volume) (*volume, error) {
	out := &volume{spec: v}
	now := m.b.k.clock.Now()
	switch {
	case v.EmptyDir != nil:
		size := int64(emptyDirBytes)
		if l := v.EmptyDir.SizeLimit; l != nil && l.Value() > 0 && l.Value() < size {
			size = l.Value()
		}
		out.quota = newQuota(size, m.b.k.disk)
		out.root = dirNode(0o777, now, out.quota)
		return out, nil
	case v.HostPath != nil:
		root, err := m.b.k.hostPath(v.HostPath)
		out.root = root
		return out, err
	}
	files, err := m.content(ctx, v)
	if err != nil {
		return nil, err
	}
	out.root = dirNode(0o777, now, nil)
	out.root.fill(files)
	return out, nil
}

// fill replaces all that is in the directory; nodes that go on under the same
// content stay, so that a subPath mount keeps what it had.
func (n *inode) fill(files payload) {
	fresh := dirNode(0o755, n.mtime, nil)
	for name, f := range files {
		fresh.put(name, f)
	}
	n.children = fresh.children
}

// refresh brings the files of a running Pod's volume up to date. A source that
// can't be read leaves them as they are.
func (m volumeMaker) refresh(ctx context.Context, v *volume) (payload, bool) {
	if !m.dynamic(v.spec) {
		return nil, false
	}
	files, err := m.content(ctx, v.spec)
	return files, err == nil
}

func (m volumeMaker) dynamic(v corev1.Volume) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil
}

func (m volumeMaker) content(ctx context.Context, v corev1.Volume) (payload, error) {
	switch {
	case v.ConfigMap != nil:
		s := v.ConfigMap
		return m.configMap(ctx, s.Name, s.Items, mode(s.DefaultMode), ptr.Deref(s.Optional, false))
	case v.Secret != nil:
		s := v.Secret
		return m.secret(ctx, s.SecretName, s.Items, mode(s.DefaultMode), ptr.Deref(s.Optional, false))
	case v.DownwardAPI != nil:
		return m.downward(v.DownwardAPI.Items, mode(v.DownwardAPI.DefaultMode))
	case v.Projected != nil:
		return m.projected(ctx, v.Projected)
	}
	return nil, fmt.Errorf("this simulated node has no volume plugin for it")
}

func mode(m *int32) fs.FileMode { return fs.FileMode(ptr.Deref(m, 0o644)).Perm() }

func (m volumeMaker) file(data []byte, mode fs.FileMode) *inode {
	return fileNode(data, mode, m.b.k.clock.Now(), nil)
}

func (m volumeMaker) configMap(ctx context.Context, name string, items []corev1.KeyToPath, md fs.FileMode, optional bool) (payload, error) {
	cm, err := m.b.objects.configMap(ctx, m.facts.pod.Namespace, name, m.age)
	if err != nil {
		return payload{}, unlessOptional(err, optional)
	}
	data := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for k, v := range cm.Data {
		data[k] = []byte(v)
	}
	for k, v := range cm.BinaryData {
		data[k] = v
	}
	return m.keys(data, items, md, optional, "configmap references non-existent config key: %s")
}

func (m volumeMaker) secret(ctx context.Context, name string, items []corev1.KeyToPath, md fs.FileMode, optional bool) (payload, error) {
	s, err := m.b.objects.secret(ctx, m.facts.pod.Namespace, name, m.age)
	if err != nil {
		return payload{}, unlessOptional(err, optional)
	}
	return m.keys(s.Data, items, md, optional, "references non-existent secret key: %s")
}

func (m volumeMaker) keys(data map[string][]byte, items []corev1.KeyToPath, md fs.FileMode, optional bool, missing string) (payload, error) {
	out := payload{}
	if len(items) == 0 {
		for k, v := range data {
			out[k] = m.file(v, md)
		}
		return out, nil
	}
	for _, it := range items {
		v, ok := data[it.Key]
		switch {
		case !ok && optional:
		case !ok:
			return nil, fmt.Errorf(missing, it.Key)
		case it.Mode != nil:
			out[it.Path] = m.file(v, mode(it.Mode))
		default:
			out[it.Path] = m.file(v, md)
		}
	}
	return out, nil
}

func (m volumeMaker) downward(items []corev1.DownwardAPIVolumeFile, md fs.FileMode) (payload, error) {
	out := payload{}
	var errs []error
	for _, it := range items {
		var v string
		var err error
		switch {
		case it.FieldRef != nil:
			v, err = m.facts.field(it.FieldRef.FieldPath)
		case it.ResourceFieldRef != nil:
			v, err = m.facts.resource(it.ResourceFieldRef, nil)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fm := md
		if it.Mode != nil {
			fm = mode(it.Mode)
		}
		out[it.Path] = m.file([]byte(v), fm)
	}
	return out, utilerrors.NewAggregate(errs)
}

func (m volumeMaker) projected(ctx context.Context, p *corev1.ProjectedVolumeSource) (payload, error) {
	out := payload{}
	md := mode(p.DefaultMode)
	var errs []error
	for _, s := range p.Sources {
		var part payload
		var err error
		switch {
		case s.ConfigMap != nil:
			part, err = m.configMap(ctx, s.ConfigMap.Name, s.ConfigMap.Items, md, ptr.Deref(s.ConfigMap.Optional, false))
		case s.Secret != nil:
			part, err = m.secret(ctx, s.Secret.Name, s.Secret.Items, md, ptr.Deref(s.Secret.Optional, false))
		case s.DownwardAPI != nil:
			part, err = m.downward(s.DownwardAPI.Items, md)
		case s.ServiceAccountToken != nil:
			part = payload{s.ServiceAccountToken.Path: m.tokenFile(s.ServiceAccountToken, 0o600|md)}
		default:
			err = fmt.Errorf("this simulated node has no plugin for a source of this projected volume")
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for k, v := range part {
			out[k] = v
		}
	}
	return out, utilerrors.NewAggregate(errs)
}

// hostPath gives a folder of the node's own (simulated) disk; all Pods of the
// node that name the same path share it.
func (k *Kubelet) hostPath(s *corev1.HostPathVolumeSource) (*inode, error) {
	k.hostMu.Lock()
	defer k.hostMu.Unlock()
	clean := strings.TrimRight(s.Path, "/")
	n := k.hostDirs[clean]
	if n == nil {
		switch ptr.Deref(s.Type, corev1.HostPathUnset) {
		case corev1.HostPathDirectory:
			return nil, fmt.Errorf("hostPath type check failed: %s is not a directory", s.Path)
		case corev1.HostPathFile:
			return nil, fmt.Errorf("hostPath type check failed: %s is not a file", s.Path)
		case corev1.HostPathSocket:
			return nil, fmt.Errorf("hostPath type check failed: %s is not a socket file", s.Path)
		case corev1.HostPathFileOrCreate:
			n = fileNode(nil, 0o644, k.clock.Now(), k.disk)
		default:
			n = dirNode(0o755, k.clock.Now(), k.disk)
		}
		k.hostDirs[clean] = n
	}
	return n, nil
}

// usedVolumes names the volumes of a Pod that its containers mount, sorted.
func usedVolumes(pod *corev1.Pod) []corev1.Volume {
	var out []corev1.Volume
	used := map[string]bool{}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers, ephemeralContainers(pod)} {
		for _, c := range list {
			for _, m := range c.VolumeMounts {
				used[m.Name] = true
			}
		}
	}
	for _, v := range pod.Spec.Volumes {
		if used[v.Name] {
			out = append(out, v)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
