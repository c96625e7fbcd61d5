// Command fidelity does the same scenarios on a kind cluster and on an embedded one, or on an
// embedded one and the record of a kind cluster, and prints in which lines the two differ: output
// of kubectl, objects, Events. Names, times and addresses are replaced before.
// docs/fidelity.md describes the scenarios' format and the differences that have a reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	scenarios, explained, recorded       string // folder, file, folder
	clusterhost, agent, archive, kubectl string // files
	image                                string // of kind's nodes
	clusters                             []string
	only                                 *regexp.Regexp
	parallel                             int
	patience                             time.Duration
	out                                  string
	keep, record, replay                 bool
}

// record is the name of the cluster that doesn't run: what kind showed another time.
const record = "record"

func main() {
	var o options
	flag.StringVar(&o.scenarios, "scenarios", "hack/fidelity/scenarios", "folder of the scenarios")
	flag.StringVar(&o.explained, "explained", "hack/fidelity/explained.yaml", "differences that have a reason")
	flag.StringVar(&o.recorded, "recorded", "hack/fidelity/recorded", "folder of the record")
	flag.StringVar(&o.clusterhost, "clusterhost", "bin/clusterhost", "the cluster host's program")
	flag.StringVar(&o.agent, "agent", "bin/kind-agent", "the agent in kind's nodes")
	flag.StringVar(&o.archive, "archive", "bin/pantry.tar", "images for kind's nodes, with stand-ins")
	flag.StringVar(&o.kubectl, "kubectl", "bin/kubectl", "the kubectl that scenarios call")
	flag.StringVar(&o.image, "image", os.Getenv("KUBISTRO_KIND_IMAGE"), "image of kind's nodes; empty: kind's default")
	clusters := flag.String("clusters", "kind,embedded", "the two that are compared: kind, embedded, embedded2, record")
	only := flag.String("only", "", "scenarios to do, a regular expression over their names")
	flag.IntVar(&o.parallel, "parallel", 4, "scenarios at a time")
	flag.DurationVar(&o.patience, "patience", 4*time.Minute, "how long a step may wait")
	flag.StringVar(&o.out, "out", "bin/fidelity", "folder for clusters, transcripts and differences")
	flag.BoolVar(&o.keep, "keep", false, "leave the clusters running, for the next run to take")
	flag.BoolVar(&o.record, "record", false, "write what the first cluster showed into the record")
	flag.BoolVar(&o.replay, "replay", false, "compare the last run's transcripts once more, without clusters")
	flag.Parse()
	o.clusters = strings.Split(*clusters, ",")
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	good, err := run(ctx, o)
	stop()
	if err != nil {
		fail(err)
	}
	if !good {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "fidelity:", err)
	os.Exit(2)
}

// run reports whether nothing differs but what is explained.
func run(ctx context.Context, o options) (bool, error) {
	if len(o.clusters) != 2 || o.clusters[0] == o.clusters[1] {
		return false, errors.New("-clusters: name two")
	}
	for _, p := range []*string{&o.clusterhost, &o.agent, &o.archive, &o.kubectl, &o.out} {
		path, err := filepath.Abs(*p)
		if err != nil {
			return false, err
		}
		*p = path
	}
	all, err := loadScenarios(o.scenarios)
	if err != nil {
		return false, err
	}
	known, err := loadExplanations(o.explained)
	if err != nil {
		return false, err
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(s *Scenario) bool { return !o.only.MatchString(s.Name) })
	sides, err := startAll(ctx, o)
	defer func() {
		for _, k := range sides {
			if k != nil {
				k.end()
			}
		}
	}()
	if err != nil {
		return false, err
	}
	p := &report{o: o, known: known, used: map[string]int{}}
	if err := p.doAll(ctx, sides, chosen); err != nil {
		return false, err
	}
	return p.summary(len(chosen) == len(all)), nil
}

// startAll starts both clusters; that of the record is nil.
func startAll(ctx context.Context, o options) ([2]*kubernetesCluster, error) {
	var sides [2]*kubernetesCluster
	var errs [2]error
	var wg sync.WaitGroup
	for i, name := range o.clusters {
		if name == record || o.replay {
			continue
		}
		wg.Go(func() {
			began := time.Now()
			if sides[i], errs[i] = startCluster(ctx, o, name); errs[i] == nil {
				errs[i] = sides[i].warmUp(ctx)
			}
			if errs[i] == nil {
				fmt.Fprintf(os.Stderr, "%s is ready after %s\n", name, time.Since(began).Round(time.Second))
			}
		})
	}
	wg.Wait()
	return sides, errors.Join(errs[:]...)
}
