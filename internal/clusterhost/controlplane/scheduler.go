package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
)

// schedulerProcess is kube-scheduler with its default profile.
type schedulerProcess struct {
	*scheduler.Scheduler
	informers   informers.SharedInformerFactory
	dynamic     dynamicinformer.DynamicSharedInformerFactory
	broadcaster events.EventBroadcasterAdapter
	cancel      context.CancelFunc
	wg          sync.WaitGroup
}

// startScheduler builds the scheduler and returns when it schedules.
func startScheduler(ctx context.Context, token string, transport http.RoundTripper) (*schedulerProcess, error) {
	config, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	rc := restConfig(transport, token, "kube-scheduler")
	client, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	objects, err := dynamic.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	name, err := cache.NewInformerName("kube-scheduler")
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &schedulerProcess{
		informers:   scheduler.NewInformerFactory(client, 0, name),
		dynamic:     dynamicinformer.NewFilteredDynamicSharedInformerFactory(objects, 0, "", nil),
		broadcaster: events.NewEventBroadcasterAdapterWithContext(ctx, client),
		cancel:      cancel,
	}
	name.Release()
	recorder := func(name string) events.EventRecorderLogger { return p.broadcaster.NewRecorder(name) }
	p.Scheduler, err = scheduler.New(ctx, client, p.informers, p.dynamic, recorder,
		scheduler.WithComponentConfigVersion(config.APIVersion),
		scheduler.WithKubeConfig(rc),
		scheduler.WithProfiles(config.Profiles...),
		scheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		scheduler.WithPodMaxBackoffSeconds(config.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(config.PodInitialBackoffSeconds),
		scheduler.WithParallelism(4),
	)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	p.broadcaster.StartRecordingToSink(ctx.Done())
	p.informers.Start(ctx.Done())
	p.dynamic.Start(ctx.Done())
	p.informers.WaitForCacheSync(ctx.Done())
	p.dynamic.WaitForCacheSync(ctx.Done())
	if err := p.WaitForHandlersSync(ctx); err != nil {
		p.close()
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	p.wg.Go(func() {
		defer utilruntime.HandleCrashWithContext(ctx)
		p.Run(ctx)
	})
	return p, nil
}

// close ends scheduling.
func (p *schedulerProcess) close() {
	p.cancel()
	p.wg.Wait()
	p.broadcaster.Shutdown()
}
