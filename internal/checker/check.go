package checker

import (
	"context"

	"kubistro/internal/lab"
)

// Check is a compiled check. It is immutable and safe for concurrent use.
type Check struct{ spec Spec }

// Compile checks a spec and prepares it to run. Its error is a *Fault.
func Compile(spec Spec) (*Check, error) { panic("being built") }

// ID is the check's name, unique within its exercise.
func (c *Check) ID() string { return c.spec.ID }

// Title is what the list of checks shows.
func (c *Check) Title() lab.Text { return c.spec.Title }

// MustHold reports whether the check has to be met again when the exercise is completed.
func (c *Check) MustHold() bool { return c.spec.MustHold }

// Answer is what the learner is asked to type; nil for a check that asks nothing.
func (c *Check) Answer() *AnswerSpec { return c.spec.Answer }

// Watches lists what should make the check run again, sorted: kinds ("Pod",
// "Deployment") for objects, and "record", "answer" and "file:PATH". A check with
// requests names Pod, Service and EndpointSlice.
func (c *Check) Watches() []string { panic("being built") }

// Run looks and says what it found. It never panics, takes at most a few seconds,
// and never reports met when something that it needs could not be read. Regressed is left to the caller.
func (c *Check) Run(ctx context.Context, w World) lab.CheckResult { panic("being built") }

// Holds is Run for conditions (of hints and of start states): true only for a met check.
func (c *Check) Holds(ctx context.Context, w World) bool {
	return c.Run(ctx, w).Status == lab.CheckMet
}
