package kubelet

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pantry/memfs"
)

const (
	diskFile = "disk.tar"
	// diskPause is how much of its last changes a node's disk may lose in a crash;
	// diskShare bounds the part of the time that writing it down may take.
	diskPause = time.Second
	diskShare = 10
)

// nodeDisk is the node's own file system, which hostPath and local volumes show.
// Nothing of it is the host's: it lives in memory and is written to one archive
// in Config.StateDir, a moment after a change and at the end of Run.
type nodeDisk struct {
	fs      *memfs.FS
	file    string
	clock   clock.Clock
	changed chan struct{} // holds one token while there is something to write
}

// openDisk reads the disk that the node had before, or makes a new one. The error
// says that the archive is damaged; the disk then has what could be read.
func openDisk(dir, node string, room *memfs.Budget, cl clock.Clock) (*nodeDisk, error) {
	d := &nodeDisk{fs: memfs.New(room), file: filepath.Join(dir, diskFile), clock: cl, changed: make(chan struct{}, 1)}
	err := d.load()
	for _, folder := range []string{
		"/etc/kubernetes/manifests", "/home", "/mnt", "/opt", "/proc", "/root", "/run", "/srv", "/sys", "/tmp", "/usr/local",
		"/var/lib/kubelet", "/var/log/containers", "/var/log/pods",
	} {
		err = errors.Join(err, d.fs.MkdirAll(folder, 0o755))
	}
	for name, text := range map[string]string{
		"/etc/hostname":   node + "\n",
		"/etc/hosts":      "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t" + node + "\n",
		"/etc/os-release": "PRETTY_NAME=\"" + osImage + "\"\nNAME=\"Kubistro simulated node\"\nID=kubistro\n",
	} {
		if _, missing := d.fs.Stat(name); missing != nil {
			err = errors.Join(err, d.fs.WriteFile(name, []byte(text), 0o644))
		}
	}
	d.fs.OnChange(d.touch)
	return d, err
}

func (d *nodeDisk) touch() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// keep writes the disk down after changes until ctx is done, and then the last ones.
func (d *nodeDisk) keep(ctx context.Context, failed func(error)) {
	pause := diskPause
	for {
		select {
		case <-ctx.Done():
			d.flush(failed)
			return
		case <-d.changed:
		}
		t := d.clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
		case <-t.C():
		}
		d.touch()
		begin := d.clock.Now()
		d.flush(failed)
		pause = max(diskPause, diskShare*d.clock.Since(begin))
	}
}

// flush writes what has changed, if anything has.
func (d *nodeDisk) flush(failed func(error)) {
	select {
	case <-d.changed:
	default:
		return
	}
	if err := d.save(); err != nil {
		failed(fmt.Errorf("write the node's disk: %w", err))
	}
}

func (d *nodeDisk) save() error {
	if err := os.MkdirAll(filepath.Dir(d.file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(d.file+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	if err := errors.Join(d.archive(w, "/"), w.Close(), f.Close()); err != nil {
		return err
	}
	return os.Rename(d.file+".new", d.file)
}

// archive writes a folder. What changes meanwhile is written as it was or as it is, file by file.
func (d *nodeDisk) archive(w *tar.Writer, dir string) error {
	entries, err := d.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil {
			return err
		}
		h := &tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeReg, Name: name[1:], Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
		if info.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
			if err := errors.Join(w.WriteHeader(h), d.archive(w, name)); err != nil {
				return err
			}
			continue
		}
		data, err := d.fs.ReadFile(name)
		if err != nil {
			continue // removed meanwhile
		}
		h.Size = int64(len(data))
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func (d *nodeDisk) load() error {
	f, err := os.Open(d.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	times := map[string]time.Time{} // of folders: what is put into them changes them
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the node's disk: %w", err)
		}
		name := "/" + strings.TrimSuffix(h.Name, "/")
		if h.Typeflag == tar.TypeDir {
			times[name] = h.ModTime
			if err := d.fs.MkdirAll(name, fs.FileMode(h.Mode).Perm()); err != nil {
				return fmt.Errorf("read the node's disk: %w", err)
			}
			continue
		}
		data, err := io.ReadAll(io.LimitReader(r, hostDiskBytes))
		if err == nil {
			err = errors.Join(d.fs.WriteFile(name, data, fs.FileMode(h.Mode).Perm()), d.fs.Chtimes(name, h.ModTime, h.ModTime))
		}
		if err != nil {
			return fmt.Errorf("read the node's disk: %w", err)
		}
	}
	for name, at := range times {
		if err := d.fs.Chtimes(name, at, at); err != nil {
			return fmt.Errorf("read the node's disk: %w", err)
		}
	}
	return nil
}
