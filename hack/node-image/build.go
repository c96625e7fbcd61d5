package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// command is a command of which only an error's output is shown.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", cmd, err, tail(out.Bytes()), tail(errs.Bytes()))
	}
	return out.String(), nil
}

// tail is the end of a long output.
func tail(b []byte) []byte { return b[max(0, len(b)-4000):] }

// moduleDir is the folder of a public module's sources, fetched if need be and
// checked against the checksum database as every module.
func moduleDir(ctx context.Context, module string) (string, error) {
	out, err := command(ctx, os.TempDir(), []string{"GOFLAGS=", "GO111MODULE=on"}, "go", "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var found struct{ Dir string }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return "", err
	}
	return found.Dir, nil
}

// build builds the program or finds it in the cache.
func (b *builder) build(ctx context.Context, p program) (string, error) {
	made, dir := p.module, ""
	if p.here != "" {
		dir = filepath.Join(b.source, p.here)
		var err error
		if made, err = sources(dir); err != nil {
			return "", err
		}
	}
	name := "program-" + p.name + "-" + key(made, kubernetesVersion, p.pkg, p.tags, p.ldflags, fmt.Sprint(p.cgo))
	return b.cache.entry(name, func(file string) error {
		defer b.step("building " + p.name)()
		if dir == "" {
			var err error
			if dir, err = moduleDir(ctx, p.module); err != nil {
				return err
			}
		}
		// Without -trimpath and as the Makefile builds: what clusterhost compiled of Kubernetes isn't compiled again.
		args := []string{"build", "-buildvcs=false", "-mod=readonly", "-ldflags", p.ldflags, "-o", file}
		if p.tags != "" {
			args = append(args, "-tags", p.tags)
		}
		cgo := "CGO_ENABLED=0"
		if p.cgo {
			cgo = "CGO_ENABLED=1"
		}
		_, err := command(ctx, dir, []string{cgo, "GOFLAGS=", "GOWORK=off"}, "go", append(args, p.pkg)...)
		return err
	})
}

// pause builds the program that holds a Pod's namespaces, a few lines of C in
// Kubernetes' own sources.
func (b *builder) pause(ctx context.Context) (string, error) {
	return b.cache.entry("program-pause-"+key(kubernetesVersion), func(file string) error {
		dir, err := moduleDir(ctx, "k8s.io/kubernetes@"+kubernetesVersion)
		if err != nil {
			return err
		}
		_, err = command(ctx, dir, nil, "gcc", "-Os", "-static", "-s", "-DVERSION=kubernetes-"+kubernetesVersion, "-o", file, "build/pause/linux/pause.c")
		return err
	})
}
