package kind

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/kind/pkg/log"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// The stages of a start.
const (
	stageImage        = "image"        // the node image is there, or is pulled
	stageNodes        = "nodes"        // containers that boot
	stageConfig       = "config"       // settings are written
	stageControlPlane = "controlplane" // kubeadm init
	stageNetwork      = "cni"
	stageStorage      = "storage"
	stageKitchens     = "kitchens" // kubeadm join
	stagePantry       = "pantry"   // our images are loaded
	stageReady        = "ready"    // until all nodes and system Pods are
)

// statuses are the beginnings of kind's own status lines.
var statuses = []struct{ begins, stage string }{
	{"Ensuring node image", stageImage}, {"Preparing nodes", stageNodes}, {"Writing configuration", stageConfig},
	{"Starting control-plane", stageControlPlane}, {"Installing CNI", stageNetwork}, {"Installing StorageClass", stageStorage},
	{"Joining worker nodes", stageKitchens},
}

// stages reports a start's stages one after the other.
type stages struct {
	progress cluster.Progress // may be nil

	mu  sync.Mutex
	now lab.Stage // the running one; its Name is empty before the first
}

// begin ends the running stage and begins another; the same one goes on.
func (s *stages) begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.Name == name {
		return
	}
	s.finish()
	s.now = lab.Stage{Name: name, Started: time.Now()}
	s.tell()
}

// end ends the running stage.
func (s *stages) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish()
}

func (s *stages) finish() {
	if s.now.Name != "" && !s.now.Done {
		s.now.Done, s.now.Millis = true, time.Since(s.now.Started).Milliseconds()
		s.tell()
	}
}

func (s *stages) tell() {
	if s.progress != nil {
		s.progress(s.now)
	}
}

// name is that of the running stage.
func (s *stages) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.Name
}

// listener takes kind's log: its status lines become stages. kind logs from the
// goroutine that does the work and goes on when the call returns, so that
// entered can do something between two stages.
type listener struct {
	stages  *stages
	entered func(stage string) // may be nil

	mu    sync.Mutex
	lines []string // the newest ones
}

var (
	_ log.Logger     = (*listener)(nil)
	_ log.InfoLogger = (*listener)(nil)
)

// linesKept is how much of kind's log an error carries.
const linesKept = 40

func (l *listener) take(line string) {
	line = strings.TrimRight(line, "\n")
	l.mu.Lock()
	l.lines = append(l.lines, line)
	l.lines = l.lines[max(0, len(l.lines)-linesKept):]
	l.mu.Unlock()
	begun, ok := strings.CutPrefix(strings.TrimSpace(line), "• ")
	if !ok {
		return
	}
	for _, s := range statuses {
		if strings.HasPrefix(begun, s.begins) {
			l.stages.begin(s.stage)
			if l.entered != nil {
				l.entered(s.stage)
			}
		}
	}
}

// text is the end of the log.
func (l *listener) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (l *listener) Warn(m string)             { l.take(m) }
func (l *listener) Warnf(f string, a ...any)  { l.take(fmt.Sprintf(f, a...)) }
func (l *listener) Error(m string)            { l.take(m) }
func (l *listener) Errorf(f string, a ...any) { l.take(fmt.Sprintf(f, a...)) }
func (l *listener) Info(m string)             { l.take(m) }
func (l *listener) Infof(f string, a ...any)  { l.take(fmt.Sprintf(f, a...)) }
func (l *listener) Enabled() bool             { return true }

// V gives status lines only; what kind says in detail isn't even formatted.
func (l *listener) V(level log.Level) log.InfoLogger {
	if level > 0 {
		return log.NoopInfoLogger{}
	}
	return l
}
