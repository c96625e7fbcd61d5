// Package session runs live labs: one learner's cluster, terminals, files, event
// record and exercises together, from the first visit to their end. It never
// serves pages and never starts cluster processes itself; it tells people what
// went wrong through lab.Error only.
package session

import (
	"context"
	"net/http"
	"time"

	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/terminal"
)

// API is everything that the web asks of a Service. All methods are safe for concurrent
// use. A session that isn't there or belongs to another learner is an error with
// lab.CodeNotFound; every error that a method returns has a lab.Error in its chain or
// counts as lab.CodeInternal.
type API interface {
	Sessions
	Exercises
	Files
	Live
	Kubeconfigs
	Kitchens
	Loops
	// Ask judges a typed answer to a question about the cluster of the learner's running session of a
	// course. CodeConflict without a session, CodeUnavailable while its cluster can't be read.
	Ask(ctx context.Context, learner lab.LearnerID, courseID string, q *course.Question, answer string) (lab.CheckResult, error)
	Storage
}

// Kitchens is what can be done to a cluster's nodes from outside. The methods wake the
// cluster; what they change is told in the record. CodeUnsupported where the driver can't.
type Kitchens interface {
	Kitchens(ctx context.Context, learner lab.LearnerID, id string) ([]lab.KitchenState, error)
	// AddKitchen returns when the new node is Ready.
	AddKitchen(ctx context.Context, learner lab.LearnerID, id string, k lab.Kitchen) error
	RemoveKitchen(ctx context.Context, learner lab.LearnerID, id, name string) error
	SetKitchen(ctx context.Context, learner lab.LearnerID, id, name string, c lab.KitchenChange) error
}

// Loops is what can be done to a cluster's control loops and their clock, as Kitchens.
type Loops interface {
	Loops(ctx context.Context, learner lab.LearnerID, id string) ([]lab.ControlLoop, error)
	SetLoop(ctx context.Context, learner lab.LearnerID, id, name string, home bool) error
	ClusterClock(ctx context.Context, learner lab.LearnerID, id string) (lab.Clock, error)
	SetClusterClock(ctx context.Context, learner lab.LearnerID, id string, speed int) error
}

// Storage is how a cluster is stored: etcd's raw bytes and encryption at rest, as Kitchens.
type Storage interface {
	// EtcdKeys lists keys that begin with prefix and come after a key, at most limit of them
	// (0: lab.EtcdKeysMax).
	EtcdKeys(ctx context.Context, learner lab.LearnerID, id, prefix, after string, limit int) (lab.EtcdKeys, error)
	EtcdValue(ctx context.Context, learner lab.LearnerID, id, key string) (lab.EtcdValue, error)
	Encryption(ctx context.Context, learner lab.LearnerID, id string) (lab.EncryptionState, error)
	SetEncryption(ctx context.Context, learner lab.LearnerID, id string, k lab.EncryptionChange) error
}

// Sessions is the life of sessions.
type Sessions interface {
	// Open returns the learner's session of a course, and makes it when there is
	// none (created). It returns at once: the cluster may still be starting.
	Open(ctx context.Context, learner lab.LearnerID, course string) (_ lab.Session, created bool, _ error)
	// List returns the learner's sessions that haven't ended, oldest first.
	List(ctx context.Context, learner lab.LearnerID) ([]lab.Session, error)
	Get(ctx context.Context, learner lab.LearnerID, id string) (lab.Session, error)
	// Changes returns a channel that is closed when what Get returns has changed;
	// pattern: take the channel, Get, wait.
	Changes(ctx context.Context, learner lab.LearnerID, id string) (<-chan struct{}, error)
	// End gives the cluster and the files back; progress in the course stays.
	End(ctx context.Context, learner lab.LearnerID, id string) error
	// Reset replaces the cluster by a fresh one; files and progress stay. A second
	// call while one runs returns the running operation.
	Reset(ctx context.Context, learner lab.LearnerID, id string) (lab.Operation, error)
	// Operation tells how a piece of work goes that Reset, ResetExercise or Solve started.
	Operation(ctx context.Context, learner lab.LearnerID, id, op string) (lab.Operation, error)
	// Retry starts a failed cluster again; Wake one that is asleep. Both return at once.
	Retry(ctx context.Context, learner lab.LearnerID, id string) error
	Wake(ctx context.Context, learner lab.LearnerID, id string) error
	// Touch says that the learner is active (reading with the tab visible, saving in the editor).
	Touch(ctx context.Context, learner lab.LearnerID, id string) error
}

