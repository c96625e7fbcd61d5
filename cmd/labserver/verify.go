package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"kubistro/internal/lab"
	"kubistro/internal/session"
	"kubistro/internal/verify"
)

type verifyOptions struct {
	driverOptions
	workers int
	json    bool
	report  string
	brief   bool
	seed    uint64
	within  time.Duration
	courseOptions
}

func (p *program) verify() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use: "verify [COURSE[/LEVEL[/EXERCISE]]]", Short: "Try every exercise on real clusters", Args: cobra.MaximumNArgs(1),
		Long: `Try exercises as learners would, by typing into the terminal: in the start state no check may be met; after
each right solution all have to be; after each wrong one the named check has to say why not; and a reset has
to bring the start state back within 10 s. For courses and levels also walk through the lessons: run every
command, and compare what they print with the output that the text quotes. Exit code 1 when anything is wrong.`,
		Example: `  labserver verify
  labserver verify restaurant/1
  labserver verify restaurant/1/b --json
  labserver verify --workers 4 --report verify.xml
  labserver verify --driver kind --brief --seed $(date +%-j) --within 10m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.runVerify(cmd.Context(), o, strings.Join(args, ""))
		},
	}
	cmd.Flags().IntVar(&o.workers, "workers", 2, "how many lessons and exercises are tried at once, each on a cluster of its own")
	cmd.Flags().BoolVar(&o.brief, "brief", false, "one right and one wrong answer of each exercise, in an order that --seed makes, and no lessons")
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "with --brief: which answers, in which order")
	cmd.Flags().DurationVar(&o.within, "within", 0, "begin no exercise after this time (0: try all)")
	cmd.Flags().StringVar(&o.report, "report", "", "write a JUnit report to this file")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	o.courseOptions.flags(cmd.Flags())
	o.driverOptions.flags(cmd.Flags())
	cmd.Flags().Lookup("log-level").DefValue = "error"
	o.logLevel = "error"
	return cmd
}

func (p *program) runVerify(ctx context.Context, o verifyOptions, target string) (err error) {
	log, err := p.logger(o.logLevel)
	if err != nil {
		return err
	}
	klog.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "kubistro-verify-")
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	defer os.RemoveAll(dir)
	s, err := p.open(ctx, serveOptions{driverOptions: o.driverOptions, courseOptions: o.courseOptions, data: dir}, prometheus.NewRegistry(), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if len(s.faults) > 0 {
		return fmt.Errorf("courses: %w", s.faults)
	}
	exercises, err := verify.Select(s.courses, target)
	if err != nil {
		return err
	}
	c := verify.Config{
		Lab: attempts{s.sessions}, Library: s.courses, Workers: o.workers, Capabilities: s.capabilities(), Log: log,
		Brief: o.brief, Seed: o.seed, Within: o.within,
	}
	if !o.json {
		c.Report = func(v verify.Step) {
			if v.Fault != "" {
				fmt.Fprintf(p.stderr, "FAULT %s/%s/%s %s %s: %s\n", v.Course, v.Level, v.Exercise, v.Kind, v.Title, v.Fault)
			}
		}
	}
	began := time.Now()
	levels := verify.Levels(exercises, target)
	if o.brief {
		levels = nil
	}
	steps, err := verify.Run(ctx, c, levels, exercises)
	if o.json {
		err = errors.Join(err, p.print(map[string]any{"steps": steps, "faults": verify.Faults(steps), "millis": time.Since(began).Milliseconds()}))
	} else {
		p.table(steps, time.Since(began))
	}
	if o.report != "" {
		err = errors.Join(err, writeReport(o.report, steps, time.Since(began)))
	}
	if n := verify.Faults(steps); err == nil && n > 0 {
		return &findingsError{n}
	}
	return err
}

func writeReport(file string, steps []verify.Step, took time.Duration) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return errors.Join(verify.WriteJUnit(f, steps, took), f.Close())
}

func (p *program) table(steps []verify.Step, took time.Duration) {
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "EXERCISE\tSTEP\tTITLE\tTIME\tRESULT")
	skipped := 0
	for _, s := range steps {
		result := "ok"
		switch {
		case s.Fault != "":
			result = "FAULT"
		case s.Skipped != "":
			result = "skipped: " + s.Skipped
			skipped++
		}
		where := strings.TrimSuffix(s.Course+"/"+s.Level+"/"+s.Letter, "/")
		fmt.Fprintf(t, "%s\t%s\t%s\t%.1f s\t%s\n", strings.TrimSpace(where+" "+s.Exercise), s.Kind, s.Title, float64(s.Millis)/1000, result)
	}
	t.Flush()
	faults := verify.Faults(steps)
	fmt.Fprintf(p.stdout, "\n%d steps, %d skipped, %d faults, %.0f s\n", len(steps), skipped, faults, took.Seconds())
	for _, s := range steps {
		if s.Fault == "" {
			continue
		}
		fmt.Fprintf(p.stdout, "\n%s/%s/%s, %s %s:\n  %s\n", s.Course, s.Level, s.Exercise, s.Kind, s.Title, s.Fault)
		if s.Output != "" {
			fmt.Fprintf(p.stdout, "  printed:\n    %s\n", strings.ReplaceAll(strings.TrimSpace(s.Output), "\n", "\n    "))
		}
	}
}

// attempts fits the session service to what verification needs.
type attempts struct{ *session.Service }

func (a attempts) Put(ctx context.Context, learner lab.LearnerID, id, path string, content []byte) error {
	_, err := a.WriteFile(ctx, learner, id, path, content)
	return err
}
