package kubelet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kubistro/internal/clusterhost/pantry/memfs"
)

// Bounds of a checkpoint: what is over them is lost, as after a crash.
const (
	frozenLogBytes  = 32 << 10 // of one container
	frozenFileBytes = 8 << 20  // of one node
	checkpointFile  = "checkpoint.json"
)

// checkpoint is a node's state between two runs of the process. It exists on
// disk only after a graceful stop; the next start consumes it.
type checkpoint struct {
	BootID string   `json:"bootID"`
	Images []string `json:"images,omitempty"`
	// Access says with which logins images of private registries were pulled.
	Access map[string][]string `json:"access,omitempty"`
	Pods   []*frozenPod        `json:"pods"`
}

type frozenPod struct {
	UID        types.UID               `json:"uid"`
	Namespace  string                  `json:"namespace"`
	Name       string                  `json:"name"`
	IP         netip.Addr              `json:"ip"`
	Finished   bool                    `json:"finished,omitempty"`
	Status     corev1.PodStatus        `json:"status"`
	Containers []*frozenContainer      `json:"containers"`
	Pulls      map[string]*pullState   `json:"pulls,omitempty"`
	Volumes    map[string][]frozenFile `json:"volumes,omitempty"` // emptyDir
	Allocation *allocation             `json:"allocation,omitempty"`
	Certs      map[string]*podCert     `json:"certs,omitempty"`
}

type frozenContainer struct {
	Name     string                        `json:"name"`
	Restarts int32                         `json:"restarts"`
	Crash    backoff                       `json:"crash"`
	Waiting  *corev1.ContainerStateWaiting `json:"waiting,omitempty"`
	Cur      *frozenInstance               `json:"cur,omitempty"`
	Prev     *frozenInstance               `json:"prev,omitempty"`
}

type frozenInstance struct {
	State   containerState `json:"state"`
	Image   string         `json:"image"`
	ImageID string         `json:"imageID"`
	Started bool           `json:"started"`
	Ready   bool           `json:"ready"`
	Log     []frozenLine   `json:"log,omitempty"`
	Files   []frozenFile   `json:"files,omitempty"` // the writable layer
}

type frozenLine struct {
	At      time.Time `json:"at"`
	Stderr  bool      `json:"stderr,omitempty"`
	Partial bool      `json:"partial,omitempty"`
	Text    []byte    `json:"text"`
}

type frozenFile struct {
	Path  string      `json:"path"`
	Mode  fs.FileMode `json:"mode"`
	MTime time.Time   `json:"mtime"`
	Data  []byte      `json:"data,omitempty"`
}

// loadCheckpoint reads and removes the checkpoint in dir; nil: there is none (a first start, or a crash).
func loadCheckpoint(dir string) (*checkpoint, error) {
	name := filepath.Join(dir, checkpointFile)
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	if err := os.Remove(name); err != nil {
		return nil, fmt.Errorf("consume checkpoint: %w", err)
	}
	var c checkpoint
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("parse checkpoint: %w", err)
	}
	return &c, nil
}

func saveCheckpoint(dir string, c *checkpoint) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, checkpointFile+".new")
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, checkpointFile))
}

// checkpoint writes down all Pods. The workers have stopped; programs still run.
func (b *boot) checkpoint() *checkpoint {
	c := &checkpoint{BootID: b.id, Access: map[string][]string{}}
	room := int64(frozenFileBytes)
	b.k.images.mu.Lock()
	for _, img := range b.k.images.images {
		c.Images = append(c.Images, img.Name)
		if marks, private := b.k.images.access[img.Name]; private {
			c.Access[img.Name] = marks
		}
	}
	b.k.images.mu.Unlock()
	for _, w := range b.all() {
		c.Pods = append(c.Pods, w.freeze(&room))
	}
	for _, f := range b.frozen { // not seen again yet in this run
		if b.get(f.UID) == nil {
			c.Pods = append(c.Pods, f)
		}
	}
	return c
}

