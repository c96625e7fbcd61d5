package main

import (
	"context"
	"fmt"
	"time"

	"kubistro/internal/labclient"
)

func megabytes(bytes int64) string   { return fmt.Sprintf("%.0f MB", float64(bytes)/1e6) }
func ofACore(percent float64) string { return fmt.Sprintf("%.1f %% of a core", percent) }

func coldStarts(ctx context.Context, o options) ([]figure, error) {
	s, err := labclient.Start(ctx, o.labserver, "--warm", "0", "--idle", "24h")
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	var took []time.Duration
	for range o.runs {
		l := s.Learner()
		t := time.Now()
		id, err := l.Open(ctx)
		if err != nil {
			return nil, err
		}
		if err := l.WaitReady(ctx, id); err != nil {
			return nil, err
		}
		took = append(took, time.Since(t))
		if err := l.End(ctx, id); err != nil {
			return nil, err
		}
	}
	return []figure{{"cold start: asked for until ready", spread(took), "4 s"}}, nil
}

func poolClaims(ctx context.Context, o options) ([]figure, error) {
	s, err := labclient.Start(ctx, o.labserver, "--warm", "1", "--idle", "24h")
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	var took []time.Duration
	for range o.runs {
		if err := s.WaitPool(ctx); err != nil {
			return nil, err
		}
		l := s.Learner()
		t := time.Now()
		id, err := l.Open(ctx)
		if err != nil {
			return nil, err
		}
		if err := l.WaitReady(ctx, id); err != nil {
			return nil, err
		}
		took = append(took, time.Since(t))
		if err := l.End(ctx, id); err != nil {
			return nil, err
		}
	}
	return []figure{{"claim from the warm pool until ready", spread(took), "0.5 s"}}, nil
}

func wakes(ctx context.Context, o options) ([]figure, error) {
	s, err := labclient.Start(ctx, o.labserver, "--warm", "0", "--idle", "3s")
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	l := s.Learner()
	id, err := l.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.WaitReady(ctx, id); err != nil {
		return nil, err
	}
	var took []time.Duration
	for range o.runs {
		if err := l.WaitState(ctx, id, "asleep"); err != nil {
			return nil, err
		}
		t := time.Now()
		if err := l.Wake(ctx, id); err != nil {
			return nil, err
		}
		if err := l.WaitReady(ctx, id); err != nil {
			return nil, err
		}
		took = append(took, time.Since(t))
	}
	return []figure{{"wake from sleep until ready", spread(took), "-"}}, nil
}

func oneCluster(ctx context.Context, o options) ([]figure, error) {
	s, err := labclient.Start(ctx, o.labserver, "--warm", "0", "--idle", "24h")
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	l := s.Learner()
	id, err := l.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.WaitReady(ctx, id); err != nil {
		return nil, err
	}
	idle, err := s.Idle(ctx, o.settle)
	if err != nil {
		return nil, err
	}
	latency, err := l.EventLatency(ctx, id, o.events)
	if err != nil {
		return nil, err
	}
	commands, err := l.TerminalLatency(ctx, id, o.commands)
	if err != nil {
		return nil, err
	}
	return []figure{
		{"memory of an idle cluster (Pss)", megabytes(idle.PSS), "200 MB"},
		{"idle CPU of a cluster", ofACore(idle.Percent), "2 % of a core"},
		{fmt.Sprintf("write to browser, %d events: p50", len(latency)), round(quantile(latency, 0.5)).String(), "-"},
		{fmt.Sprintf("write to browser, %d events: p99", len(latency)), round(quantile(latency, 0.99)).String(), "50 ms"},
		{fmt.Sprintf("`kubectl get pods` in the web terminal, %d times: p50", len(commands)), round(quantile(commands, 0.5)).String(), "250 ms"},
	}, nil
}

func manyClusters(ctx context.Context, o options) ([]figure, error) {
	s, err := labclient.Start(ctx, o.labserver, "--warm", "0", "--idle", "24h")
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	t := time.Now()
	for range o.clusters {
		l := s.Learner()
		id, err := l.Open(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.End(context.WithoutCancel(ctx), id) }()
		if err := l.WaitReady(ctx, id); err != nil {
			return nil, err
		}
	}
	all := time.Since(t)
	idle, err := s.Idle(ctx, o.settle)
	if err != nil {
		return nil, err
	}
	n := fmt.Sprintf("%d clusters, one after the other: ", o.clusters)
	return []figure{
		{n + "all ready after", round(all).String(), "-"},
		{n + "memory of each (Pss)", megabytes(idle.PSS), "200 MB"},
		{n + "idle CPU of each", ofACore(idle.Percent), "2 % of a core"},
	}, nil
}
