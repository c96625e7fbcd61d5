package webtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"kubistro/internal/lab"
	"kubistro/web"
)

// Terminal echoes what is typed and answers a few commands; numbering is as in the real one.
type Terminal struct {
	mu     sync.Mutex
	blocks []web.Block
	more   chan struct{}
	done   chan struct{}
	line   string
	Lines  []string // entered
	Acked  uint64
	Size   [2]int
}

const prompt = "\x1b[1;32mlearner\x1b[0m:\x1b[1;34m~\x1b[0m$ "

// NewTerminal makes a terminal that shows its prompt.
func NewTerminal() *Terminal {
	t := &Terminal{more: make(chan struct{}), done: make(chan struct{})}
	t.Print(prompt)
	return t
}

// Print adds a block of output.
func (t *Terminal) Print(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print(s)
}

func (t *Terminal) print(s string) {
	t.blocks = append(t.blocks, web.Block{N: uint64(len(t.blocks)) + 1, Out: s})
	close(t.more)
	t.more = make(chan struct{})
}

// Input is part of web.Terminal.
func (t *Terminal) Input(in string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if strings.Contains(in, "\x00") {
		return lab.Fail(lab.CodeInvalid, "不能輸入這個字元。", "This character can't be typed.")
	}
	for _, c := range in {
		if c != '\r' {
			t.line += string(c)
			t.print(string(c))
			continue
		}
		t.Lines = append(t.Lines, t.line)
		t.print("\r\n" + answer(t.line) + prompt)
		t.line = ""
	}
	return nil
}

func answer(line string) string {
	if line == "kubectl get pods" {
		return "NAME                    READY   STATUS    RESTARTS   AGE\r\ngrill-5d7c9f8b6-x2k9q   1/1     Running   0          12s\r\ngrill-5d7c9f8b6-b7m4z   1/1     Running   0          12s\r\n"
	}
	var n int
	if _, err := fmt.Sscanf(line, "seq %d", &n); err == nil {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d\r\n", i+1)
		}
		return b.String()
	}
	if text, ok := strings.CutPrefix(line, "echo "); ok {
		return text + "\r\n"
	}
	return ""
}

// Entered returns the lines that were entered.
func (t *Terminal) Entered() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.Lines)
}

// Resize is part of web.Terminal.
func (t *Terminal) Resize(cols, rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Size = [2]int{cols, rows}
}

// Output is part of web.Terminal.
func (t *Terminal) Output(n uint64) ([]web.Block, bool, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > uint64(len(t.blocks)) {
		return slices.Clone(t.blocks), true, t.more
	}
	return slices.Clone(t.blocks[n:]), false, t.more
}

// Ack is part of web.Terminal.
func (t *Terminal) Ack(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Acked = max(t.Acked, n)
}

// Connected reports whether a browser has told its size.
func (t *Terminal) Connected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Size != [2]int{}
}

// AckedTo tells the newest acknowledged block.
func (t *Terminal) AckedTo() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Acked
}

// Done is part of web.Terminal.
func (t *Terminal) Done() <-chan struct{} { return t.done }

// Terminal is part of web.Lab; it waits until the session is ready.
func (l *Lab) Terminal(ctx context.Context, learner lab.LearnerID, id, tab string) (web.Terminal, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return nil, err
	}
	for {
		s.mu.Lock()
		state, changed := s.v.State, s.changed
		s.mu.Unlock()
		if state == lab.StateReady {
			return s.Tab(tab), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Tab returns a session's terminal and makes it when there is none.
func (s *Session) Tab(tab string) *Terminal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminals[tab] == nil {
		s.terminals[tab] = NewTerminal()
	}
	return s.terminals[tab]
}

// Terminals is part of web.Lab.
func (l *Lab) Terminals(_ context.Context, learner lab.LearnerID, id string) ([]string, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for name := range s.terminals {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

// CloseTerminal is part of web.Lab.
func (l *Lab) CloseTerminal(_ context.Context, learner lab.LearnerID, id, tab string) error {
	s, err := l.find(learner, id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.terminals[tab]
	if t == nil {
		return lab.Fail(lab.CodeNotFound, "沒有這個終端機。", "There is no such terminal.")
	}
	delete(s.terminals, tab)
	close(t.done)
	return nil
}
