package controlplane

import (
	"runtime"
	"sync"
	_ "unsafe" // for linkname

	"k8s.io/client-go/util/workqueue"
)

// queueProvider is where client-go keeps the provider of its work queues' metrics.
// SetProvider works once, and component-base takes that turn before any package
// that imports it can.
//
//go:linkname queueProvider k8s.io/client-go/util/workqueue.globalMetricsProvider
var queueProvider workqueue.MetricsProvider

// stillQueues keeps the work queues that are made from now on from waking the process:
// each of the ninety has a goroutine that writes two gauges every half second, which
// is a third of all wake-ups of an idle cluster. These two gauges
// (workqueue_unfinished_work_seconds and workqueue_longest_running_processor_seconds)
// stay at zero; all other metrics of the queues go on.
var stillQueues = sync.OnceFunc(func() {
	if queueProvider != nil {
		queueProvider = stillProvider{queueProvider}
	}
})

type stillProvider struct{ workqueue.MetricsProvider }

func (stillProvider) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return lastWord{}
}

// lastWord ends the goroutine that sets it: it is the only one that does, and leaves
// its lock and its ticker behind by deferred calls.
type lastWord struct{}

func (lastWord) Set(float64) { runtime.Goexit() }
