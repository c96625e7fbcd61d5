package session

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	opened     prometheus.Counter
	operations *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer, s *Service) (*metrics, error) {
	m := &metrics{
		opened: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kubistro_sessions_opened_total", Help: "Sessions that learners have opened.",
		}),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubistro_operation_seconds", Help: "How long resets and shown solutions took.", Buckets: []float64{.5, 1, 2, 5, 10, 20, 60},
		}, []string{"kind", "outcome"}),
	}
	if reg == nil {
		return m, nil
	}
	live := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubistro_sessions_live", Help: "Sessions that this server process has open.",
	}, func() float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return float64(len(s.labs))
	})
	streams := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubistro_event_streams", Help: "Open event streams.",
	}, func() float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, l := range s.labs {
			n += l.record.Subscribers()
		}
		return float64(n)
	})
	for _, c := range []prometheus.Collector{m.opened, m.operations, live, streams} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("session: metrics: %w", err)
		}
	}
	return m, nil
}
