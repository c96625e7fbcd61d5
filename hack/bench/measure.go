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
	took, err := openings(ctx, o, "0", func(*labclient.Server) error { return nil })
	if err != nil {
		return nil, err
	}
	return []figure{{"cold start: asked for until ready", spread(took), "4 s"}}, nil
}

func poolClaims(ctx context.Context, o options) ([]figure, error) {
	took, err := openings(ctx, o, "1", func(s *labclient.Server) error { return s.WaitPool(ctx) })
	if err != nil {
		return nil, err
	}
	return []figure{{"claim from the warm pool until ready", spread(took), "0.5 s"}}, nil
}

// openings opens sessions one after the other on a server with a pool of that
// size and times each until it is ready; prepare runs before each.
func openings(ctx context.Context, o options, warm string, prepare func(*labclient.Server) error) ([]time.Duration, error) {
	s, err := labclient.Start(ctx, o.labserver, "--warm", warm, "--idle", "24h")
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	var took []time.Duration
	for range o.runs {
		if err := prepare(s); err != nil {
			return nil, err
		}
		t := time.Now()
		l, id, err := ready(ctx, s)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(t))
		if err := l.End(ctx, id); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// ready opens a session of a new learner and waits until its cluster is ready.
func ready(ctx context.Context, s *labclient.Server) (*labclient.Learner, string, error) {
	l := s.Learner()
	id, err := l.Open(ctx)
	if err != nil {
		return nil, "", err
	}
	return l, id, l.WaitReady(ctx, id)
}

func wakes(ctx context.Context, o options) ([]figure, error) {
	s, err := labclient.Start(ctx, o.labserver, "--warm", "0", "--idle", "3s")
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	l, id, err := ready(ctx, s)
	if err != nil {
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
	l, id, err := ready(ctx, s)
	if err != nil {
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
		if _, _, err := ready(ctx, s); err != nil {
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
