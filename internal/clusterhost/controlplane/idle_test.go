package controlplane

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// TestQueuesAreStill: no work queue keeps a goroutine that wakes up for its gauges,
// and the metrics of the queues are there all the same.
func TestQueuesAreStill(t *testing.T) {
	err := retry(t.Context(), func() error { // a queue's goroutine ends at its first tick
		var stacks bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
			return err
		}
		if !strings.Contains(stacks.String(), "waitingLoop") {
			t.Fatal("there is no work queue at all")
		}
		if n := strings.Count(stacks.String(), "updateUnfinishedWorkLoop"); n > 0 {
			return fmt.Errorf("%d queues write their gauges again and again", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	metrics, err := shared.client.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"workqueue_adds_total", "workqueue_depth", "workqueue_queue_duration_seconds_bucket"} {
		if !strings.Contains(string(metrics), name+`{name="garbage_collector_graph_changes"`) {
			t.Errorf("/metrics lacks %s of the garbage collector's queue", name)
		}
	}
}

func TestSharedTicks(t *testing.T) {
	ticks := sharedTicks{clock.RealClock{}, 5 * time.Second}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ after, length, want time.Duration }{
		{0, 100 * time.Millisecond, 100 * time.Millisecond},
		{time.Second, 0, 0},
		{0, time.Second, 5 * time.Second},
		{3900 * time.Millisecond, 1100 * time.Millisecond, 1100 * time.Millisecond},
		{3950 * time.Millisecond, 1100 * time.Millisecond, 6050 * time.Millisecond},
		{time.Second, 15 * time.Second, 19 * time.Second},
	} {
		if got := ticks.putOff(noon.Add(c.after), c.length); got != c.want {
			t.Errorf("%v after a tick, a timer of %v takes %v, not %v", c.after, c.length, got, c.want)
		}
	}
}
