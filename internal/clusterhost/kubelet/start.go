package kubelet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubistro/internal/clusterhost/pantry"
)

// startProblem is why a container couldn't be started: the waiting state's
// reason and message.
type startProblem struct {
	reason, message string
	until           time.Time // a back-off ends then
	later           bool      // shown from the next look at the Pod on, as a real kubelet shows it
}

func newContainerID() string {
	var b [32]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// containerPath is the fieldPath of a container in events: container/ref.go.
func containerPath(kind containerKind, name string) string {
	switch kind {
	case kindInit:
		return "spec.initContainers{" + name + "}"
	case kindEphemeral:
		return "spec.ephemeralContainers{" + name + "}"
	}
	return "spec.containers{" + name + "}"
}

// environment makes a container's variables.
func (w *worker) environment(ctx context.Context, c *corev1.Container) (map[string]string, error) {
	services, err := w.b.services(w.pod)
	if err != nil {
		return nil, err
	}
	return envMaker{objects: w.b.objects, services: services, facts: w.facts()}.variables(ctx, c)
}

// start follows kuberuntime/kuberuntime_container.go, startContainer: pull,
// create, start, and the postStart hook in the background.
func (w *worker) start(ctx context.Context, s *slot) *startProblem {
	c, path := s.spec, containerPath(s.kind, s.name)
	failed := func(p *startProblem, text string) *startProblem {
		w.b.podEvent(w.pod, path, corev1.EventTypeWarning, "Failed", "Error: %s", text)
		return p
	}
	unmounted := w.pullVolumes(ctx, c)
	img, problem := w.ensureImage(ctx, c, path)
	if problem == nil {
		problem = unmounted
	}
	if problem != nil {
		return failed(problem, problem.reason)
	}
	inst, err := w.create(ctx, c, img)
	if err != nil {
		p := &startProblem{reason: "CreateContainerConfigError", message: err.Error()}
		return failed(p, p.message)
	}
	argv := commandLine(c, img, inst.proc.Env)
	if len(argv) == 0 {
		inst.stop()
		inst.discard()
		p := &startProblem{reason: "CreateContainerError", message: fmt.Sprintf("failed to generate container %q spec: failed to generate spec: no command specified", inst.state.ID)}
		return failed(p, p.message)
	}
	w.b.podEvent(w.pod, path, corev1.EventTypeNormal, "Created", "Container created")
	restarts := s.restarts
	if s.cur != nil || s.rerun {
		restarts++
	}
	p, err := resolve(img.Programs, inst.fs, argv)
	if err != nil {
		inst.state = containerState{ID: inst.state.ID, Phase: containerExited, Started: time.Unix(0, 0), Finished: w.b.k.clock.Now(),
			ExitCode: codeStartError, Reason: "StartError",
			Message: "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: " + err.Error()}
		inst.stop()
		inst.proc.Usage.Close()
		inst.log.close()
		inst.term.close()
		close(inst.done)
		w.replace(s, inst, restarts)
		p := &startProblem{reason: "RunContainerError", message: inst.state.Message}
		return failed(p, p.message)
	}
	inst.state.Phase, inst.state.Started = containerRunning, w.b.k.clock.Now()
	inst.startedOK, inst.readyOK = c.StartupProbe == nil, c.ReadinessProbe == nil
	inst.hookRunning = c.Lifecycle != nil && c.Lifecycle.PostStart != nil
	w.replace(s, inst, restarts)
	w.run(inst, p, c)
	w.b.podEvent(w.pod, path, corev1.EventTypeNormal, "Started", "Container started")
	if inst.hookRunning {
		w.b.wg.Go(func() { w.postStart(ctx, s, inst) })
	} else {
		w.startProbes(s, inst)
	}
	return nil
}

// replace makes inst the slot's container; of the one before only state and logs stay.
func (w *worker) replace(s *slot, inst *instance, restarts int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.cur != nil {
		s.cur.log.shrink()
		s.cur.discard()
		s.cur.proc = pantry.Process{}
		s.prev = s.cur
	}
	s.cur, s.restarts, s.rerun, s.waiting, s.later = inst, restarts, false, nil, nil
}

// create makes the container without starting it. Errors become CreateContainerConfigError.
func (w *worker) create(ctx context.Context, c *corev1.Container, img *pantry.Image) (*instance, error) {
	if w.mustNotBeRoot(c, img) {
		return nil, fmt.Errorf("container has runAsNonRoot and image will run as root (pod: \"%s(%s)\", container: %s)", podName(w.pod), w.pod.UID, c.Name)
	}
	env, err := w.environment(ctx, c)
	if err != nil {
		return nil, err
	}
	dir := c.WorkingDir
	if dir == "" {
		dir = img.WorkDir
	}
	if dir == "" {
		dir = "/"
	}
	inst := &instance{
		name: c.Name, image: img, asked: c.Image,
		state:   containerState{ID: newContainerID()},
		log:     newLogBuffer(w.b.k.clock),
		term:    newTerminal(c.Stdin, c.TTY),
		logPath: c.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError,
		signals: make(chan syscall.Signal, 4),
		done:    make(chan struct{}),
		hurry:   make(chan struct{}, 1),
	}
	inst.ctx, inst.stop = context.WithCancel(w.b.procs)
	w.contain(inst, c.Resources)
	inst.stdout, inst.stderr = inst.log.writer(inst.ctx, false), inst.log.writer(inst.ctx, true)
	if err := w.rootfs(ctx, c, img, inst); err != nil {
		inst.stop()
		return nil, err
	}
	usage := inst.proc.Usage
	inst.proc = pantry.Process{
		Env: environ(img.Env, w.hostname(), env), Dir: dir,
		Net: w.iface, FS: inst.fs, Hostname: w.hostname(), Clock: w.b.k.clock, Pace: w.b.k.cfg.Pace,
		User: effectiveUser(w.pod, c, img.User), PodName: w.pod.Name, NodeName: w.b.k.cfg.Name, Programs: img.Programs,
		Store: new(pantry.Store), Usage: usage, TTY: c.TTY,
	}
	return inst, nil
}

// commandLine joins command and args with the image's: $(NAME) is expanded.
func commandLine(c *corev1.Container, img *pantry.Image, env []string) []string {
	lookup := func(name string) (string, bool) {
		for _, kv := range env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v, true
			}
		}
		return "", false
	}
	argv, args := img.Entrypoint, img.Cmd
	if len(c.Command) > 0 {
		argv, args = c.Command, nil
	}
	if len(c.Args) > 0 {
		args = c.Args
	}
	out := make([]string, 0, len(argv)+len(args))
	for _, a := range argv {
		out = append(out, expand(a, lookup))
	}
	for _, a := range args {
		out = append(out, expand(a, lookup))
	}
	return out
}

