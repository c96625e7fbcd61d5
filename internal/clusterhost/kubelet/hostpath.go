package kubelet

import (
	"fmt"
	"io/fs"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/pantry/memfs"
)

// hostPath finds a folder or file of the node's disk: pkg/volume/hostpath/host_path.go.
// A missing one without a type is made, as containerd does.
func (k *Kubelet) hostPath(s *corev1.HostPathVolumeSource) (*memfs.FS, string, error) {
	disk, name := k.host.fs, path.Clean("/"+s.Path)
	info, missing := disk.Stat(name)
	kind := ptr.Deref(s.Type, corev1.HostPathUnset)
	switch kind {
	case corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate:
		if missing != nil {
			return disk, name, disk.MkdirAll(name, 0o755)
		}
	case corev1.HostPathFileOrCreate:
		if missing != nil {
			if _, err := disk.Stat(path.Dir(name)); err != nil {
				return nil, "", fmt.Errorf("open %s: no such file or directory", s.Path)
			}
			return disk, name, disk.WriteFile(name, nil, 0o644)
		}
	}
	want, ok := map[corev1.HostPathType]string{
		corev1.HostPathDirectoryOrCreate: "directory", corev1.HostPathDirectory: "directory",
		corev1.HostPathFileOrCreate: "file", corev1.HostPathFile: "file",
		corev1.HostPathSocket: "socket file", corev1.HostPathCharDev: "character device", corev1.HostPathBlockDev: "block device",
	}[kind]
	switch {
	case kind == corev1.HostPathUnset:
		return disk, name, nil
	case !ok:
		return nil, "", fmt.Errorf("%s is an invalid volume type", kind)
	case missing != nil:
		return nil, "", fmt.Errorf("hostPath type check failed, %s is not a %s, unable to determine its type: path %q does not exist", s.Path, want, s.Path)
	case want == "directory" && info.IsDir(), want == "file" && info.Mode().IsRegular():
		return disk, name, nil
	}
	return nil, "", fmt.Errorf("hostPath type check failed: %s is not a %s, it's a %s", s.Path, want, fileType(info))
}

// fileType is pkg/volume/util/hostutil's name for what the disk can hold.
func fileType(info fs.FileInfo) corev1.HostPathType {
	if info.IsDir() {
		return corev1.HostPathDirectory
	}
	return corev1.HostPathFile
}
