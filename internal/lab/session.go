package lab

import "time"

// LearnerID names a learner: 128 random bits in lower-case base32, kept in a cookie.
type LearnerID string

// State is where a session's cluster is in its life.
type State string

// The states of a session.
const (
	StateQueued       State = "queued"       // waits for a free place
	StateProvisioning State = "provisioning" // starts, wakes or restarts; Stage says how far
	StateReady        State = "ready"
	StateAsleep       State = "asleep" // stopped with its state kept; the next visit wakes it
	StateFailed       State = "failed" // Problem says why; can be tried again
	StateEnded        State = "ended"
)

// Session is one learner's work on one course, with a cluster of its own.
type Session struct {
	ID           string    `json:"id"`
	Learner      LearnerID `json:"-"`
	Course       string    `json:"course"`
	State        State     `json:"state"`
	Status       Status    `json:"status"`
	Driver       string    `json:"driver"`
	Capabilities []string  `json:"capabilities"`
	Created      time.Time `json:"created"`
}

// Status is how a cluster's start (or wake, or restart) goes.
type Status struct {
	State State `json:"state"`
	// Why tells starts apart: "create", "wake", "restart" (after a crash), "reset".
	Why     string    `json:"why,omitempty"`
	Since   time.Time `json:"since"`           // when State was entered
	Stage   string    `json:"stage,omitempty"` // name of the running stage
	Stages  []Stage   `json:"stages,omitempty"`
	Problem *Text     `json:"problem,omitempty"` // for StateFailed: the reason, for people
	// SleepsAt is when an idle cluster will be put to sleep; zero when it won't.
	SleepsAt time.Time `json:"sleepsAt,omitzero"`
	// Queue is the place in the queue, from 1, for StateQueued.
	Queue int `json:"queue,omitempty"`
}

// Stage is one step of a cluster's start.
type Stage struct {
	Name    string    `json:"name"` // "etcd", "apiserver", "controllers", "scheduler", "kitchens", "ready"
	Started time.Time `json:"started"`
	// Millis is how long the stage took, or has taken so far while Done is false.
	Millis int64 `json:"millis"`
	Done   bool  `json:"done"`
}

// Operation is a long piece of work that was asked for through the API.
type Operation struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"` // "reset", "reset_exercise", "solve"
	Done    bool      `json:"done"`
	Started time.Time `json:"started"`
	Millis  int64     `json:"millis"`
	// CatchUpMillis is the part of it that went into solutions of exercises before.
	CatchUpMillis int64 `json:"catchUpMillis,omitempty"`
	Problem       *Text `json:"problem,omitempty"` // set when it failed
}
