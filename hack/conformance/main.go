// Command conformance runs the tests that Kubernetes marks [Conformance] against
// a cluster host and prints which of them fail. It starts one cluster in a
// throw-away folder, opens a loopback port to its API server for as long as it
// runs, and ends everything that it started. docs/conformance.md explains the
// failures that are known.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

type options struct {
	clusterhost, suite, ginkgo, kubectl string // programs
	focus, skip                         string // regular expressions over test names
	procs                               int
	timeout                             time.Duration // bound on the whole run
	out                                 string        // folder for log and report
}

func main() {
	var o options
	flag.StringVar(&o.clusterhost, "clusterhost", "bin/clusterhost", "the cluster host's program")
	flag.StringVar(&o.suite, "suite", "bin/e2e.test", "the suite's test program")
	flag.StringVar(&o.ginkgo, "ginkgo", "bin/ginkgo", "the runner's program")
	flag.StringVar(&o.kubectl, "kubectl", "bin/kubectl", "the kubectl that tests call")
	flag.StringVar(&o.focus, "focus", `\[Conformance\]`, "tests to run, a regular expression")
	flag.StringVar(&o.skip, "skip", "", "tests to leave out, a regular expression")
	flag.IntVar(&o.procs, "procs", 4, "tests at a time; they wait more than they work")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Hour, "bound on the whole run")
	flag.StringVar(&o.out, "out", "bin/conformance", "folder for log and report")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	good, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if !good {
		os.Exit(1)
	}
}

// run reports whether every chosen test passed; the error is one of the run itself.
func run(ctx context.Context, o options) (bool, error) {
	for _, p := range []*string{&o.clusterhost, &o.suite, &o.ginkgo, &o.kubectl, &o.out} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return false, err
		}
		*p = abs
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout+10*time.Minute)
	defer cancel()
	c, err := startCluster(ctx, o)
	if err != nil {
		return false, err
	}
	defer c.close()
	began := time.Now()
	if err := runSuite(ctx, o, c); err != nil {
		return false, err
	}
	r, err := readReport(filepath.Join(o.out, reportFile), o.focus, o.skip)
	if err != nil {
		return false, err
	}
	r.print(os.Stdout)
	fmt.Printf("in %v; the log is %s\n", time.Since(began).Round(time.Second), filepath.Join(o.out, logFile))
	return len(r.failed) == 0, nil
}
