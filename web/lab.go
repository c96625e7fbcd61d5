package web

import (
	"context"
	"net/http"
	"time"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

// Lab is what the server needs of the live labs. All methods are safe for
// concurrent use. A session of another learner is a lab.Error with CodeNotFound.
type Lab interface {
	Sessions
	Upkeep
	Exercises
	Repairs
	Terminals
	Edits
	Files
	Kubeconfigs
	Kitchens
	Loops
	Questions
	Storage
	// Events subscribes to the frames after number after; a snapshot comes first
	// when after is 0 or too old.
	Events(ctx context.Context, learner lab.LearnerID, id string, after uint64) (Subscription, error)
}

// Sessions is the life of sessions.
type Sessions interface {
	Open(ctx context.Context, learner lab.LearnerID, courseID string) (_ lab.Session, created bool, _ error)
	List(ctx context.Context, learner lab.LearnerID) ([]lab.Session, error)
	Get(ctx context.Context, learner lab.LearnerID, id string) (lab.Session, error)
	// Changes returns a channel that is closed when what Get returns has changed.
	Changes(ctx context.Context, learner lab.LearnerID, id string) (<-chan struct{}, error)
	End(ctx context.Context, learner lab.LearnerID, id string) error
}

// Upkeep is what is done to a session's cluster as a whole.
type Upkeep interface {
	Reset(ctx context.Context, learner lab.LearnerID, id string) (lab.Operation, error)
	Operation(ctx context.Context, learner lab.LearnerID, id, op string) (lab.Operation, error)
	Retry(ctx context.Context, learner lab.LearnerID, id string) error
	Wake(ctx context.Context, learner lab.LearnerID, id string) error
	Touch(ctx context.Context, learner lab.LearnerID, id string) error
}

// Exercises is the work on exercises.
type Exercises interface {
	Exercises(ctx context.Context, learner lab.LearnerID, id, level string) ([]lab.ExerciseState, error)
	StartExercise(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error)
	Check(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error)
	Hint(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error)
	Answer(ctx context.Context, learner lab.LearnerID, id, exercise, check, text string) (lab.ExerciseState, error)
}

// Questions is what a quiz asks of the learner's cluster.
type Questions interface {
	// Ask judges an answer to a question about the cluster of the learner's running session of a
	// course; CodeConflict without one.
	Ask(ctx context.Context, learner lab.LearnerID, courseID string, q *course.Question, answer string) (lab.CheckResult, error)
}

// Repairs is what the lab does in place of the learner.
type Repairs interface {
	ResetExercise(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.Operation, error)
	Solve(ctx context.Context, learner lab.LearnerID, id, exercise string, solution int) (lab.Operation, error)
}

// Terminals is the terminal tabs of a session.
type Terminals interface {
	// Terminal starts the tab when there is none; it waits until the cluster is ready.
	Terminal(ctx context.Context, learner lab.LearnerID, id, tab string) (Terminal, error)
	Terminals(ctx context.Context, learner lab.LearnerID, id string) ([]string, error)
	CloseTerminal(ctx context.Context, learner lab.LearnerID, id, tab string) error
}

// Edits is the files that a command in the terminal waits for.
type Edits interface {
	EditRequests(ctx context.Context, learner lab.LearnerID, id string) ([]EditRequest, error)
	FinishEdit(ctx context.Context, learner lab.LearnerID, id, request string, saved bool) error
}

// Files is the learner's home folder.
type Files interface {
	ListFiles(ctx context.Context, learner lab.LearnerID, id string) ([]File, error)
	ReadFile(ctx context.Context, learner lab.LearnerID, id, path string) ([]byte, File, error)
	WriteFile(ctx context.Context, learner lab.LearnerID, id, path string, content []byte) (File, error)
	DeleteFile(ctx context.Context, learner lab.LearnerID, id, path string) error
}

// Kubeconfigs lets an outside kubectl in.
type Kubeconfigs interface {
	Kubeconfig(ctx context.Context, learner lab.LearnerID, id, baseURL string) ([]byte, error)
	RevokeKubeconfigs(ctx context.Context, learner lab.LearnerID, id string) error
	// KubernetesProxy serves /k8s/{id}/..., bearer tokens only.
	KubernetesProxy() http.Handler
}

// Kitchens is what can be done to a cluster's nodes from outside.
type Kitchens interface {
	Kitchens(ctx context.Context, learner lab.LearnerID, id string) ([]lab.KitchenState, error)
	AddKitchen(ctx context.Context, learner lab.LearnerID, id string, k lab.Kitchen) error
	RemoveKitchen(ctx context.Context, learner lab.LearnerID, id, name string) error
	SetKitchen(ctx context.Context, learner lab.LearnerID, id, name string, c lab.KitchenChange) error
}

// Loops is what can be done to a cluster's control loops and their clock.
type Loops interface {
	Loops(ctx context.Context, learner lab.LearnerID, id string) ([]lab.ControlLoop, error)
	SetLoop(ctx context.Context, learner lab.LearnerID, id, name string, home bool) error
	ClusterClock(ctx context.Context, learner lab.LearnerID, id string) (lab.Clock, error)
	SetClusterClock(ctx context.Context, learner lab.LearnerID, id string, speed int) error
}

// Storage is how a cluster is stored.
type Storage interface {
	EtcdKeys(ctx context.Context, learner lab.LearnerID, id, prefix, after string, limit int) (lab.EtcdKeys, error)
	EtcdValue(ctx context.Context, learner lab.LearnerID, id, key string) (lab.EtcdValue, error)
	Encryption(ctx context.Context, learner lab.LearnerID, id string) (lab.EncryptionState, error)
	SetEncryption(ctx context.Context, learner lab.LearnerID, id string, k lab.EncryptionChange) error
}

// Subscription is one client's view of an event stream; for one goroutine.
type Subscription interface {
	// Next waits for the next frame; io.EOF when the session has ended.
	Next(ctx context.Context) (lab.Event, error)
	Close()
}

// Terminal is one tab.
type Terminal interface {
	Input(in string) error
	Resize(cols, rows int)
	// Output returns the blocks after number n and a channel that is closed when
	// there are more; reset: clear the screen first, these are all that is kept.
	Output(n uint64) (blocks []Block, reset bool, more <-chan struct{})
	Ack(n uint64)
	Done() <-chan struct{}
}

// Block is one numbered piece of terminal output.
type Block struct {
	N   uint64 `json:"n"`
	Out string `json:"out"`
}

// File describes a file or folder of the home.
type File struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Folder   bool      `json:"folder,omitempty"`
	Modified time.Time `json:"modified"`
}

// EditRequest is a file that a command in the terminal waits for the learner to edit.
type EditRequest struct {
	ID   string    `json:"id"`
	Path string    `json:"path"`
	Tab  string    `json:"tab"`
	At   time.Time `json:"at"`
}
