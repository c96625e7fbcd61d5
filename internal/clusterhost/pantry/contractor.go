package pantry

import (
	"context"
	"path"
	"strings"
	"syscall"
	"time"

	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/clusterhost/pantry/clusterautoscaler"
	"kubistro/internal/clusterhost/pantry/karpenter"
)

// What the autoscalers hold in a real container, about.
const (
	karpenterMemory         = 96 * mib
	clusterAutoscalerMemory = 64 * mib
)

// clusterAutoscalerVersions are the tags of its image that tutorials name.
var clusterAutoscalerVersions = []string{"v1.37.0", "v1.36.0", "v1.35.0", "v1.34.2", "v1.34.0", "v1.33.0", "v1.32.1", "v1.32.0", "v1.31.0", "v1.30.0", "v1.29.0", "v1.28.2", "v1.26.2"}

// karpenterVersions are the tags of Karpenter's image that tutorials name.
var karpenterVersions = []string{"1.14.1", "1.14.0", "1.13.0", "1.12.0", "1.11.0", "1.10.0", "1.9.0", "1.8.6", "1.8.2", "1.7.1", "1.6.5", "1.5.3", "1.4.0", "1.3.3", "1.2.1", "1.1.1", "1.0.8"}

// addContractor adds the autoscalers of nodes, under their own name and under those
// of the public images.
func addContractor(r *Registry) error {
	if err := r.AddTagged(Image{
		SizeBytes: 48_234_496, Entrypoint: []string{"/contractor"}, Cmd: []string{"karpenter"}, Env: []string{path1},
		Programs: map[string]Program{
			"contractor": contractorProgram, "karpenter": own(karpenterMemory, karpenterProgram),
			"cluster-autoscaler": own(clusterAutoscalerMemory, clusterAutoscalerProgram),
		},
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
	for _, version := range clusterAutoscalerVersions {
		if err := r.AddTagged(Image{
			SizeBytes: 30_408_704, Cmd: []string{"/cluster-autoscaler"}, Env: []string{path1}, Simulated: true, User: 65532, WorkDir: "/",
			Programs: map[string]Program{"cluster-autoscaler": own(clusterAutoscalerMemory, clusterAutoscalerProgram)},
		}, "registry.k8s.io/autoscaling/cluster-autoscaler", version, version); err != nil {
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

// stopSignal is closed when the process is told to end; it listens until ended is closed.
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

// clusterAutoscalerProgram runs the other way of working.
func clusterAutoscalerProgram(ctx context.Context, p *Process) int {
	ended := make(chan struct{})
	defer close(ended)
	return clusterautoscaler.Run(ctx, clusterautoscaler.Env{
		Args: p.Args, ReadFile: p.readFile, Config: p.InClusterConfig, Listen: p.Net.Listen, Dial: p.Net.DialContext,
		Stdout: &lineWriter{w: p.Stdout}, Stderr: p.Stderr, Clock: p.Clock, Pace: p.Pace, Stop: p.stopSignal(ended),
	})
}
