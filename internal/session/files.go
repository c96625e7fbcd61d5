package session

import (
	"context"

	"kubistro/internal/lab"
)

// ListFiles is part of API.
func (s *Service) ListFiles(ctx context.Context, learner lab.LearnerID, id string) ([]FileInfo, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	return l.home.list()
}

// ReadFile is part of API.
func (s *Service) ReadFile(ctx context.Context, learner lab.LearnerID, id, path string) ([]byte, FileInfo, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return nil, FileInfo{}, err
	}
	return l.home.read(path)
}

// WriteFile is part of API.
func (s *Service) WriteFile(ctx context.Context, learner lab.LearnerID, id, path string, content []byte) (FileInfo, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return FileInfo{}, err
	}
	info, err := l.home.write(path, content)
	if err == nil {
		l.touch()
		l.progress.changed("file:" + info.Path)
	}
	return info, err
}

// DeleteFile is part of API.
func (s *Service) DeleteFile(ctx context.Context, learner lab.LearnerID, id, path string) error {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return err
	}
	if err := l.home.remove(path); err != nil {
		return err
	}
	l.touch()
	l.progress.changed("file:" + path)
	return nil
}
