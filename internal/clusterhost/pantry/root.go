package pantry

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"kubistro/internal/clusterhost/pantry/memfs"
	"kubistro/internal/shell"
)

// RootOptions say what a container's root shows besides the image.
type RootOptions struct {
	Hostname string
	Hosts    string // /etc/hosts
	Resolv   string // /etc/resolv.conf
	// Stdout and Stderr are the main process's streams: /dev/stdout,
	// /dev/stderr, /proc/1/fd/1 and 2. Nil: writes are dropped.
	Stdout, Stderr io.Writer
	MemoryBytes    int64 // MemTotal of /proc/meminfo; 0: 2 GiB
	CPUs           int   // 0: 2
}

// NewRoot makes the file system of a new container: the image's files, /etc, /dev and the little
// of /proc that scripts look at. What it holds counts in budget until its Discard.
func NewRoot(img *Image, o RootOptions, budget *memfs.Budget) (*memfs.FS, error) {
	if o.MemoryBytes == 0 {
		o.MemoryBytes = 2 << 30
	}
	if o.CPUs == 0 {
		o.CPUs = 2
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	f := memfs.New(budget)
	files := map[string][]byte{
		"/etc/hostname":    []byte(o.Hostname + "\n"),
		"/etc/hosts":       []byte(o.Hosts),
		"/etc/resolv.conf": []byte(o.Resolv),
		"/etc/passwd":      []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"),
		"/etc/group":       []byte("root:x:0:\nnogroup:x:65534:\n"),
		"/proc/version":    []byte("Linux version 6.12.0 (kubistro simulated node)\n"),
		"/proc/uptime":     []byte("3600.00 7000.00\n"),
		"/proc/loadavg":    []byte("0.10 0.10 0.10 1/64 1\n"),
		"/proc/meminfo":    []byte(fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\n", o.MemoryBytes>>10, o.MemoryBytes>>11, o.MemoryBytes>>11)),
		"/proc/cpuinfo":    cpuinfo(o.CPUs),
	}
	fail := func(err error) (*memfs.FS, error) {
		f.Discard()
		return nil, fmt.Errorf("container root: %w", err)
	}
	if err := errors.Join(f.AddImage(files), Unpack(img, f)); err != nil {
		return fail(err)
	}
	for _, dir := range []string{"/tmp", "/root", "/var/run", "/var/log", "/dev", "/mnt", "/usr/local", img.WorkDir} {
		if err := f.MkdirAll(dir, 0o755); err != nil {
			return fail(err)
		}
	}
	for name, device := range map[string]memfs.Device{
		"/dev/null": memfs.Null, "/dev/zero": memfs.Zero, "/dev/full": memfs.Full,
		"/dev/random": memfs.Random, "/dev/urandom": memfs.Random,
		"/dev/stdout": memfs.Output("stdout", o.Stdout), "/dev/stderr": memfs.Output("stderr", o.Stderr),
		"/proc/1/fd/1": memfs.Output("1", o.Stdout), "/proc/1/fd/2": memfs.Output("2", o.Stderr),
	} {
		if err := f.AddDevice(name, device); err != nil {
			return fail(err)
		}
	}
	return f, nil
}

// Unpack puts an image's own files into a file system.
func Unpack(img *Image, f *memfs.FS) error {
	files := make(map[string][]byte, len(img.Programs)+1)
	for name := range img.Programs {
		files[path.Join("/bin", name)] = nil
	}
	if e := img.Entrypoint; len(e) > 0 && path.IsAbs(e[0]) && img.Programs[path.Base(e[0])] != nil {
		files[e[0]] = []byte(shell.Executable)
	}
	return errors.Join(f.AddImage(files), f.AddImage(img.Files))
}

func cpuinfo(cpus int) []byte {
	var b strings.Builder
	for n := range cpus {
		fmt.Fprintf(&b, "processor\t: %d\nmodel name\t: kubistro burner\n\n", n)
	}
	return []byte(b.String())
}
