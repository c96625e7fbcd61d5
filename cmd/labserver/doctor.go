package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kubistro/internal/cluster/kind"
)

// finding is one thing that doctor looked at.
type finding struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Problem says what doesn't work for that reason; empty when all is well.
	Problem string `json:"problem,omitempty"`
	// Mend is the command that mends it, where there is one.
	Mend string `json:"mend,omitempty"`
	// Fatal: the server can't run at all.
	Fatal bool `json:"fatal,omitempty"`
}

// What a learner's running cluster and the server itself take, in bytes.
const (
	perLearner = 300 << 20
	forOthers  = 1 << 30
)

func (p *program) doctor() *cobra.Command {
	var asJSON bool
	var o driverOptions
	var data string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Tell what this machine has, and how many learners fit", Args: cobra.NoArgs,
		Long: `Tell what this machine has, what doesn't work for that reason and the command that mends it, and how
many learners fit. With --driver kind it looks at the container runtime, too.`,
		Example: `  labserver doctor
  labserver doctor --driver kind`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := examine(cmd.Context(), o, data)
			if asJSON {
				if err := p.print(findings); err != nil {
					return err
				}
			} else {
				p.tell(findings)
			}
			for _, f := range findings {
				if f.Fatal {
					return &findingsError{1}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	o.flags(cmd.Flags())
	cmd.Flags().StringVar(&data, "data", p.dataFolder(), "data folder")
	return cmd
}

func (p *program) tell(findings []finding) {
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		mark := "ok"
		if f.Fatal {
			mark = "FAULT"
		} else if f.Problem != "" {
			mark = "note"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", mark, f.Name, f.Value, f.Problem)
		if f.Mend != "" {
			fmt.Fprintf(t, "\t\t\tmend it with: %s\n", f.Mend)
		}
	}
	t.Flush()
}

// learnersPerCPU leaves half of each processor to work that is asked for: an idle
// cluster takes about 5 % of one (docs/benchmarks.md).
const learnersPerCPU = 10

func examine(ctx context.Context, o driverOptions, data string) []finding {
	out := []finding{{Name: "system", Value: runtime.GOOS + "/" + runtime.GOARCH + " " + kernel()}, folder(data), confinement()}
	if o.driver == "kind" {
		path, err := findProgram(o.kindAgent, "kind-agent")
		if err != nil {
			path = "kind-agent"
		}
		for _, f := range kind.Examine(ctx, kind.Options{Agent: path, Image: o.kindImage, Runtime: o.kindRuntime}) {
			out = append(out, finding{f.Name, f.Value, f.Problem, f.Mend, f.Fatal})
		}
		return out
	}
	out = append(out, hostProgram(o.clusterhost), cgroups())
	cpu := finding{Name: "processors", Value: fmt.Sprintf("%d: %d learners at once", runtime.NumCPU(), runtime.NumCPU()*learnersPerCPU)}
	if runtime.NumCPU() < 2 {
		cpu.Problem = "clusters start slowly on one processor"
	}
	return append(out, cpu, memory())
}

func kernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func hostProgram(flag string) finding {
	path, err := findProgram(flag, "clusterhost")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return finding{Name: "clusterhost", Value: "missing", Problem: err.Error(), Fatal: true}
	}
	return finding{Name: "clusterhost", Value: path}
}

func folder(data string) finding {
	f := finding{Name: "data folder", Value: data}
	if err := os.MkdirAll(data, 0o700); err != nil {
		f.Problem, f.Fatal = err.Error(), true
		return f
	}
	probe, err := os.CreateTemp(data, "doctor-")
	if err != nil {
		f.Problem, f.Fatal = err.Error(), true
		return f
	}
	probe.Close()
	os.Remove(probe.Name())
	return f
}

func confinement() finding {
	f := finding{Name: "Landlock", Value: "ABI " + strconv.Itoa(landlockVersion())}
	if landlockVersion() == 0 {
		f.Value, f.Problem = "none", "terminals can't be confined, so the server listens on loopback addresses only"
	}
	return f
}

func cgroups() finding {
	f := finding{Name: "cgroups", Value: "v2"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		f.Value, f.Problem = "none", "a cluster's memory is bounded by rlimits and GOMEMLIMIT only"
	}
	return f
}

func memory() finding {
	total := machineMemory()
	if total == 0 {
		return finding{Name: "memory", Value: "unknown", Problem: "set --max yourself"}
	}
	fit := max(0, (total-forOthers)/perLearner)
	f := finding{Name: "memory", Value: fmt.Sprintf("%.1f GiB: %d learners at once", float64(total)/(1<<30), fit)}
	if fit < 1 {
		f.Problem, f.Fatal = "too little for one cluster", true
	}
	return f
}

// machineMemory is what this process may use, in bytes; 0 when unknown.
func machineMemory() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var total int64
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			total = kib << 10
		}
	}
	if b, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n < total {
			total = n
		}
	}
	return total
}
