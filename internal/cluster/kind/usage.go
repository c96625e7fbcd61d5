package kind

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"kubistro/internal/cluster"
)

// usageScript prints, in a node, its memory without the page cache that can be had
// back, in bytes, its CPU time in nanoseconds and its disk in kilobytes.
const usageScript = `cd /sys/fs/cgroup
if [ -f memory.current ]; then
  echo $(( $(cat memory.current) - $(sed -n 's/^inactive_file //p' memory.stat) ))
  echo $(( $(sed -n 's/^usage_usec //p' cpu.stat) * 1000 ))
else
  echo $(( $(cat memory/memory.usage_in_bytes) - $(sed -n 's/^total_inactive_file //p' memory/memory.stat) ))
  cat cpuacct/cpuacct.usage
fi
du -skx /var | cut -f1`

func parseUsage(out string) (cluster.Usage, error) {
	f := strings.Fields(out)
	if len(f) != 3 {
		return cluster.Usage{}, fmt.Errorf("%q isn't memory, CPU time and disk", out)
	}
	var n [3]int64
	for i, s := range f {
		var err error
		if n[i], err = strconv.ParseInt(s, 10, 64); err != nil {
			return cluster.Usage{}, err
		}
	}
	return cluster.Usage{PSSBytes: n[0], CPU: time.Duration(n[1]), DiskBytes: n[2] << 10}, nil
}
