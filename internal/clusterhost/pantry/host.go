package pantry

import (
	"context"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"kubistro/internal/clusterhost/pantry/host"
)

// hostMemory is about what the controller holds in a real container.
const hostMemory = 28 * mib

// addHost adds the Ingress and Gateway controller, under its own name and under
// that of Traefik, whose flags it takes.
func addHost(r *Registry) error {
	if err := r.AddTagged(Image{
		SizeBytes: 21_495_808, Entrypoint: []string{"/kubistro-host"}, Env: []string{path1}, Ports: []int{80, 443},
		Programs: map[string]Program{"kubistro-host": own(hostMemory, hostProgram)},
	}, "kubistro/host", host.Version, host.Version, "latest"); err != nil {
		return err
	}
	programs := ownAll(shellBytes, r.userland("sh", "ash"))
	delete(programs, "bash")
	programs["traefik"], programs["entrypoint.sh"] = own(hostMemory, hostProgram), traefikEntrypoint
	for _, version := range []string{"v3.7.0", "v3.6.2", "v3.5.4", "v3.4.5", "v3.3.7", "v3.2.5", "v3.1.7", "v3.0.4", "v2.11.30", "v2.10.7"} {
		minor := version[:strings.LastIndexByte(version, '.')]
		tags := []string{version, minor}
		switch version {
		case "v3.7.0":
			tags = append(tags, "v3", "3", "latest")
		case "v2.11.30":
			tags = append(tags, "v2", "2")
		}
		for _, t := range tags {
			if plain := strings.TrimPrefix(t, "v"); !slices.Contains(tags, plain) {
				tags = append(tags, plain)
			}
		}
		for _, repository := range []string{"traefik", "ghcr.io/traefik/traefik"} {
			if err := r.AddTagged(Image{
				SizeBytes: 51_380_224, Entrypoint: []string{"/entrypoint.sh"}, Cmd: []string{"traefik"}, Env: []string{path1}, Ports: []int{80}, Simulated: true,
				Programs: programs, Files: map[string][]byte{"/etc/os-release": release("alpine", "Alpine Linux", "3.22")},
			}, repository, version, tags...); err != nil {
				return err
			}
		}
	}
	return nil
}

// traefikEntrypoint is the image's entrypoint.sh: flags and subcommands are traefik's.
func traefikEntrypoint(ctx context.Context, p *Process) int {
	args := p.Args[1:]
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || args[0] == "version" || args[0] == "healthcheck" {
		args = append([]string{"traefik"}, args...)
	}
	return p.run(ctx, args)
}

// hostProgram runs the controller on the container's network and files.
func hostProgram(ctx context.Context, p *Process) int {
	ended := make(chan struct{})
	defer close(ended)
	args := append([]string{path.Base(p.Args[0])}, p.Args[1:]...)
	return host.Run(ctx, host.Env{
		Args: args, Getenv: p.Getenv, ReadFile: p.readFile, Listen: p.Net.Listen, Dial: p.Net.DialContext,
		Stdout: &lineWriter{w: p.Stdout}, Hostname: p.Hostname, Clock: p.Clock, Stop: p.stopSignal(ended),
		Used: func(cpu time.Duration) { p.Usage.AddCPU(int64(cpu)) },
	})
}

// readFile reads a file of the container.
func (p *Process) readFile(name string) ([]byte, error) {
	f, err := p.FS.OpenFile(name, readOnly, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// maxFile bounds what is read of a file.
const maxFile = 4 << 20
