package session

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"kubistro/internal/lab"
	"kubistro/internal/terminal"
)

var tabName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// tabs are a session's terminals.
type tabs struct {
	l *live

	mu      sync.Mutex // held while one starts: two requests for a tab get the same terminal
	cluster string     // whose credentials the terminals have
	names   []string
	open    map[string]*terminal.Terminal
	closed  bool
}

func newTabs(l *live) *tabs { return &tabs{l: l, open: map[string]*terminal.Terminal{}} }

// get returns the tab's terminal and starts it when there is none.
func (t *tabs) get(ctx context.Context, name string) (*terminal.Terminal, error) {
	if !tabName.MatchString(name) {
		return nil, lab.Fail(lab.CodeInvalid, "分頁名稱只能用小寫英文字母、數字和連字號，最多 32 個字。", "A tab's name is up to 32 lower-case letters, digits and hyphens.")
	}
	r, err := t.l.settled(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errNotFound
	}
	if term := t.open[name]; term != nil {
		select {
		case <-term.Done():
			t.forget(name)
		default:
			return term, nil
		}
	}
	if len(t.open) >= maxTerminals {
		return nil, lab.Fail(lab.CodeBusy, "終端機分頁太多了，請先關掉一個。", "There are too many terminal tabs. Close one first.")
	}
	term, err := terminal.Start(t.l.ctx, t.config(ctx, r, name))
	if err != nil {
		return nil, fmt.Errorf("session: terminal: %w", err)
	}
	t.cluster = r.cluster.ID()
	t.open[name] = term
	t.names = append(t.names, name)
	return term, nil
}

// config is that of a terminal of this session; it reaches whatever cluster
// the session has when a command runs.
func (t *tabs) config(ctx context.Context, r *running, name string) terminal.Config {
	access := r.instance.REST()
	return terminal.Config{
		Program: t.l.s.Program, Args: t.l.s.Args, Home: t.l.home.path,
		Token: access.BearerToken, ServerName: access.TLSClientConfig.ServerName, CAPEM: access.TLSClientConfig.CAData,
		DialAPI: t.l.dialAPI, Dial: t.l.dial, Cols: 80, Rows: 24,
		Cluster: t.l.controls, Lang: string(lab.LangOf(ctx)),
		Edit:     func(ctx context.Context, path string) error { return t.l.edits.ask(ctx, name, path) },
		Activity: t.l.touch,
	}
}

// clusterIs ends terminals that have another cluster's credentials.
func (t *tabs) clusterIs(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cluster == id || t.cluster == "" {
		return
	}
	t.endAll()
}

func (t *tabs) endAll() {
	var wg sync.WaitGroup
	for name, term := range t.open {
		wg.Go(func() {
			if err := term.Close(); err != nil {
				t.l.log.Debug("terminal ended with an error", "tab", name, "error", err)
			}
		})
	}
	wg.Wait()
	t.open, t.names, t.cluster = map[string]*terminal.Terminal{}, nil, ""
}

func (t *tabs) forget(name string) {
	delete(t.open, name)
	t.names = slices.DeleteFunc(t.names, func(n string) bool { return n == name })
}

func (t *tabs) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.endAll()
}

// Terminal is part of API.
func (s *Service) Terminal(ctx context.Context, learner lab.LearnerID, id, tab string) (*terminal.Terminal, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	return l.tabs.get(ctx, tab)
}

// Terminals is part of API.
func (s *Service) Terminals(ctx context.Context, learner lab.LearnerID, id string) ([]string, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	l.tabs.mu.Lock()
	defer l.tabs.mu.Unlock()
	return append([]string{}, l.tabs.names...), nil
}

// CloseTerminal is part of API.
func (s *Service) CloseTerminal(ctx context.Context, learner lab.LearnerID, id, tab string) error {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return err
	}
	l.tabs.mu.Lock()
	defer l.tabs.mu.Unlock()
	term := l.tabs.open[tab]
	if term == nil {
		return nil
	}
	l.tabs.forget(tab)
	if err := term.Close(); err != nil {
		l.log.Debug("terminal ended with an error", "tab", tab, "error", err)
	}
	return nil
}

// Exec runs a script in the session's home as if the learner had typed it, and
// returns its output and exit code. It is for verification; pages use Terminal.
func (s *Service) Exec(ctx context.Context, learner lab.LearnerID, id, script string) (output string, code int, err error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return "", 0, err
	}
	r, err := l.settled(ctx)
	if err != nil {
		return "", 0, err
	}
	output, code, err = terminal.Exec(ctx, l.tabs.config(ctx, r, "verify"), script)
	if err != nil {
		return output, code, fmt.Errorf("session: run a script: %w", err)
	}
	return output, code, nil
}
