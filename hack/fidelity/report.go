package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// report does scenarios on both sides, prints what differs and counts.
type report struct {
	o     options
	known []Explanation

	mu        sync.Mutex
	used      map[string]int // scenarios, by the explanation that they need
	same      int
	explained []string
	faulty    []string
	undone    []string // the clusters didn't let them be done
	unknown   int      // there is no record of them
}

// doAll does the scenarios, those that want the cluster for themselves at the end.
func (p *report) doAll(ctx context.Context, sides [2]*kubernetesCluster, list []*Scenario) error {
	slots := make(chan struct{}, p.o.parallel)
	var wg sync.WaitGroup
	for _, s := range list {
		if s.Alone {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			p.do(ctx, sides, s)
		})
	}
	wg.Wait()
	for _, s := range list {
		if s.Alone {
			p.do(ctx, sides, s)
		}
	}
	return ctx.Err()
}

// do does a scenario on both sides at the same time and compares.
func (p *report) do(ctx context.Context, sides [2]*kubernetesCluster, s *Scenario) {
	if ctx.Err() != nil {
		return
	}
	began := time.Now()
	var lines [2][]string
	var errs [2]error
	var wg sync.WaitGroup
	for i := range sides {
		wg.Go(func() { lines[i], errs[i] = p.side(ctx, sides[i], i, s) })
	}
	wg.Wait()
	err := errors.Join(errs[:]...)
	if err == nil {
		err = p.tell(s, compare(s, lines[0], lines[1], p.known), time.Since(began))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, errNoRecord):
		p.unknown++
	case err != nil:
		p.undone = append(p.undone, s.Name)
		fmt.Printf("not done   %s: %v\n", s.Name, err)
	}
}

// errNoRecord: nobody has recorded the scenario yet.
var errNoRecord = errors.New("there is no record of it")

// side is a scenario's canonical transcript on one cluster, or of the record.
func (p *report) side(ctx context.Context, k *kubernetesCluster, i int, s *Scenario) ([]string, error) {
	name := p.o.clusters[i]
	path := filepath.Join(p.o.recorded, s.Name+".txt")
	if name == record {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = errNoRecord
		}
		return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"), err
	}
	raw := filepath.Join(p.o.out, name, "transcripts", s.Name+".json")
	t, err := p.transcript(ctx, k, s, raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	lines := canonical(s, t)
	if p.o.record && i == 0 && t.Failure == "" {
		if err := os.MkdirAll(p.o.recorded, 0o755); err != nil {
			return nil, err
		}
		return lines, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
	}
	return lines, nil
}

// transcript is what the scenario shows now, or showed in the last run.
func (p *report) transcript(ctx context.Context, k *kubernetesCluster, s *Scenario, path string) (*Transcript, error) {
	if p.o.replay {
		return loadTranscript(path)
	}
	t, err := runScenario(ctx, k, s, p.o.patience)
	if err != nil {
		return nil, err
	}
	return t, t.save(path)
}

// tell prints a scenario's result.
func (p *report) tell(s *Scenario, list []difference, took time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var reasons []string
	for _, d := range list {
		if d.Explained != "" && !slices.Contains(reasons, d.Explained) {
			reasons = append(reasons, d.Explained)
		}
	}
	for _, r := range reasons {
		p.used[r]++
	}
	wrong := faults(list)
	switch {
	case len(list) == 0:
		p.same++
		fmt.Printf("same       %s (%s)\n", s.Name, took.Round(time.Second))
	case len(wrong) == 0:
		p.explained = append(p.explained, s.Name)
		fmt.Printf("explained  %s: %s\n", s.Name, strings.Join(reasons, "; "))
	default:
		p.faulty = append(p.faulty, s.Name)
		fmt.Printf("DIFFERENT  %s: %s\n%s", s.Name, s.Title, p.print(wrong))
	}
	dir := filepath.Join(p.o.out, "differences")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, s.Name+".txt"), []byte(p.print(list)), 0o644)
}

// print shows lines under the place where they stand: - the first cluster has it, + the second.
func (p *report) print(list []difference) string {
	var b strings.Builder
	place := ""
	for _, d := range list {
		if d.Place != place {
			place = d.Place
			fmt.Fprintf(&b, "    %s\n", place)
		}
		sign := "+"
		if d.Left {
			sign = "-"
		}
		fmt.Fprintf(&b, "    %s %s\n", sign, d.Line)
	}
	return b.String()
}

// summary prints the figures, and says whether all is well.
func (p *report) summary(complete bool) bool {
	fmt.Printf("\n%d scenarios, %s and %s: %d the same, %d with explained differences, %d with others, %d not done, %d without a record\n",
		p.same+len(p.explained)+len(p.faulty)+len(p.undone)+p.unknown, p.o.clusters[0], p.o.clusters[1], p.same, len(p.explained), len(p.faulty), len(p.undone), p.unknown)
	for _, k := range p.known {
		fmt.Printf("  %s: %d scenarios\n", k.Title, p.used[k.Title])
		if complete && p.used[k.Title] == 0 && slices.Contains(p.o.clusters, "embedded") && !slices.Contains(p.o.clusters, "embedded2") {
			fmt.Printf("  nothing needs it any more: take it out of %s\n", p.o.explained)
		}
	}
	slices.Sort(p.faulty)
	slices.Sort(p.undone)
	for _, n := range p.undone {
		fmt.Println("  not done:", n)
	}
	for _, n := range p.faulty {
		fmt.Println("  different:", n)
	}
	return len(p.faulty)+len(p.undone) == 0
}
