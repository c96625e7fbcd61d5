// Command bench measures a labserver as its users meet it, over the HTTP API and
// WebSockets, and prints the table of docs/benchmarks.md. It starts servers of
// its own on loopback with throw-away data folders, is bounded in count and
// time, and ends everything that it started.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.labserver, "labserver", "bin/labserver", "the server's program; clusterhost is found beside it")
	flag.IntVar(&o.runs, "runs", 5, "starts of each kind")
	flag.IntVar(&o.clusters, "clusters", 10, "clusters of the larger class")
	flag.IntVar(&o.events, "events", 200, "writes whose way to the browser is timed")
	flag.IntVar(&o.commands, "commands", 30, "commands typed into the terminal")
	flag.DurationVar(&o.settle, "settle", 30*time.Second, "how long idle clusters are watched")
	flag.StringVar(&o.only, "only", "", "one group of figures: "+strings.Join(groupNames(), ", "))
	flag.StringVar(&o.pprof, "pprof", "", "have cluster hosts without a server (groups pods and rush) serve their profiles on this unix socket")
	timeout := flag.Duration("timeout", 25*time.Minute, "bound on the whole run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	labserver                        string
	runs, clusters, events, commands int
	settle                           time.Duration
	only, pprof                      string
}

// group is a part of the table that is measured together.
type group struct {
	name    string
	measure func(context.Context, options) ([]figure, error)
}

func groups() []group {
	return []group{
		{"start", coldStarts}, {"claim", poolClaims}, {"wake", wakes}, {"one", oneCluster}, {"many", manyClusters},
		{"pods", thirtyPods}, {"rush", threeHundredPods},
	}
}

func groupNames() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}

// figure is a row of the table.
type figure struct{ name, value, goal string }

func run(ctx context.Context, o options) error {
	if o.only != "" && !slices.Contains(groupNames(), o.only) {
		return fmt.Errorf("-only: there is no group %q", o.only)
	}
	var table []figure
	for _, g := range groups() {
		if o.only != "" && o.only != g.name {
			continue
		}
		rows, err := g.measure(ctx, o)
		if err != nil {
			return err
		}
		for _, r := range rows {
			fmt.Fprintf(os.Stderr, "%s: %s\n", r.name, r.value)
		}
		table = append(table, rows...)
	}
	fmt.Printf("%s, %d cores, %s, %s/%s\n\n", time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), cpuModel(), runtime.GOOS, runtime.GOARCH)
	fmt.Println("| what | measured | goal |")
	fmt.Println("|---|---|---|")
	for _, f := range table {
		fmt.Printf("| %s | %s | %s |\n", f.name, f.value, f.goal)
	}
	return nil
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t: "))
		}
	}
	return "processor unknown"
}

// quantile returns the q-quantile of the samples (nearest rank).
func quantile(samples []time.Duration, q float64) time.Duration {
	s := slices.Sorted(slices.Values(samples))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func spread(samples []time.Duration) string {
	return fmt.Sprintf("%s (%s to %s, %d runs)", round(quantile(samples, 0.5)), round(slices.Min(samples)), round(slices.Max(samples)), len(samples))
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}
