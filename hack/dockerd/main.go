// Command dockerd runs a command with a Docker that works: the one that runs here, or
// one of its own that it starts before and ends after. Its own has its own
// configuration, data folder and socket, and keeps nothing but images.
//
//	go run ./hack/dockerd -load 'NAME FILE' -- command arguments...
//
// The command finds it by DOCKER_HOST.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	if filepath.Base(os.Args[0]) == runtimeName {
		if err := runtimeMain(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, runtimeName+":", err)
			os.Exit(1)
		}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	err := run(ctx, os.Args[1:])
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		os.Exit(exit.ExitCode()) // the command has said why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dockerd:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("dockerd", flag.ContinueOnError)
	dir := flags.String("data", "", "folder of an own dockerd (default: kubistro/dockerd in the user's cache folder)")
	load := flags.String("load", "", "`NAME FILE` of an image archive to load if Docker has no such image")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("say what to run with Docker")
	}
	if *dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		*dir = filepath.Join(base, "kubistro", "dockerd")
	}
	host, stop, err := find(ctx, *dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if name, file, ok := strings.Cut(*load, " "); ok {
		if err := loadImage(ctx, host, name, file); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, flags.Arg(0), flags.Args()[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), host...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd.Run()
}

// loadImage loads an archive unless Docker has the image.
func loadImage(ctx context.Context, host []string, name, file string) error {
	if _, err := docker(ctx, host, "image", "inspect", name); err == nil {
		return nil
	}
	fmt.Fprintf(os.Stderr, "==> loading %s into Docker\n", name)
	_, err := docker(ctx, host, "load", "-i", file)
	return err
}

// docker runs the client. host is the environment that names the server.
func docker(ctx context.Context, host []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(os.Environ(), host...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return string(out), nil
}
