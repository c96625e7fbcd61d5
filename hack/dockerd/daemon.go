package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// find returns the environment that leads to a Docker, and how to be done with it.
func find(ctx context.Context, dir string) (host []string, stop func() error, err error) {
	if answers(ctx, nil) {
		return nil, func() error { return nil }, nil
	}
	if os.Geteuid() != 0 {
		return nil, nil, errors.New("no Docker runs here, and only root can start one")
	}
	if err := install(ctx); err != nil {
		return nil, nil, err
	}
	if answers(ctx, nil) { // the package has started it
		return nil, func() error { return nil }, nil
	}
	return own(ctx, dir)
}

func answers(ctx context.Context, host []string) bool {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err := docker(ctx, host, "version", "--format", "{{.Server.Version}}")
	return err == nil
}

// install gets Docker's server from Debian.
func install(ctx context.Context) error {
	if _, err := exec.LookPath("dockerd"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("there is no dockerd, and no apt-get to install docker.io with")
	}
	fmt.Fprintln(os.Stderr, "==> installing docker.io")
	for _, args := range [][]string{{"update", "-q"}, {"install", "-qy", "--no-install-recommends", "docker.io"}} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", cmd, err, out)
		}
	}
	return nil
}

// own starts a dockerd, or joins the one that another run of this program has
// started; who started it ends it when the others are done.
func own(ctx context.Context, dir string) (host []string, stop func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	host = []string{"DOCKER_HOST=unix://" + filepath.Join(dir, "docker.sock")}
	users, err := lock(filepath.Join(dir, "users"), syscall.LOCK_SH)
	if err != nil {
		return nil, nil, err
	}
	starter, err := lock(filepath.Join(dir, "starter"), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		if err := wait(ctx, host, nil); err != nil {
			return nil, nil, errors.Join(err, users.Close())
		}
		return host, users.Close, nil
	} else if err != nil {
		return nil, nil, errors.Join(err, users.Close())
	}
	back, err := raise(inotifyLimits)
	if err != nil {
		return nil, nil, errors.Join(err, starter.Close(), users.Close())
	}
	end, err := start(ctx, dir, host)
	if err != nil {
		return nil, nil, errors.Join(err, back(), starter.Close(), users.Close())
	}
	return host, func() error {
		err := syscall.Flock(int(users.Fd()), syscall.LOCK_EX) // until the others are done
		return errors.Join(err, end(), back(), starter.Close(), users.Close())
	}, nil
}

// lock is held until the file is closed.
func lock(file string, how int) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// start starts dockerd and waits until it answers.
func start(ctx context.Context, dir string, host []string) (end func() error, err error) {
	if err := os.MkdirAll("/lib/modules", 0o755); err != nil { // kind mounts it into every node
		return nil, err
	}
	config, err := configuration(dir)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "daemon.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "dockerd.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	fmt.Fprintf(os.Stderr, "==> starting dockerd (%s, log %s)\n", strings.Join(host, " "), log.Name())
	cmd := exec.Command("dockerd", "--config-file", file)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal isn't meant for it
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := wait(ctx, host, ended); err != nil {
		_ = cmd.Process.Kill()
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%w\n%s", err, text[max(0, len(text)-4000):])
	}
	return func() error {
		fmt.Fprintln(os.Stderr, "==> ending dockerd")
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		err := clean(ctx, host)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		select {
		case waited := <-ended:
			return errors.Join(err, waited)
		case <-ctx.Done():
			return errors.Join(err, errors.New("dockerd didn't end and was killed"), cmd.Process.Kill())
		}
	}, nil
}

// clean removes what a command that broke off has left: containers, volumes, networks.
func clean(ctx context.Context, host []string) error {
	out, err := docker(ctx, host, "ps", "-aq")
	if err != nil {
		return err
	}
	if ids := strings.Fields(out); len(ids) > 0 {
		if _, err := docker(ctx, host, append([]string{"rm", "-f", "-v"}, ids...)...); err != nil {
			return err
		}
	}
	for _, kind := range []string{"volume", "network"} {
		if _, err := docker(ctx, host, kind, "prune", "-f"); err != nil {
			return err
		}
	}
	return nil
}

// wait waits until Docker answers.
func wait(ctx context.Context, host []string, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		if answers(ctx, host) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("Docker doesn't answer at %v: %w", host, ctx.Err())
		case err := <-ended:
			return fmt.Errorf("dockerd ended: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// configuration is dockerd's: nothing of it is shared with a Docker of the system.
func configuration(dir string) ([]byte, error) {
	c := map[string]any{
		"data-root": filepath.Join(dir, "data"),
		"exec-root": filepath.Join(dir, "exec"),
		"pidfile":   filepath.Join(dir, "docker.pid"),
		"hosts":     []string{"unix://" + filepath.Join(dir, "docker.sock")},
		"log-level": "warn",
	}
	bounding, err := boundingSet("/proc/self/status")
	if err != nil {
		return nil, err
	}
	if missing := without(bounding); len(missing) > 0 {
		wrapper := filepath.Join(dir, runtimeName)
		if err := copySelf(wrapper); err != nil {
			return nil, err
		}
		c["runtimes"] = map[string]any{"bounded": map[string]any{"path": wrapper}}
		c["default-runtime"] = "bounded"
	}
	return json.MarshalIndent(c, "", "  ")
}

func copySelf(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	in, err := os.Open(self)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.RemoveAll(to); err != nil { // it may be running
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