func (w *worker) freeze(room *int64) *frozenPod {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &frozenPod{UID: w.uid, Namespace: w.pod.Namespace, Name: w.pod.Name, Finished: w.finished, Status: w.status, Pulls: w.pulls, Allocation: w.alloc, Certs: w.certs, Volumes: map[string][]frozenFile{}}
	if w.ownIface {
		f.IP = w.ip
	}
	for _, s := range w.slots {
		fc := &frozenContainer{Name: s.name, Restarts: s.restarts, Crash: s.crash, Waiting: s.waiting}
		fc.Cur, fc.Prev = s.cur.freeze(room), s.prev.freeze(room)
		f.Containers = append(f.Containers, fc)
	}
	for name, v := range w.volumes {
		if v.spec.EmptyDir != nil {
			f.Volumes[name] = freezeFiles(v.fs, func(string, []byte) bool { return false }, nil, room)
		}
	}
	return f
}

func (i *instance) freeze(room *int64) *frozenInstance {
	if i == nil {
		return nil
	}
	f := &frozenInstance{State: i.state, Started: i.startedOK, Ready: i.readyOK, Image: i.oldImage, ImageID: i.oldImageID}
	if i.image != nil {
		f.Image, f.ImageID = i.image.Name, imageID(i.image)
	}
	entries, _, _, _ := i.log.from(0)
	size := 0
	for n := len(entries) - 1; n >= 0 && size < frozenLogBytes; n-- {
		size += len(entries[n].text) + entryCost
		entries[n].at = entries[n].at.UTC()
		f.Log = append(f.Log, frozenLine{entries[n].at, entries[n].stderr, entries[n].partial, entries[n].text})
	}
	for a, z := 0, len(f.Log)-1; a < z; a, z = a+1, z-1 {
		f.Log[a], f.Log[z] = f.Log[z], f.Log[a]
	}
	if i.fs != nil && i.state.Phase == containerRunning {
		f.Files = freezeFiles(i.fs, i.unchanged, i.mounts, room)
	}
	return f
}

// unchanged says whether a file is as the image and the node made it.
func (i *instance) unchanged(name string, data []byte) bool {
	if was, ok := i.image.Files[name]; ok {
		return bytes.Equal(was, data)
	}
	switch path.Dir(name) {
	case "/proc":
		return true
	case "/bin":
		return len(data) == 0 && i.image.Programs[path.Base(name)] != nil
	}
	return false
}

// freezeFiles lists what a file system holds, while there is room, but for what
// skip knows. Devices and what is mounted in it are left out.
func freezeFiles(f *memfs.FS, skip func(name string, data []byte) bool, mounts map[string]bool, room *int64) []frozenFile {
	var out []frozenFile
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := f.ReadDir(dir)
		if err != nil {
			return
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			info, err := e.Info()
			switch {
			case err != nil || mounts[name]:
			case info.IsDir():
				if *room -= entryCost; *room >= 0 {
					out = append(out, frozenFile{Path: name, Mode: info.Mode(), MTime: info.ModTime()})
					walk(name)
				}
			case info.Mode().IsRegular():
				data, err := f.ReadFile(name)
				if err != nil || skip(name, data) {
					continue
				}
				if *room -= int64(len(data)) + entryCost; *room >= 0 {
					out = append(out, frozenFile{name, info.Mode(), info.ModTime(), data})
				}
			}
		}
	}
	walk("/")
	return out
}

// thawFiles puts frozen files back; what finds no room is lost, as after a crash.
func thawFiles(f *memfs.FS, files []frozenFile) {
	for _, ff := range files {
		var err error
		if ff.Mode.IsDir() {
			err = f.MkdirAll(ff.Path, ff.Mode.Perm())
		} else {
			err = f.WriteFile(ff.Path, ff.Data, ff.Mode.Perm())
		}
		if err == nil {
			f.Chtimes(ff.Path, ff.MTime, ff.MTime)
		}
	}
}
