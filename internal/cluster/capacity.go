package cluster

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

	"kubistro/internal/lab"
)

// What a running cluster with a learner's Pods needs, and what everything else
// on the machine keeps, in bytes.
const (
	clusterBytes = 300 << 20
	othersBytes  = 1 << 30
)

// maxFromMemory is how many clusters of a size may run at once in so much memory (0: unknown).
func maxFromMemory(total, each int64) int {
	if total <= 0 {
		return 4
	}
	return int(max(1, (total-othersBytes)/each))
}

// footprint is what a driver's running cluster needs in bytes.
func footprint(d Driver, spec lab.ClusterSpec) int64 {
	if s, ok := d.(Sizer); ok {
		return s.Footprint(spec)
	}
	return clusterBytes
}

// totalMemory is the memory that this process may use: the machine's, or less
// where a cgroup says so; 0 where the system doesn't tell.
func totalMemory() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	total := parseMemTotal(b)
	for _, f := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && n < total {
			total = n
		}
	}
	return total
}

func parseMemTotal(meminfo []byte) int64 {
	s := bufio.NewScanner(bytes.NewReader(meminfo))
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) >= 2 && f[0] == "MemTotal:" {
			n, _ := strconv.ParseInt(f[1], 10, 64) // 0 for nonsense: unknown
			return n << 10
		}
	}
	return 0
}
