// Package pantry holds the images that simulated nodes know. An image is a Go
// program that runs in the host process on the virtual network; the same
// programs are meant to be packed as real OCI images for kind.
package pantry

import (
	"context"
	"io"
	"syscall"

	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/vnet"
	"kubistro/internal/shell"
)

// Image is what a node has after a pull.
type Image struct {
	Name       string // normalised: docker.io/library/nginx:latest
	ID         string // sha256:... ; also the digest in RepoDigests
	SizeBytes  int64
	Entrypoint []string
	Cmd        []string
	Env        []string // NAME=value
	WorkDir    string
	Ports      []int
	// Programs are the executables in the image by base name; "sh" where it has a shell.
	Programs map[string]Program
	// Files are the image's files by absolute path.
	Files map[string][]byte
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
	Net      *vnet.Interface
	FS       shell.FS // the container's root: image files, volumes, a writable layer
	Hostname string
	Clock    clock.Clock
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

// Store is a container's shared state: string keys to any value; safe for concurrent use.
type Store struct{}

// Registry is the set of images that exist.
type Registry struct{}

// Default is the pantry of this version.
func Default() *Registry { panic("being built") }

// Pull finds an image by reference as a container runtime would. Errors are
// *PullError.
func (r *Registry) Pull(ref string) (*Image, error) { panic("being built") }

// Repositories lists the known repositories with their tags, sorted: for messages and lint.
func (r *Registry) Repositories() []Repository { panic("being built") }

// Repository is a known name and its tags.
type Repository struct {
	Name string
	Tags []string
}

// PullError says why an image can't be pulled, in the container runtime's words.
type PullError struct {
	// Invalid: the reference can't be parsed (InvalidImageName instead of ErrImagePull).
	Invalid bool
	Message string
}

func (e *PullError) Error() string { return e.Message }

// Usage counts what a container uses, for kubectl top and (later) limits. Safe for concurrent use.
type Usage struct{}

// AddCPU counts d of CPU time that the program has used or pretends to have used, in nanoseconds.
func (u *Usage) AddCPU(nanos int64) { panic("being built") }

// SetMemory says how many bytes the program holds now.
func (u *Usage) SetMemory(bytes int64) { panic("being built") }

// Read returns the CPU time so far (nanoseconds) and the working set (bytes).
func (u *Usage) Read() (cpuNanos, memoryBytes int64) { panic("being built") }
