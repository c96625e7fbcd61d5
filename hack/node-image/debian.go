package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// needed are the programs and files that the build takes from Debian packages.
var needed = []struct{ program, file, pkg string }{
	{program: "debootstrap", pkg: "debootstrap"},
	{program: "gcc", pkg: "gcc"},
	{file: "/usr/include/seccomp.h", pkg: "libseccomp-dev"},
	{file: "/usr/include/stdlib.h", pkg: "libc6-dev"},
}

// requireTools installs what is missing of the tools, or says what to install.
func (b *builder) requireTools(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("a root file system with its owners can only be made by root: run this as root")
	}
	var missing []string
	for _, n := range needed {
		if n.program != "" {
			if _, err := exec.LookPath(n.program); err != nil {
				missing = append(missing, n.pkg)
			}
		} else if _, err := os.Stat(n.file); err != nil {
			missing = append(missing, n.pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("missing: %s (names of Debian packages)", strings.Join(missing, ", "))
	}
	defer b.step("installing " + strings.Join(missing, ", "))()
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	if _, err := command(ctx, "/", env, "apt-get", "update", "-q"); err != nil {
		return err
	}
	_, err := command(ctx, "/", env, "apt-get", append([]string{"install", "-qy", "--no-install-recommends"}, missing...)...)
	return err
}

// debian makes the root file system of a node: a minimal Debian whose systemd starts
// nothing but what kind asks for, as kind's base image (images/base/Dockerfile) has it.
func (b *builder) debian(ctx context.Context) (string, error) {
	name := "debian-" + key(append([]string{debianSuite, debianMirror, pruned}, debianPackages...)...)
	return b.cache.entry(name, func(root string) error {
		defer b.step("installing Debian " + debianSuite + " into a folder")()
		if _, err := command(ctx, "/", nil, "debootstrap", "--variant=minbase", "--include="+strings.Join(debianPackages, ","), debianSuite, root, debianMirror); err != nil {
			return err
		}
		for pattern := range strings.FieldsSeq(pruned) {
			files, err := filepath.Glob(filepath.Join(root, pattern))
			if err != nil {
				return err
			}
			for _, f := range files {
				if err := os.RemoveAll(f); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// pruned are patterns of files that the image doesn't have: units that would touch the
// host or wait for hardware, and what is the machine's that made the image.
const pruned = `
	lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service
	lib/systemd/system/multi-user.target.wants/*
	lib/systemd/system/local-fs.target.wants/*
	lib/systemd/system/sockets.target.wants/*udev*
	lib/systemd/system/sockets.target.wants/*initctl*
	lib/systemd/system/basic.target.wants/*
	etc/systemd/system/*.wants/*
	etc/machine-id etc/hostname etc/resolv.conf
	var/cache/apt/* var/lib/apt/lists/* var/cache/debconf/*-old var/log/* debootstrap
	dev/* proc/* sys/* run/* tmp/*
	usr/share/doc/* usr/share/man/* usr/share/locale/* usr/share/info/*`
