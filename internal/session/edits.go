package session

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kubistro/internal/lab"
)

const maxEdits = 4

// edits are the files that commands in the terminals wait for.
type edits struct {
	l *live

	mu     sync.Mutex
	open   []*edit
	closed bool
}

type edit struct {
	EditRequest
	saved chan bool
}

var errGivenUp = errors.New("edit cancelled")

func newEdits(l *live) *edits { return &edits{l: l} }

// ask tells the page to open the file and waits until the learner is done.
func (e *edits) ask(ctx context.Context, tab, path string) error {
	path = strings.TrimPrefix(path, "/home/learner/")
	if rel, err := filepath.Rel(e.l.home.path, path); err == nil && filepath.IsAbs(path) {
		path = filepath.ToSlash(rel)
	}
	path, err := valid(path)
	if err != nil {
		return err
	}
	v := &edit{EditRequest: EditRequest{ID: newID(), Path: path, Tab: tab, At: time.Now().UTC()}, saved: make(chan bool, 1)}
	e.mu.Lock()
	if e.closed || len(e.open) >= maxEdits {
		e.mu.Unlock()
		return lab.Fail(lab.CodeBusy, "同時開著的編輯太多了。", "Too many files are being edited at once.")
	}
	e.open = append(e.open, v)
	e.mu.Unlock()
	defer e.drop(v)
	state, err := json.Marshal(v.EditRequest)
	if err != nil {
		return err
	}
	e.l.feed.Lab(lab.Event{Verb: "edit", Reason: "open", State: state, Text: &lab.Text{
		ZhTW: "終端機在等你編輯 " + path + "。", En: "The terminal waits for you to edit " + path + ".",
	}})
	defer e.l.feed.Lab(lab.Event{Verb: "edit", Reason: "done", State: state})
	select {
	case saved := <-v.saved:
		if !saved {
			return errGivenUp
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.l.ctx.Done():
		return errGivenUp
	}
}

func (e *edits) drop(v *edit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = slices.DeleteFunc(e.open, func(o *edit) bool { return o == v })
}

func (e *edits) list() []EditRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := []EditRequest{}
	for _, v := range e.open {
		out = append(out, v.EditRequest)
	}
	return out
}

func (e *edits) finish(id string, saved bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.open {
		if v.ID != id {
			continue
		}
		select {
		case v.saved <- saved:
		default:
		}
		return nil
	}
	return lab.Fail(lab.CodeNotFound, "終端機已經不再等這個檔案了。", "The terminal doesn't wait for that file any more.")
}

func (e *edits) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}

// EditRequests is part of API.
func (s *Service) EditRequests(ctx context.Context, learner lab.LearnerID, id string) ([]EditRequest, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	return l.edits.list(), nil
}

// FinishEdit is part of API.
func (s *Service) FinishEdit(ctx context.Context, learner lab.LearnerID, id, request string, saved bool) error {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return err
	}
	l.touch()
	return l.edits.finish(request, saved)
}
