package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/pantry/memfs"
)

// unresponsive is how long a program may go on after SIGKILL before the node
// gives up on its goroutine.
const unresponsive = 5 * time.Second

// exit codes of the container runtime.
const (
	codeStartError = 128
	codeKilled     = 137
	codePanic      = 134 // as SIGABRT: the program's own fault
	codeUnknown    = 255
)

// instance is one life of a container: its process, files, output. The state is
// guarded by the worker's lock.
type instance struct {
	name    string
	program string // of the main process
	state   containerState
	image   *pantry.Image
	log     *logBuffer

	oldImage, oldImageID string // of a container that another boot ran

	thawed      bool // goes on from a checkpoint
	stale       bool // ended by a crash or a loss of power
	hookRunning bool // postStart isn't done: not Running for the API yet
	startedOK   bool // startup probe succeeded, or there is none
	readyOK     bool // readiness probe succeeded, or there is none
	killing     bool
	execs       int    // commands that run beside the main process
	killed      bool   // SIGKILL was sent
	unhealthy   string // why a probe wants it restarted
	killReason  string // reason of the state after the kill (OOMKilled)
	lastUse     usageSample
	resources   corev1.ResourceRequirements // what its group has
	asked       string                      // the image as the spec called it; empty after a boot
	renewed     bool                        // ends because its spec changed, and starts again

	term           *terminal      // input and live output
	proc           pantry.Process // what the main process and execs have in common
	fs             *memfs.FS
	layer          *layer          // what the container has written to it
	mounts         map[string]bool // paths of what is mounted in fs
	last           *memfs.FS       // holds the termination message as /log
	stdout, stderr *logWriter
	logPath        bool // fall back to logs for the termination message
	signals        chan syscall.Signal
	stop           context.CancelFunc // SIGKILL
	done           chan struct{}      // closed when the process is gone and the state says so
	ctx            context.Context
	hurry          chan struct{} // a shorter grace period came
	deadline       time.Time     // when SIGKILL follows
}

// signal delivers s if the program listens; like a PID 1 without a handler it is lost otherwise.
func (i *instance) signal(s syscall.Signal) {
	select {
	case i.signals <- s:
	default:
	}
}

// process is a program ready to run in a container: its main process or an exec.
type process struct {
	run  pantry.Program
	argv []string
}

// resolve finds the program that argv names in the container, as execve and a
// PATH look-up would; scripts run by their interpreter. Its error has runc's words.
func resolve(programs map[string]pantry.Program, root *memfs.FS, argv []string) (process, error) {
	if len(argv) == 0 {
		return process{}, fmt.Errorf("no command specified")
	}
	name := argv[0]
	if !strings.Contains(name, "/") {
		if p := programs[name]; p != nil {
			return process{p, argv}, nil
		}
		return process{}, fmt.Errorf("exec: %q: executable file not found in $PATH", name)
	}
	if file, err := root.OpenFile(name, 0, 0); err == nil {
		defer file.Close()
		info, err := file.Stat()
		if err == nil && info.IsDir() {
			return process{}, fmt.Errorf("exec: %q: is a directory: permission denied", name)
		}
		head := make([]byte, 256)
		n, _ := io.ReadFull(file, head)
		if line, ok := bytes.CutPrefix(head[:n], []byte("#!")); ok {
			if info.Mode().Perm()&0o111 == 0 {
				return process{}, fmt.Errorf("exec: %q: permission denied", name)
			}
			line, _, _ = bytes.Cut(line, []byte("\n"))
			words := strings.Fields(string(line))
			if len(words) > 1 && path.Base(words[0]) == "env" {
				words = words[1:]
			}
			if len(words) > 0 {
				if p := programs[path.Base(words[0])]; p != nil {
					return process{p, append(append(words, name), argv[1:]...)}, nil
				}
			}
			return process{}, fmt.Errorf("exec: %q: no such file or directory", name)
		}
	}
	if p := programs[path.Base(name)]; p != nil {
		return process{p, argv}, nil
	}
	if _, err := root.Stat(name); err == nil {
		return process{}, fmt.Errorf("exec: %q: permission denied", name)
	}
	return process{}, fmt.Errorf("exec: %q: stat %s: no such file or directory", name, name)
}

// exec executes a process of the container and returns its exit code. A panic of
// the program ends the program only.
func (p process) exec(ctx context.Context, proc pantry.Process) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(proc.Stderr, "panic: %v\n", r)
			code = codePanic
		}
	}()
	proc.Args = p.argv
	return p.run(ctx, &proc)
}
