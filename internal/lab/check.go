package lab

import "time"

// CheckStatus is one of the three results that a check can have.
type CheckStatus string

// A check is met, not met, or could not be looked at. Only a NotFound from the
// API counts as absence; any other failure is CheckUnknown.
const (
	CheckMet     CheckStatus = "met"
	CheckNotMet  CheckStatus = "not_met"
	CheckUnknown CheckStatus = "unknown"
)

// CheckResult is what a check found.
type CheckResult struct {
	Check    string      `json:"check"` // the check's id
	Title    Text        `json:"title"`
	Status   CheckStatus `json:"status"`
	Message  Text        `json:"message"`
	Object   string      `json:"object,omitempty"`   // for instance "deployment/grill"
	Field    string      `json:"field,omitempty"`    // for instance "spec.replicas"
	Expected string      `json:"expected,omitempty"` // in the field's own notation
	Found    string      `json:"found,omitempty"`
	// Regressed: it was met earlier and isn't any more.
	Regressed bool `json:"regressed,omitempty"`
}

// ExerciseState is an exercise as a learner has it now.
type ExerciseState struct {
	Course   string        `json:"course"`
	Exercise string        `json:"exercise"`
	Started  bool          `json:"started"` // its start state has been set up
	Done     bool          `json:"done"`    // all checks were met at once; stays true
	DoneAt   time.Time     `json:"doneAt,omitzero"`
	Checks   []CheckResult `json:"checks"`
	// Waits are the exercises that it goes on from and whose end the cluster isn't at: it can be
	// started when they are done, or by a reset, which catches up.
	Waits []string `json:"waits,omitempty"`
	// Hints is how many hints have been opened.
	Hints int `json:"hints"`
	// Opened are the places of the opened hints in the author's list, in the order of opening.
	Opened []int `json:"opened,omitempty"`
	// Answers is what the learner typed, by check.
	Answers map[string]string `json:"answers,omitempty"`
	// Solved: "show me" was used.
	Solved bool `json:"solved,omitempty"`
}
