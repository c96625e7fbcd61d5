// Package pantry holds the images that simulated nodes know. An image is a Go
// program that runs in the host process on the virtual network; the same
// programs are packed as real OCI images for kind (package container).
package pantry

import (
	"context"
	"io"
	"syscall"

	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/shell"
)

// Image is what a node has after a pull. It is shared and must not be changed.
type Image struct {
	Name       string // normalised: docker.io/library/nginx:latest
	ID         string // sha256:... ; also the digest in RepoDigests
	SizeBytes  int64
	Entrypoint []string
	Cmd        []string
	Env        []string // NAME=value
	WorkDir    string
	User       int64 // whom the main process runs as; 0 is root
	Ports      []int
	// Programs are the executables in the image by base name; "sh" where it has a shell.
	Programs map[string]Program
	// Files are the image's files by absolute path.
	Files map[string][]byte
	// Controls are the programs that do something to the main process, by the Store.
	Controls []string
	// Simulated is what the Pulled event and imageID add for a public name that starts our program.
	Simulated bool
}

// Program is an executable. It returns its exit code (0 to 255). When ctx is done
// (SIGKILL) it must return at once; signals come through Process.Signals.
type Program func(ctx context.Context, p *Process) int

// Process is what a program gets from the node.
type Process struct {
	Args     []string // Args[0] is the name it was called by
	Env      []string // NAME=value
	Dir      string
	Stdin    io.Reader // never nil
	Stdout   io.Writer
	Stderr   io.Writer
	TTY      bool
	Resize   <-chan shell.Size
	Signals  <-chan syscall.Signal // SIGTERM, SIGINT; a program that ignores it runs on
	Net      Network
	FS       shell.FS // the container's root: image files, volumes, a writable layer
	Hostname string
	User     shell.User // who it runs as; files don't mind
	Clock    clock.Clock
	Pace     *pace.Clock // how the cluster's periods are compressed; nil: not at all
	PodName  string
	NodeName string
	// Lookup finds another program of the same container, for shells.
	Programs map[string]Program
	// Store is state shared by the processes of one container (a main process
	// and those that exec starts): how `burn-dish` reaches the cook that runs.
	Store *Store
	// Usage is where the program reports work that costs CPU and memory. Never nil.
	Usage *Usage
}
