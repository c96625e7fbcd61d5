package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/pantry/memfs"
)

// volume is a mounted volume of a Pod: one tree that its containers share.
type volume struct {
	spec  corev1.Volume
	fs    *memfs.FS // nil: of an image that isn't there yet
	sub   string    // what of fs is the volume: "/", or the file of a hostPath
	own   bool      // the tree ends with the Pod
	shown payload

	readOnly bool   // whatever the mounts say
	layer    *layer // of an emptyDir
}

// payload is the content of a volume that is made of objects, by relative path.
type payload map[string]content

type content struct {
	data []byte
	mode fs.FileMode
	load func() ([]byte, error) // made when it is read (tokens)
}

// volumeMaker mounts a Pod's volumes.
type volumeMaker struct {
	b     *boot
	facts podFacts
	age   time.Duration // how old a ConfigMap or Secret may be
	certs map[string]*podCert
}

// mount makes volume v. Its error has the wording of the volume plugin
// (pkg/volume/configmap, secret, projected, ...), without the prefix.
func (m volumeMaker) mount(ctx context.Context, v corev1.Volume) (*volume, error) {
	out := &volume{spec: v, sub: "/", own: true}
	disk := m.b.k.disk
	switch {
	case v.EmptyDir != nil:
		// The size limit of one on disk is the eviction manager's, that of a tmpfs the kernel's.
		size, inMemory := int64(emptyDirBytes), v.EmptyDir.Medium == corev1.StorageMediumMemory
		if l := v.EmptyDir.SizeLimit; inMemory && l != nil && l.Value() > 0 && l.Value() < size {
			size = l.Value()
		}
		part := disk.Part(size, emptyDirFiles)
		out.fs = memfs.New(part)
		out.layer = newLayer(part)
		out.layer.memory = inMemory
		if inMemory {
			out.fs.SetType("tmpfs")
		}
		return out, out.fs.Chmod("/", 0o777) // pkg/volume/emptydir, setupDir
	case v.HostPath != nil:
		var err error
		out.own = false
		out.fs, out.sub, err = m.b.k.hostPath(v.HostPath)
		return out, err
	case v.PersistentVolumeClaim != nil, v.Ephemeral != nil:
		return m.claim(ctx, v)
	case v.Image != nil: // pulled when a container is to start
		out.readOnly = true
		return out, nil
	}
	files, err := m.content(ctx, v)
	if err != nil {
		return nil, err
	}
	out.fs = memfs.New(disk.Part(objectBytes, objectFiles))
	if v.ConfigMap == nil { // the others wrap an emptyDir in memory
		out.fs.SetType("tmpfs")
	}
	err = out.fs.Chmod("/", 0o777)
	if err == nil {
		err = out.show(files)
	}
	if err != nil {
		out.fs.Discard()
		return nil, err
	}
	return out, nil
}

func (v *volume) discard() {
	if v.own && v.fs != nil {
		v.fs.Discard()
	}
}

// objects says whether the volume shows ConfigMaps, Secrets and the like: read-only.
func (v *volume) objects() bool {
	s := v.spec
	return s.ConfigMap != nil || s.Secret != nil || s.DownwardAPI != nil || s.Projected != nil
}

// show makes files the volume's content, if it isn't already.
func (v *volume) show(files payload) error {
	if maps.EqualFunc(v.shown, files, func(a, b content) bool {
		return bytes.Equal(a.data, b.data) && a.mode == b.mode && (a.load == nil) == (b.load == nil)
	}) {
		return nil
	}
	if err := fill(v.fs, files); err != nil {
		return err
	}
	v.shown = files
	return nil
}

func fill(f *memfs.FS, files payload) error {
	data := make(map[string][]byte, len(files))
	for name, c := range files {
		if c.load == nil {
			data["/"+name] = c.data
		}
	}
	if err := f.Replace(data, 0o644); err != nil {
		return err
	}
	for name, c := range files {
		var err error
		if c.load != nil {
			err = f.AddDevice("/"+name, loaded(name, c.load))
		} else if c.mode != 0o644 {
			err = f.Chmod("/"+name, c.mode)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// snapshot is a copy of what the volume shows now.
func (v *volume) snapshot(disk *memfs.Budget) (*memfs.FS, error) {
	f := memfs.New(disk.Part(objectBytes, objectFiles))
	if err := fill(f, v.shown); err != nil {
		f.Discard()
		return nil, err
	}
	return f, nil
}

// refresh reads what a running Pod's volume should show. A source that can't be
// read leaves it as it is.
func (m volumeMaker) refresh(ctx context.Context, v *volume) (payload, bool) {
	if !v.objects() {
		return nil, false
	}
	files, err := m.content(ctx, v.spec)
	return files, err == nil
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
		return m.projected(ctx, v.Name, v.Projected)
	}
	return nil, fmt.Errorf("this simulated node has no volume plugin for it")
}

func mode(m *int32) fs.FileMode { return fs.FileMode(ptr.Deref(m, 0o644)).Perm() }

func (m volumeMaker) file(data []byte, mode fs.FileMode) content {
	return content{data: data, mode: mode}
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

func (m volumeMaker) projected(ctx context.Context, volume string, p *corev1.ProjectedVolumeSource) (payload, error) {
	out := payload{}
	md := mode(p.DefaultMode)
	var errs []error
	for index, s := range p.Sources {
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
		case s.ClusterTrustBundle != nil:
			var anchors []byte
			anchors, err = m.trustAnchors(ctx, s.ClusterTrustBundle)
			part = payload{s.ClusterTrustBundle.Path: m.file(anchors, md)}
		case s.PodCertificate != nil:
			part, err = m.certificateFiles(ctx, volume, index, s.PodCertificate, p)
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

// usedVolumes names the volumes of a Pod that its containers mount, sorted.
func usedVolumes(pod *corev1.Pod) []corev1.Volume {
	var out []corev1.Volume
	for _, v := range pod.Spec.Volumes {
		if mounted, device := volumeUses(pod, v.Name); mounted || device {
			out = append(out, v)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