// Exercises is the work on a course's exercises.
type Exercises interface {
	// Exercises returns the exercises of a level ("" for all levels) with the newest result of each check.
	// It never waits for the cluster: without one the checks are unknown.
	Exercises(ctx context.Context, learner lab.LearnerID, id, level string) ([]lab.ExerciseState, error)
	// StartExercise sets the start state up if it hasn't been yet; when it has, it changes nothing.
	StartExercise(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error)
	// Check looks at every check now, with live reads; it starts the exercise if it hasn't been.
	Check(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error)
	// ResetExercise brings the exercise's start state back.
	ResetExercise(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.Operation, error)
	// Solve types the solution (index from 0) into the terminal tab "main".
	Solve(ctx context.Context, learner lab.LearnerID, id, exercise string, solution int) (lab.Operation, error)
	// Hint opens the next hint; ExerciseState.Hints says how many are open.
	Hint(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error)
	// Answer stores what the learner typed for a check that asks for an answer.
	Answer(ctx context.Context, learner lab.LearnerID, id, exercise, check, text string) (lab.ExerciseState, error)
}

// Live is what is connected while the page is open.
type Live interface {
	// Events subscribes to the frames after number after. The first frame is a
	// snapshot when after is 0 or too old, or newer than the record.
	Events(ctx context.Context, learner lab.LearnerID, id string, after uint64) (*Subscription, error)
	// Terminal returns the tab's terminal and starts it when there is none; it waits for
	// the cluster to be ready. A tab's name is 1 to 32 of a-z, 0-9 and "-".
	Terminal(ctx context.Context, learner lab.LearnerID, id, tab string) (*terminal.Terminal, error)
	// Terminals names the open tabs, oldest first.
	Terminals(ctx context.Context, learner lab.LearnerID, id string) ([]string, error)
	CloseTerminal(ctx context.Context, learner lab.LearnerID, id, tab string) error
	// EditRequests lists the files that kubectl edit waits for; a new one also is a lab event of
	// verb "edit" with the request in State.
	EditRequests(ctx context.Context, learner lab.LearnerID, id string) ([]EditRequest, error)
	// FinishEdit ends the waiting: kubectl goes on with the file as it is (saved), or gives up.
	FinishEdit(ctx context.Context, learner lab.LearnerID, id, request string, saved bool) error
}

// EditRequest is a file that a command in the terminal waits for the learner to edit.
type EditRequest struct {
	ID   string    `json:"id"`
	Path string    `json:"path"` // in the home, for ReadFile and WriteFile
	Tab  string    `json:"tab"`
	At   time.Time `json:"at"`
}

// Files is the learner's home folder. Paths are slash-separated and relative to it.
type Files interface {
	// ListFiles returns every file and folder, sorted by path.
	ListFiles(ctx context.Context, learner lab.LearnerID, id string) ([]FileInfo, error)
	ReadFile(ctx context.Context, learner lab.LearnerID, id, path string) ([]byte, FileInfo, error)
	// WriteFile replaces a file, making its folders. Over quota: lab.CodeTooLarge.
	WriteFile(ctx context.Context, learner lab.LearnerID, id, path string, content []byte) (FileInfo, error)
	// DeleteFile removes a file or an empty folder.
	DeleteFile(ctx context.Context, learner lab.LearnerID, id, path string) error
}

// FileInfo describes a file of the home.
type FileInfo struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Folder   bool      `json:"folder,omitempty"`
	Modified time.Time `json:"modified"`
}

// Kubeconfigs lets an outside kubectl in.
type Kubeconfigs interface {
	// Kubeconfig makes a token and a kubeconfig file whose server is baseURL/k8s/ID
	// (baseURL like https://kubistro.example.org, without a final slash).
	Kubeconfig(ctx context.Context, learner lab.LearnerID, id, baseURL string) ([]byte, error)
	// RevokeKubeconfigs makes all tokens of the session invalid.
	RevokeKubeconfigs(ctx context.Context, learner lab.LearnerID, id string) error
	// KubernetesProxy serves /k8s/{id}/... (mounted with that prefix in place): it takes a
	// bearer token and nothing else, and passes upgrades through.
	KubernetesProxy() http.Handler
}

var _ API = (*Service)(nil)
