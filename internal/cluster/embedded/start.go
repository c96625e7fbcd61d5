package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// pollEvery is how often a starting host is asked how far it is.
const pollEvery = 15 * time.Millisecond

// host is a process of the program.
type host struct {
	pid    int
	alive  func() bool
	exited <-chan struct{} // closed at its end if it is a child of ours; nil otherwise
	exit   func() string   // how it ended, for the log; good after exited
	kill   func()          // of a child of ours: ends it and waits for that
}

// start starts the host in the cluster's folder and waits until it is ready. On
// error the process is gone and the folder is as the process left it.
func (d *Driver) start(ctx context.Context, id string, progress cluster.Progress) (*instance, error) {
	dir := d.dir(id)
	h, err := d.launch(id, dir)
	if err != nil {
		return nil, err
	}
	in, err := d.await(ctx, id, h, progress)
	if err != nil {
		h.kill()
		if killErr := killHosts(dir); killErr != nil {
			d.log.Error("failed cluster host doesn't end", "cluster", id, "err", killErr)
		}
		return nil, err
	}
	return in, nil
}

// launch starts the process.
func (d *Driver) launch(id, dir string) (*host, error) {
	out, err := os.OpenFile(filepath.Join(dir, controlapi.FileLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = out.Close() }() // the process has its own handle
	cmd := exec.Command(d.opt.Program, "run", "--dir", dir,
		"--orphan", d.opt.Orphan.String(), "--memory", quantity(d.opt.Memory), "--etcd-quota", quantity(d.opt.EtcdQuota))
	cmd.Dir = dir
	cmd.Env = environment(dir)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = ownSession()
	if err := startNice(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", d.opt.Program, err)
	}
	exited := make(chan struct{})
	go func() { // ends with the process, which may outlive the Driver
		_ = cmd.Wait() // the state is looked at below
		close(exited)
	}()
	for _, err := range confine(cmd.Process.Pid, limits{memory: d.opt.Memory, etcd: d.opt.EtcdQuota, cgroup: d.opt.Cgroup, id: id}) {
		d.log.Debug("cluster host isn't confined in this way", "cluster", id, "err", err)
	}
	return &host{
		pid: cmd.Process.Pid, exited: exited,
		alive: func() bool {
			select {
			case <-exited:
				return false
			default:
				return true
			}
		},
		exit: func() string { return cmd.ProcessState.String() },
		kill: func() {
			_ = cmd.Process.Kill() // fails when it has ended already
			<-exited
		},
	}, nil
}

// await polls the host until it is ready and makes its instance.
func (d *Driver) await(ctx context.Context, id string, h *host, progress cluster.Progress) (*instance, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.opt.StartTimeout, errTooSlow)
	defer cancel()
	dir := d.dir(id)
	client := controlapi.New(dir)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var told []lab.Stage
	for {
		s, err := client.Status(ctx)
		if err == nil && s.PID == h.pid {
			told = report(told, s.Stages, progress)
			if s.Problem != "" {
				client.Close()
				return nil, &startError{reason: s.Problem, stage: running(told), log: tail(dir)}
			}
			if s.Ready {
				in, err := d.instance(ctx, id, h, client)
				if err != nil {
					client.Close()
					return nil, &startError{reason: err.Error(), stage: controlapi.StageReady, log: tail(dir)}
				}
				return in, nil
			}
		}
		select {
		case <-tick.C:
			if !h.alive() {
				client.Close()
				return nil, &startError{reason: "process ended" + exitOf(h), stage: running(told), log: tail(dir)}
			}
		case <-ctx.Done():
			client.Close()
			return nil, &startError{cause: context.Cause(ctx), reason: "gave up", stage: running(told), log: tail(dir)}
		}
	}
}

var errTooSlow = errors.New("start took too long")

func exitOf(h *host) string {
	if h.exit == nil {
		return ""
	}
	return ": " + h.exit()
}

// report passes on the stages that have begun or ended since the last call.
func report(told, now []lab.Stage, progress cluster.Progress) []lab.Stage {
	for i, s := range now {
		if i >= len(told) || told[i].Name != s.Name || told[i].Done != s.Done {
			if progress != nil {
				progress(s)
			}
		}
	}
	return now
}

// running is the name of the first stage that has begun and not ended.
func running(stages []lab.Stage) string {
	for _, s := range stages {
		if !s.Done {
			return s.Name
		}
	}
	return ""
}

// quantity writes bytes as Kubernetes does.
func quantity(bytes int64) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%dMi", bytes>>20)
	}
	return fmt.Sprint(bytes)
}

// environment is all that the host gets of ours: no proxies, no credentials, no
// configuration of some real cluster.
func environment(dir string) []string {
	out := []string{"HOME=" + dir}
	for _, name := range []string{"PATH", "TZ", "TMPDIR", "GODEBUG", "GOTRACEBACK", "GOMAXPROCS", "GOGC"} {
		if v, ok := os.LookupEnv(name); ok && !strings.ContainsRune(v, 0) {
			out = append(out, name+"="+v)
		}
	}
	return out
}
