package webtest

import (
	"context"
	"slices"
	"strings"
	"time"

	"kubistro/internal/lab"
	"kubistro/web"
)

// EditRequests is part of web.Lab.
func (l *Lab) EditRequests(_ context.Context, learner lab.LearnerID, id string) ([]web.EditRequest, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.edits), nil
}

// AskEdit makes a request to edit a file, as kubectl edit does.
func (s *Session) AskEdit(path string) {
	s.mu.Lock()
	s.edits = append(s.edits, web.EditRequest{ID: "e1", Path: path, Tab: "main", At: time.Now()})
	s.mu.Unlock()
	s.Add(lab.Event{Type: lab.EventLab, Actor: "lab", Verb: "edit"})
}

// FinishEdit is part of web.Lab.
func (l *Lab) FinishEdit(_ context.Context, learner lab.LearnerID, id, request string, saved bool) error {
	s, err := l.find(learner, id)
	if err != nil {
		return err
	}
	l.note("edit %s %v", request, saved)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edits = slices.DeleteFunc(s.edits, func(e web.EditRequest) bool { return e.ID == request })
	return nil
}

// ListFiles is part of web.Lab.
func (l *Lab) ListFiles(_ context.Context, learner lab.LearnerID, id string) ([]web.File, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []web.File
	for _, f := range s.files {
		out = append(out, f.info)
	}
	slices.SortFunc(out, func(a, b web.File) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

var errNoFile = lab.Fail(lab.CodeNotFound, "沒有這個檔案。", "There is no such file.")

// ReadFile is part of web.Lab.
func (l *Lab) ReadFile(_ context.Context, learner lab.LearnerID, id, path string) ([]byte, web.File, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return nil, web.File{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[path]
	if !ok {
		return nil, web.File{}, errNoFile
	}
	return f.body, f.info, nil
}

// WriteFile is part of web.Lab.
func (l *Lab) WriteFile(_ context.Context, learner lab.LearnerID, id, path string, content []byte) (web.File, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return web.File{}, err
	}
	return s.PutFile(path, string(content)), nil
}

// PutFile writes a file as a command in the terminal does.
func (s *Session) PutFile(path, content string) web.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	info := web.File{Path: path, Size: int64(len(content)), Modified: time.Unix(1_800_000_000, s.clock)}
	s.files[path] = fileOf{[]byte(content), info}
	return info
}

// DeleteFile is part of web.Lab.
func (l *Lab) DeleteFile(_ context.Context, learner lab.LearnerID, id, path string) error {
	s, err := l.find(learner, id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.files[path]; !ok {
		return errNoFile
	}
	delete(s.files, path)
	return nil
}
