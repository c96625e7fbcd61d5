package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Percentages of the garbage collector. A running cluster is idle most of the time
// and there are many on a machine, so it trades CPU for memory, until it is busy. A
// start that collects less (75, 200 or 400 per cent were tried) isn't faster and
// scatters what stays over so many pages that up to a third more memory is taken for
// good; one that collects more (25) takes a second more of CPU.
const (
	gcStarting = 40
	gcRunning  = 30
	gcBusy     = 100
)

// limitProcess bounds what the process takes: the collector works harder when
// seven eighths of the memory are used.
func limitProcess(memory int64, log *slog.Logger) {
	debug.SetGCPercent(gcStarting)
	debug.SetMemoryLimit(memory / 8 * 7)
	if err := setRlimits(); err != nil {
		log.Warn("resource limits can't be set", "err", err)
	}
}

// settleMemory gives back what only the start needed: once when the cluster is
// ready and again when its caches have come to rest.
func settleMemory(ctx context.Context, log *slog.Logger) {
	debug.SetGCPercent(gcRunning)
	for _, wait := range []time.Duration{0, 20 * time.Second} {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		giveBack(log)
	}
}

// giveBack returns memory that isn't used now, and pages of the program, to the system.
func giveBack(log *slog.Logger) {
	debug.FreeOSMemory()
	if err := forgetProgramPages(); err != nil {
		log.Debug("pages of the program stay mapped", "err", err)
	}
}

// watchMemory calls over once when the process's own memory passes limit bytes, and
// each every second. It returns when ctx is done.
func watchMemory(ctx context.Context, limit int64, over func(error), each func()) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if rss := anonymous(); rss > limit {
			over(fmt.Errorf("%d MiB of %d MiB", rss>>20, limit>>20))
			return
		}
		each()
	}
}

// anonymous is the memory that belongs to the process alone, without mapped
// files; 0 where the system doesn't tell.
func anonymous() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(b), "RssAnon:")
	if !ok {
		return 0
	}
	kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return kb << 10
}
