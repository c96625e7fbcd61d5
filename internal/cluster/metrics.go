package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kubistro/internal/lab"
)

// metrics are the Manager's numbers for Prometheus.
type metrics struct {
	registry prometheus.Registerer // nil: nobody collects them
	all      []prometheus.Collector
	claims   *prometheus.CounterVec
	starts   *prometheus.HistogramVec
	wakes    prometheus.Counter
	crashes  prometheus.Counter
	failures prometheus.Counter
}

func newMetrics(r prometheus.Registerer, m *Manager) *metrics {
	x := &metrics{
		registry: r,
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubistro_cluster_claims_total",
			Help: "Clusters given to learners, by where they came from."}, []string{"from"}),
		starts: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kubistro_cluster_start_seconds",
			Help: "Time from the begin of a start to a ready cluster.", Buckets: []float64{.05, .25, .5, 1, 2, 3, 4, 5, 7.5, 10, 15, 30, 60}}, []string{"kind"}),
		wakes:    prometheus.NewCounter(prometheus.CounterOpts{Name: "kubistro_cluster_wakes_total", Help: "Clusters woken from sleep or restarted."}),
		crashes:  prometheus.NewCounter(prometheus.CounterOpts{Name: "kubistro_cluster_crashes_total", Help: "Clusters that ended by themselves, and restarts that failed."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "kubistro_cluster_start_failures_total", Help: "Starts that failed."}),
	}
	x.all = []prometheus.Collector{x.claims, x.starts, x.wakes, x.crashes, x.failures, newGauges(m)}
	if r != nil {
		for _, c := range x.all {
			r.MustRegister(c)
		}
	}
	return x
}

func (x *metrics) unregister() {
	if x.registry != nil {
		for _, c := range x.all {
			x.registry.Unregister(c)
		}
	}
}

func (x *metrics) started(w work, took time.Duration) {
	kind := map[work]string{workCreate: "create", workWake: "wake", workAdopt: "adopt"}[w]
	x.starts.WithLabelValues(kind).Observe(took.Seconds())
	if w == workWake {
		x.wakes.Inc()
	}
}

// gauges count clusters at the moment of being asked.
type gauges struct {
	m           *Manager
	state, pool *prometheus.Desc
}

func newGauges(m *Manager) *gauges {
	return &gauges{m: m,
		state: prometheus.NewDesc("kubistro_clusters", "Learners' clusters by state.", []string{"state"}, nil),
		pool:  prometheus.NewDesc("kubistro_cluster_pool", "Unused clusters, ready and starting.", []string{"ready"}, nil),
	}
}

func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	ch <- g.state
	ch <- g.pool
}

func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	states := map[lab.State]int{lab.StateQueued: 0, lab.StateProvisioning: 0, lab.StateReady: 0, lab.StateAsleep: 0, lab.StateFailed: 0}
	ready, starting := 0, 0
	g.m.mu.Lock()
	for _, c := range g.m.clusters {
		switch {
		case c.state == lab.StateEnded:
		case c.pooled && c.state == lab.StateReady:
			ready++
		case c.pooled:
			starting++
		default:
			states[c.state]++
		}
	}
	g.m.mu.Unlock()
	for s, n := range states {
		ch <- prometheus.MustNewConstMetric(g.state, prometheus.GaugeValue, float64(n), string(s))
	}
	ch <- prometheus.MustNewConstMetric(g.pool, prometheus.GaugeValue, float64(ready), "true")
	ch <- prometheus.MustNewConstMetric(g.pool, prometheus.GaugeValue, float64(starting), "false")
}
