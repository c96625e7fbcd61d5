package container

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// slice is how long a burner works between two looks at the clock and its context.
const slice = time.Millisecond

// burner uses the CPU and memory of the container (cgroup.Kernel).
type burner struct {
	size int64 // bytes that the process has without what it hoards

	mu   sync.Mutex
	held []byte
}

func newBurner() *burner { return &burner{size: residentSize()} }

// residentSize is the memory that is the process's own, as a container's limit counts
// it: without pages of its program's file. 0 if the kernel doesn't tell.
func residentSize() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 3 {
		return 0
	}
	resident, err1 := strconv.ParseInt(fields[1], 10, 64)
	shared, err2 := strconv.ParseInt(fields[2], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}

// Work computes for d. Where the CPU is shared or throttled less comes out of it, as
// for any program that works by the clock.
func (b *burner) Work(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); ctx.Err() == nil; {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		spin(min(left, slice))
	}
	return ctx.Err()
}

func spin(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// Load uses so many millicores until stop is called: in each period of 100 ms a thread
// computes for its part and rests.
func (b *burner) Load(millicores int64) (stop func()) {
	const period = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	var threads sync.WaitGroup
	for left := millicores; left > 0; left -= 1000 {
		busy := period * time.Duration(min(left, 1000)) / 1000
		threads.Go(func() {
			ticks := time.NewTicker(period)
			defer ticks.Stop()
			for b.Work(ctx, busy) == nil {
				select {
				case <-ticks.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return func() {
		cancel()
		threads.Wait()
	}
}

// Hold makes the process about so big, if it isn't anyway.
func (b *burner) Hold(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	want := max(0, bytes-b.size)
	if want == int64(len(b.held)) {
		return
	}
	b.held = nil // first, or both would be held for a moment
	if want == 0 {
		return
	}
	held := make([]byte, want)
	for i := 0; i < len(held); i += os.Getpagesize() {
		held[i] = 1 // the kernel gives a page when it is written to
	}
	b.held = held
}
