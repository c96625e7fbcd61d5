package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// engine is a container runtime, as its command line is.
type engine interface {
	// run runs a command to its end and returns its output; stdin may be nil. A
	// command that fails gives a *commandError.
	run(ctx context.Context, stdin io.Reader, args ...string) (string, error)
	// start starts a command that is spoken to. It ends with ctx; wait returns when it has.
	start(ctx context.Context, args ...string) (stdout io.Reader, stdin io.WriteCloser, wait func() error, err error)
}

// commandError is a command that failed, with what it said.
type commandError struct {
	args []string
	said string
	err  error
}

func (e *commandError) Error() string {
	s := strings.Join(e.args, " ") + ": " + e.err.Error()
	if e.said != "" {
		s += ": " + e.said
	}
	return s
}

func (e *commandError) Unwrap() error { return e.err }

// program is docker, podman or nerdctl.
type program struct{ path string }

func (p program) run(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.path, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return out.String(), &commandError{append([]string{p.path}, args...), strings.TrimSpace(errs.String()), err}
	}
	return out.String(), nil
}

func (p program) start(ctx context.Context, args ...string) (io.Reader, io.WriteCloser, func() error, error) {
	cmd := exec.CommandContext(ctx, p.path, args...)
	fail := func(err error) (io.Reader, io.WriteCloser, func() error, error) {
		return nil, nil, nil, &commandError{append([]string{p.path}, args...), "", err}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return fail(err)
	}
	// A pipe of the system's own: Wait of os/exec would close one of its making under the reader.
	out, w, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	cmd.Stdout = w
	err = cmd.Start()
	w.Close()
	if err != nil {
		out.Close()
		return fail(err)
	}
	return out, in, func() error {
		defer out.Close()
		return cmd.Wait()
	}, nil
}

// runtimes are those that kind knows, in its order.
var runtimes = []string{"docker", "nerdctl", "podman"}

// findRuntime finds the container runtime's program.
func findRuntime(name string) (string, error) {
	names := runtimes
	if name == "" {
		name = os.Getenv("KIND_EXPERIMENTAL_PROVIDER") // as kind's own command does
	}
	if name != "" {
		if !slices.Contains(runtimes, name) {
			return "", unknownRuntime(name)
		}
		names = []string{name}
	}
	for _, n := range names {
		if _, err := exec.LookPath(n); err == nil {
			return n, nil
		}
	}
	return "", noRuntime(errors.New("not in PATH: " + strings.Join(names, ", ")))
}

// Labels that kind puts on node containers.
const (
	labelCluster = "io.x-k8s.kind.cluster"
	labelRole    = "io.x-k8s.kind.role"
)

// containers lists the containers of a cluster, running or not.
func containers(ctx context.Context, e engine, cluster string) ([]string, error) {
	out, err := e.run(ctx, nil, "ps", "-a", "--filter", "label="+labelCluster+"="+cluster, "--format", "{{.Names}}")
	if err != nil {
		return nil, err
	}
	names := strings.Fields(out)
	slices.Sort(names)
	return names, nil
}

// removeContainers removes a cluster's containers with their volumes.
func removeContainers(ctx context.Context, e engine, cluster string) error {
	names, err := containers(ctx, e, cluster)
	if err != nil || len(names) == 0 {
		return err
	}
	_, err = e.run(ctx, nil, append([]string{"rm", "-f", "-v"}, names...)...)
	var failed *commandError
	if errors.As(err, &failed) && strings.Contains(failed.said, "removal of container") && strings.Contains(failed.said, "is already in progress") {
		return nil
	}
	return err
}

// running reports whether a container runs; false with an error when nobody can tell.
func running(ctx context.Context, e engine, container string) (bool, error) {
	out, err := e.run(ctx, nil, "inspect", "--type", "container", "--format", "{{.State.Running}}", container)
	if err != nil {
		if missingContainer(err) {
			return false, nil
		}
		return false, err
	}
	return strings.TrimSpace(out) == "true", nil
}

func missingContainer(err error) bool {
	var failed *commandError
	return errors.As(err, &failed) && (strings.Contains(strings.ToLower(failed.said), "no such container") || strings.Contains(strings.ToLower(failed.said), "no such object"))
}

// address is a node container's address in kind's network.
func address(ctx context.Context, e engine, container string) (string, error) {
	out, err := e.run(ctx, nil, "inspect", "--type", "container", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", container)
	if err != nil {
		return "", err
	}
	if f := strings.Fields(out); len(f) > 0 {
		return f[0], nil
	}
	return "", fmt.Errorf("container %s has no address", container)
}

// inNode runs a command in a node's container.
func inNode(ctx context.Context, e engine, node string, args ...string) (string, error) {
	return e.run(ctx, nil, append([]string{"exec", node}, args...)...)
}

// writeFile writes a file in a node's container, with its folder.
func writeFile(ctx context.Context, e engine, node, path, mode string, content io.Reader) error {
	script := `set -e; mkdir -p "$(dirname "$1")"; cat > "$1.new"; chmod "$2" "$1.new"; mv "$1.new" "$1"`
	_, err := e.run(ctx, content, "exec", "-i", node, "sh", "-c", script, "sh", path, mode)
	return err
}
