package terminal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// child is a running child process as the server sees it.
type child struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	frames *frameWriter
	broker *broker
	c      Config
	stderr *tailBuffer
	cancel context.CancelFunc
	ctx    context.Context
	wg     sync.WaitGroup
	err    error // how the process ended, for the log
	code   int   // of a script, from its exit frame
	scored bool
	mu     sync.Mutex
	gone   bool          // waited for: its process id may be another's by now
	ended  chan struct{} // closed when it has been waited for
}

// startChild starts a child and says hello to it.
func startChild(ctx context.Context, c Config, h hello) (*child, error) {
	home, err := filepath.Abs(c.Home)
	if err != nil {
		return nil, err
	}
	if home, err = filepath.EvalSymlinks(home); err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	h.Home, h.Token, h.ServerName, h.CAPEM, h.Lang = home, c.Token, c.ServerName, c.CAPEM, c.Lang
	h.CanEdit, h.CanLookup, h.CanOperate = c.Edit != nil, c.LookupHost != nil, c.Cluster != nil
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		inR.Close()
		inW.Close()
		return nil, err
	}
	ch := &child{stdin: inW, stdout: outR, frames: &frameWriter{w: inW}, c: c, stderr: &tailBuffer{}, code: -1, ended: make(chan struct{})}
	ch.ctx, ch.cancel = context.WithCancel(ctx)
	fail := func(err error) (*child, error) {
		ch.cancel()
		for _, f := range []*os.File{inR, inW, outR, outW} {
			f.Close()
		}
		return nil, err
	}
	var childEnd *os.File
	if ch.broker, childEnd, err = newBroker(c); err != nil {
		return fail(err)
	}
	cmd := exec.Command(c.Program, c.Args...)
	cmd.Env = []string{} // nothing of the server's environment
	cmd.Dir = home
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, ch.stderr
	cmd.ExtraFiles = []*os.File{childEnd}
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	ch.cmd = cmd
	err = ch.start()
	childEnd.Close()
	if err != nil {
		ch.broker.close()
		return fail(fmt.Errorf("start %s: %w", filepath.Base(c.Program), err))
	}
	inR.Close()
	outW.Close()
	ch.wg.Add(1)
	go func() { defer ch.wg.Done(); ch.broker.serve(ch.ctx) }()
	inW.SetWriteDeadline(time.Now().Add(10 * time.Second))
	err = ch.frames.json(frameHello, h)
	inW.SetWriteDeadline(time.Time{})
	if err != nil {
		ch.kill()
		ch.follow(ctx, func([]byte) {})
		return nil, errors.Join(err, ch.err)
	}
	return ch, nil
}

// follow passes on what the child says until it has ended, waits for it, and
// returns its exit code; -1 when a script's child ended without a result.
func (ch *child) follow(ctx context.Context, output func([]byte)) int {
	stop := context.AfterFunc(ctx, ch.kill)
	defer stop()
	r := bufio.NewReaderSize(ch.stdout, 64<<10)
	for {
		kind, payload, err := readFrame(r, maxFrame)
		if err != nil {
			break
		}
		switch kind {
		case frameOutput:
			output(payload)
		case frameEdit:
			var req editRequest
			if json.Unmarshal(payload, &req) == nil {
				ch.wg.Add(1)
				go func() { defer ch.wg.Done(); ch.edit(req) }()
			}
		case frameExit:
			ch.scored = json.Unmarshal(payload, &ch.code) == nil
		}
	}
	ch.kill() // when it closed its output without ending
	ch.cancel()
	ch.broker.close()
	ch.stdin.Close()
	ch.stdout.Close()
	ch.mu.Lock()
	ch.gone = true
	ch.mu.Unlock()
	err := ch.cmd.Wait()
	close(ch.ended)
	ch.wg.Wait()
	if ch.scored {
		return ch.code
	}
	ch.err = fmt.Errorf("%w: %s", errors.Join(err, errors.New("child ended")), bytes.TrimSpace(ch.stderr.bytes()))
	return ch.cmd.ProcessState.ExitCode()
}

// edit asks the browser's editor and tells the child when it is done.
func (ch *child) edit(req editRequest) {
	answer := editAnswer{ID: req.ID}
	if ch.c.Edit == nil || !filepath.IsLocal(req.Path) {
		answer.Error = "editing isn't available"
	} else if err := ch.c.Edit(ch.ctx, req.Path); err != nil {
		answer.Error = err.Error()
	}
	ch.frames.json(frameEdited, answer)
}

func (ch *child) input(in string) error {
	ch.stdin.SetWriteDeadline(time.Now().Add(5 * time.Second))
	for len(in) > 0 {
		n := min(len(in), maxFrame)
		if err := ch.frames.write(frameInput, []byte(in[:n])); err != nil {
			return err
		}
		in = in[n:]
	}
	return nil
}

func (ch *child) resize(cols, rows int) {
	ch.stdin.SetWriteDeadline(time.Now().Add(5 * time.Second))
	ch.frames.json(frameSize, [2]int{cols, rows})
}

// kill ends the child and whatever is in its process group at once.
func (ch *child) kill() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if !ch.gone {
		killGroup(ch.cmd)
	}
}

// tailBuffer keeps the end of a child's standard error, for the log.
type tailBuffer struct {
	mu sync.Mutex
	b  []byte
}

var _ io.Writer = (*tailBuffer)(nil)

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > 8<<10 {
		t.b = append([]byte(nil), t.b[len(t.b)-4<<10:]...)
	}
	return len(p), nil
}

func (t *tailBuffer) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.b)
}