// run starts the main process; when it is gone the state says how it ended.
func (w *worker) run(inst *instance, p process, c *corev1.Container) {
	inst.program = path.Base(p.argv[0])
	ctx, stdout, stderr := inst.ctx, inst.stdout, inst.stderr
	proc := inst.proc
	proc.Signals, proc.Resize = inst.signals, inst.term.resize
	proc.Stdout, proc.Stderr = liveWriter{stdout, inst.term, false}, liveWriter{stderr, inst.term, true}
	proc.Stdin = inst.term.reader()
	if c.TTY {
		out := &crlfWriter{w: proc.Stdout}
		proc.Stdout, proc.Stderr = out, out
		if inst.term.stdin != nil && !editsLines(p.argv) {
			proc.Stdin = cook(ctx, proc.Stdin, out, func() { inst.signal(syscall.SIGINT) })
		}
	}
	gone := make(chan int, 1)
	go func() { gone <- p.exec(ctx, proc) }()
	w.b.wg.Go(func() {
		code := codeKilled
		select {
		case code = <-gone:
		case <-ctx.Done():
			select {
			case code = <-gone:
			case <-w.b.k.clock.After(unresponsive):
				w.b.log.Error("a program goes on after SIGKILL", "pod", podName(w.pod), "container", inst.name)
			}
		}
		stdout.flush()
		stderr.flush()
		w.exited(inst, code)
		inst.stop()
	})
}

// exited records the end of a main process.
func (w *worker) exited(inst *instance, code int) {
	inst.proc.Usage.Close()
	w.mu.Lock()
	if w.b.procs.Err() != nil && !inst.killed {
		w.mu.Unlock() // the node stops: what the container was is in the checkpoint already
		inst.term.close()
		inst.log.close()
		close(inst.done)
		return
	}
	if inst.killed || inst.ctx.Err() != nil {
		code = codeKilled
	}
	st := &inst.state
	st.Phase, st.Finished, st.ExitCode = containerExited, w.b.k.clock.Now(), int32(code)
	st.Reason = "Completed"
	if code != 0 {
		st.Reason = "Error"
	}
	if inst.killReason != "" {
		st.Reason = inst.killReason
	}
	st.Message = inst.terminationMessage(code)
	inst.readyOK = false
	w.mu.Unlock()
	inst.log.close()
	inst.term.close()
	close(inst.done)
	w.poke()
}

// terminationMessage follows kuberuntime_container.go, getTerminationMessage: at
// most 4096 bytes of the file, or of the logs' last 80 lines and 2048 bytes.
func (i *instance) terminationMessage(code int) string {
	var text []byte
	if i.last != nil {
		text, _ = i.last.ReadFile(terminationFile) // none without a terminationMessagePath
		text = text[max(0, len(text)-4096):]
	}
	if len(text) == 0 && i.logPath && code != 0 {
		return i.log.tail(80, 2048)
	}
	return string(text)
}
