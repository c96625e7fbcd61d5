package controlplane

import (
	"sync"
	"time"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// stageLog is how far the start is; safe for concurrent use. Stages overlap: what
// doesn't depend on another runs beside it.
type stageLog struct {
	mu      sync.Mutex
	stages  []lab.Stage
	problem string
}

// begin notes that a stage runs now.
func (l *stageLog) begin(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stages = append(l.stages, lab.Stage{Name: name, Started: time.Now()})
}

// end notes that a stage is done and returns how long it took.
func (l *stageLog) end(name string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.stages {
		if s := &l.stages[i]; s.Name == name && !s.Done {
			d := time.Since(s.Started)
			s.Done, s.Millis = true, d.Milliseconds()
			return d
		}
	}
	return 0
}

// fail notes why the start failed.
func (l *stageLog) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problem = err.Error()
}

// snapshot returns the stages with the time that the running ones have taken so far.
func (l *stageLog) snapshot() (stages []lab.Stage, problem string, ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.stages {
		if !s.Done {
			s.Millis = time.Since(s.Started).Milliseconds()
		}
		ready = ready || s.Name == controlapi.StageReady && s.Done
		stages = append(stages, s)
	}
	return stages, l.problem, ready
}
