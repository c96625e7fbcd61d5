package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// Status is how far the cluster is.
func (h *Host) Status() controlapi.Status {
	s := controlapi.Status{ID: h.cfg.ID, PID: os.Getpid(), Started: h.started}
	s.Stages, s.Problem, s.Ready = h.stages.snapshot()
	return s
}

// Access is how to reach the API server; false until it answers.
func (h *Host) Access() (controlapi.Access, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.access == nil {
		return controlapi.Access{}, false
	}
	return *h.access, true
}

// Audit returns kept entries with numbers above after and a channel that is
// closed when there are more.
func (h *Host) Audit(after uint64, max int) ([]lab.AuditEntry, <-chan struct{}) {
	return h.trail.since(after, max)
}

// Dial opens a connection into the cluster's network: from the learner's terminal, from
// the street, or from where an address of the cluster is.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network == controlapi.NetworkStreet {
		return h.street.DialStreet(ctx, address)
	}
	if from, ok := strings.CutPrefix(network, controlapi.NetworkFrom); ok {
		ip, err := netip.ParseAddr(from)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		place := h.net.At(ip)
		if place == nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)}
		}
		return place.DialContext(ctx, "tcp", address)
	}
	return h.street.DialContext(ctx, network, address)
}

// Usage is what the process uses.
func (h *Host) Usage() (controlapi.Usage, error) {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return controlapi.Usage{}, fmt.Errorf("usage: %w", err)
	}
	u := controlapi.Usage{
		PSSBytes:   pss(),
		CPUNanos:   ru.Utime.Nano() + ru.Stime.Nano(),
		Goroutines: runtime.NumGoroutine(),
	}
	h.mu.Lock()
	if h.etcd != nil {
		u.EtcdBytes = h.etcd.size()
	}
	h.mu.Unlock()
	return u, nil
}

// pss is the process's proportional share of memory; 0 where the system doesn't tell.
func pss() int64 {
	f, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "Pss:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}
