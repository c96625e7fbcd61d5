package session

import (
	"context"
	"net/http"

	"kubistro/internal/lab"
	"kubistro/internal/terminal"
)

// Service implements API.
type Service struct{}

// Subscription is one client's view of a session's event stream. Next is for one goroutine.
type Subscription struct{}

// Next waits for the next frame. After Close, or when the session has ended, it returns io.EOF.
func (s *Subscription) Next(ctx context.Context) (lab.Event, error) { panic("being built") }

// Close ends the subscription.
func (s *Subscription) Close() { panic("being built") }

// Open is part of API.
func (s *Service) Open(ctx context.Context, learner lab.LearnerID, course string) (_ lab.Session, created bool, _ error) {
	panic("being built")
}

// List is part of API.
func (s *Service) List(ctx context.Context, learner lab.LearnerID) ([]lab.Session, error) {
	panic("being built")
}

// Get is part of API.
func (s *Service) Get(ctx context.Context, learner lab.LearnerID, id string) (lab.Session, error) {
	panic("being built")
}

// Changes is part of API.
func (s *Service) Changes(ctx context.Context, learner lab.LearnerID, id string) (<-chan struct{}, error) {
	panic("being built")
}

// End is part of API.
func (s *Service) End(ctx context.Context, learner lab.LearnerID, id string) error {
	panic("being built")
}

// Reset is part of API.
func (s *Service) Reset(ctx context.Context, learner lab.LearnerID, id string) (lab.Operation, error) {
	panic("being built")
}

// Operation is part of API.
func (s *Service) Operation(ctx context.Context, learner lab.LearnerID, id, op string) (lab.Operation, error) {
	panic("being built")
}

// Retry is part of API.
func (s *Service) Retry(ctx context.Context, learner lab.LearnerID, id string) error {
	panic("being built")
}

// Wake is part of API.
func (s *Service) Wake(ctx context.Context, learner lab.LearnerID, id string) error {
	panic("being built")
}

// Touch is part of API.
func (s *Service) Touch(ctx context.Context, learner lab.LearnerID, id string) error {
	panic("being built")
}

// Exercises is part of API.
func (s *Service) Exercises(ctx context.Context, learner lab.LearnerID, id, level string) ([]lab.ExerciseState, error) {
	panic("being built")
}

// StartExercise is part of API.
func (s *Service) StartExercise(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error) {
	panic("being built")
}

// Check is part of API.
func (s *Service) Check(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error) {
	panic("being built")
}

// ResetExercise is part of API.
func (s *Service) ResetExercise(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.Operation, error) {
	panic("being built")
}

// Solve is part of API.
func (s *Service) Solve(ctx context.Context, learner lab.LearnerID, id, exercise string, solution int) (lab.Operation, error) {
	panic("being built")
}

// Hint is part of API.
func (s *Service) Hint(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error) {
	panic("being built")
}

// Answer is part of API.
func (s *Service) Answer(ctx context.Context, learner lab.LearnerID, id, exercise, check, text string) (lab.ExerciseState, error) {
	panic("being built")
}

// Events is part of API.
func (s *Service) Events(ctx context.Context, learner lab.LearnerID, id string, after uint64) (*Subscription, error) {
	panic("being built")
}

// Terminal is part of API.
func (s *Service) Terminal(ctx context.Context, learner lab.LearnerID, id, tab string) (*terminal.Terminal, error) {
	panic("being built")
}

// Terminals is part of API.
func (s *Service) Terminals(ctx context.Context, learner lab.LearnerID, id string) ([]string, error) {
	panic("being built")
}

// CloseTerminal is part of API.
func (s *Service) CloseTerminal(ctx context.Context, learner lab.LearnerID, id, tab string) error {
	panic("being built")
}

// EditRequests is part of API.
func (s *Service) EditRequests(ctx context.Context, learner lab.LearnerID, id string) ([]EditRequest, error) {
	panic("being built")
}

// FinishEdit is part of API.
func (s *Service) FinishEdit(ctx context.Context, learner lab.LearnerID, id, request string, saved bool) error {
	panic("being built")
}

// ListFiles is part of API.
func (s *Service) ListFiles(ctx context.Context, learner lab.LearnerID, id string) ([]FileInfo, error) {
	panic("being built")
}

// ReadFile is part of API.
func (s *Service) ReadFile(ctx context.Context, learner lab.LearnerID, id, path string) ([]byte, FileInfo, error) {
	panic("being built")
}

// WriteFile is part of API.
func (s *Service) WriteFile(ctx context.Context, learner lab.LearnerID, id, path string, content []byte) (FileInfo, error) {
	panic("being built")
}

// DeleteFile is part of API.
func (s *Service) DeleteFile(ctx context.Context, learner lab.LearnerID, id, path string) error {
	panic("being built")
}

// Kubeconfig is part of API.
func (s *Service) Kubeconfig(ctx context.Context, learner lab.LearnerID, id, baseURL string) ([]byte, error) {
	panic("being built")
}

// RevokeKubeconfigs is part of API.
func (s *Service) RevokeKubeconfigs(ctx context.Context, learner lab.LearnerID, id string) error {
	panic("being built")
}

// KubernetesProxy is part of API.
func (s *Service) KubernetesProxy() http.Handler { panic("being built") }
