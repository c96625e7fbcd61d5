package labclient

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what the cluster hosts of a server use on average.
type Usage struct {
	PSS     int64   // bytes of one cluster
	Percent float64 // of one core, of one cluster
}

// Idle leaves the cluster hosts alone for the given time, so that their start is over,
// and then watches them for as long again; memory is read at its end.
func (s *Server) Idle(ctx context.Context, d time.Duration) (Usage, error) {
	pids := s.hosts()
	if len(pids) == 0 {
		return Usage{}, errors.New("no clusterhost process found")
	}
	if err := pause(ctx, d); err != nil {
		return Usage{}, err
	}
	before := ticks(pids)
	began := time.Now()
	if err := pause(ctx, d); err != nil {
		return Usage{}, err
	}
	const ticksPerSecond = 100 // USER_HZ, fixed by the Linux ABI
	spent := float64(ticks(pids)-before) / ticksPerSecond
	u := Usage{Percent: 100 * spent / time.Since(began).Seconds() / float64(len(pids))}
	for _, pid := range pids {
		u.PSS += pss(pid)
	}
	u.PSS /= int64(len(pids))
	return u, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Largest are the resident bytes of the largest cluster host and of the largest
// terminal of the server.
func (s *Server) Largest() (host, terminal int64) {
	for _, pid := range s.hosts() {
		host = max(host, pss(pid))
	}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		text, _ := os.ReadFile(f)
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(s.cmd.Process.Pid) {
			pid := filepath.Base(filepath.Dir(f))
			if line, _ := os.ReadFile("/proc/" + pid + "/cmdline"); strings.Contains(string(line), "terminal-child") {
				terminal = max(terminal, pss(pid))
			}
		}
	}
	return host, terminal
}

// hosts finds the processes whose command line names the server's data folder.
func (s *Server) hosts() []string {
	var pids []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if strings.Contains(string(text), "clusterhost") && strings.Contains(string(text), s.Data) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// ticks adds up user and system time (fields 14 and 15 of proc_pid_stat(5)).
func ticks(pids []string) int64 {
	var sum int64
	for _, pid := range pids {
		text, _ := os.ReadFile("/proc/" + pid + "/stat")
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		for _, i := range []int{11, 12} {
			if i < len(fields) {
				n, _ := strconv.ParseInt(fields[i], 10, 64)
				sum += n
			}
		}
	}
	return sum
}

// pss is the proportional set size in bytes (proc_pid_smaps_rollup).
func pss(pid string) int64 {
	text, _ := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n * 1024
		}
	}
	return 0
}
