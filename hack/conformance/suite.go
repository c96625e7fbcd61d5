package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Files of the output folder.
const (
	logFile    = "e2e.log"
	reportFile = "report.json"
)

// runSuite runs the chosen tests. That some fail is no error.
func runSuite(ctx context.Context, o options, c *cluster) error {
	log, err := os.Create(filepath.Join(o.out, logFile))
	if err != nil {
		return err
	}
	defer log.Close()
	os.Remove(filepath.Join(o.out, reportFile)) // a run that breaks off must not leave an older one's
	args := []string{
		"run", "--no-color", "--procs=" + strconv.Itoa(o.procs), "--timeout=" + o.timeout.String(), "--focus=" + o.focus,
		"--output-dir=" + o.out, "--json-report=" + reportFile,
	}
	if o.skip != "" {
		args = append(args, "--skip="+o.skip)
	}
	args = append(args, o.suite, "--",
		"--kubeconfig="+c.kubeconfig, "--kubectl-path="+o.kubectl, "--provider=skeleton",
		"--e2e-output-dir="+c.dir, "--disable-log-dump", "--dump-logs-on-failure=false")
	cmd := exec.CommandContext(ctx, o.ginkgo, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "KUBECONFIG=") // kubectl's caches go with the cluster
	p := &progress{}
	out := &both{log: log, progress: p}
	cmd.Stdout, cmd.Stderr = out, out
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() { p.show(done) })
	err = cmd.Run()
	close(done)
	shown.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return nil // the report says what failed
	}
	return err
}

// both writes to the log and counts.
type both struct {
	log      *os.File
	progress *progress
}

func (b *both) Write(p []byte) (int, error) {
	b.progress.read(p)
	return b.log.Write(p)
}

// progress counts the marks that ginkgo writes for a test that has ended: a
// bullet, with the outcome behind it if it isn't good.
type progress struct {
	mu           sync.Mutex
	tail         []byte // what was written after the last bullet
	open         bool   // the last bullet isn't counted yet
	good, failed int
}

const bullet = "•"

func (p *progress) read(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tail = append(p.tail, b...)
	for {
		if p.open {
			if len(p.tail) < 3 {
				return
			}
			if tail := string(p.tail[:3]); tail == " [F" || tail == " [P" || tail == " [T" { // FAILED, PANICKED, TIMEDOUT
				p.failed++
			} else {
				p.good++
			}
			p.open = false
		}
		k := bytes.Index(p.tail, []byte(bullet))
		if k < 0 {
			p.tail = append(p.tail[:0], p.tail[max(0, len(p.tail)-len(bullet)+1):]...)
			return
		}
		p.tail, p.open = append(p.tail[:0], p.tail[k+len(bullet):]...), true
	}
}

// show prints how far the run is once a minute until done.
func (p *progress) show(done <-chan struct{}) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			p.mu.Lock()
			fmt.Fprintf(os.Stderr, "so far %d passed, %d failed\n", p.good, p.failed)
			p.mu.Unlock()
		}
	}
}
