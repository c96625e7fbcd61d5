// Package container runs programs of the pantry in real containers, on the kernel's
// files, network and CPU. The same code runs on simulated nodes on what those have.
// It uses everything that its process may use: it is for containers only.
package container

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"
	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/pantry/cgroup"
	"kubistro/internal/shell"
)

// ImageFile is where an image says which one it is: grill-cook:1.5.
const ImageFile = "/etc/kubistro-image"

// Exit codes of a shell.
const (
	exitFailure  = 1
	exitNotFound = 127
)

// Main runs the program that this process was called as and returns its exit code.
func Main() int {
	name, err := os.ReadFile(ImageFile)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: this program belongs into an image of the pantry: %v\n", os.Args[0], err)
		return exitFailure
	}
	img, err := pantry.Default().Known(strings.TrimSpace(string(name)))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		return exitFailure
	}
	program := path.Base(os.Args[0])
	if img.Programs[program] == nil {
		fmt.Fprintf(os.Stderr, "%s: not found\n", os.Args[0])
		return exitNotFound
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p, restore := process(ctx, img, program)
	defer restore()
	if len(img.Controls) > 0 {
		if isMain(img, program) {
			defer serveControls(ctx, sockets(), img, p)()
		} else {
			p.Programs = withRemote(sockets(), img, p.Programs)
		}
	}
	return p.Programs[program](ctx, p)
}

// isMain says whether a program is what the image is for.
func isMain(img *pantry.Image, program string) bool {
	return len(img.Entrypoint) > 0 && path.Base(img.Entrypoint[0]) == program
}

// process is this process as the pantry's programs see theirs. restore gives the
// terminal back.
func process(ctx context.Context, img *pantry.Image, program string) (p *pantry.Process, restore func()) {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "localhost"
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	forwarded := make(chan syscall.Signal, 8)
	go forward(ctx, signals, forwarded)

	p = &pantry.Process{
		Args: os.Args, Env: os.Environ(), Dir: dir, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Signals: forwarded, Net: kernelNetwork{}, FS: kernelFS{}, Hostname: hostname,
		User:  shell.User{UID: int64(os.Getuid()), GID: int64(os.Getgid())},
		Clock: clock.RealClock{}, PodName: hostname, NodeName: os.Getenv("NODE_NAME"),
		Programs: img.Programs, Store: new(pantry.Store), Usage: cgroup.NewReal(newBurner()),
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return p, func() {}
	}
	p.TTY = true
	sizes := make(chan shell.Size, 1)
	p.Resize = sizes
	go watchSize(ctx, sizes)
	if !slices.Contains([]string{"sh", "ash", "bash"}, program) || len(os.Args) > 1 {
		return p, func() {}
	}
	// The shell brings its own line discipline; the kernel's would echo everything twice.
	state, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		return p, func() {}
	}
	return p, func() { _ = term.Restore(int(os.Stdin.Fd()), state) }
}

func forward(ctx context.Context, from <-chan os.Signal, to chan<- syscall.Signal) {
	for {
		select {
		case s := <-from:
			if sig, ok := s.(syscall.Signal); ok {
				select {
				case to <- sig:
				default: // it has enough unread ones of them
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// watchSize tells the terminal's size now and whenever it changes; who reads slowly
// gets the newest.
func watchSize(ctx context.Context, sizes chan shell.Size) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		if cols, rows, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			select {
			case <-sizes:
			default:
			}
			sizes <- shell.Size{Cols: cols, Rows: rows}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
