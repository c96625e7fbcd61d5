package pantry

import (
	"context"
	"path"
	"strings"
	"syscall"
	"time"

	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/clusterhost/pantry/karpenter"
)

// karpenterMemory is about what Karpenter holds in a real container.
const karpenterMemory = 96 * mib

// karpenterVersions are the tags of Karpenter's image that tutorials name.
var karpenterVersions = []string{"1.14.1", "1.14.0", "1.13.0", "1.12.0", "1.11.0", "1.10.0", "1.9.0", "1.8.6", "1.8.2", "1.7.1", "1.6.5", "1.5.3", "1.4.0", "1.3.3", "1.2.1", "1.1.1", "1.0.8"}

// addContractor adds the autoscalers of nodes, under their own name and under those
// of the public images.
func addContractor(r *Registry) error {
	if err := r.AddTagged(Image{
		SizeBytes: 48_234_496, Entrypoint: []string{"/contractor"}, Cmd: []string{"karpenter"}, Env: []string{path1},
		Programs: map[string]Program{"contractor": contractorProgram, "karpenter": own(karpenterMemory, karpenterProgram)},
	}, "kubistro/contractor", "1.0", "1.0", "latest"); err != nil {
		return err
	}
	for _, version := range karpenterVersions {
		if err := r.AddTagged(Image{
			SizeBytes: 45_088_768, Entrypoint: []string{"/ko-app/controller"}, Env: []string{path1}, Simulated: true, User: 65532,
			Programs: map[string]Program{"controller": own(karpenterMemory, karpenterProgram)},
		}, "public.ecr.aws/karpenter/controller", version, version); err != nil {
			return err
		}
	}
	return nil
}

// contractorProgram runs the way of working that its first argument names.
func contractorProgram(ctx context.Context, p *Process) int {
	args := p.Args[1:]
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		args = append([]string{"karpenter"}, args...)
	}
	return p.run(ctx, args)
}

// stopSignal is closed when the process is told to end.
func (p *Process) stopSignal(ended <-chan struct{}) <-chan struct{} {
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case s := <-p.Signals:
				if s == syscall.SIGTERM || s == syscall.SIGINT {
					close(stop)
					return
				}
			}
		}
	}()
	return stop
}

// karpenterProgram runs Karpenter on the container's network.
func karpenterProgram(ctx context.Context, p *Process) int {
	ended := make(chan struct{})
	defer close(ended)
	args := append([]string{path.Base(p.Args[0])}, p.Args[1:]...)
	return karpenter.Run(ctx, karpenter.Env{
		Args: args, Getenv: p.Getenv, Config: p.InClusterConfig, Namespace: p.Namespace(), Listen: p.Net.Listen, Dial: p.Net.DialContext,
		Stdout: &lineWriter{w: p.Stdout}, Stderr: p.Stderr, Clock: p.Clock, Stop: p.stopSignal(ended),
		Validation: func() time.Duration { return p.Pace.Of(pace.ConsolidationValidation) },
	})
}
