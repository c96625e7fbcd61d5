package checker

import (
	"context"
	"errors"
	"slices"
	"time"

	"kubistro/internal/lab"
)

// runTimeout bounds one run, requests included.
const runTimeout = 10 * time.Second

// Check is a compiled check. It is immutable and safe for concurrent use.
type Check struct {
	spec    Spec
	lets    []let
	expects []expectation
	done    textTemplate
	now     func() time.Time
}

// ID is the check's name, unique within its exercise.
func (c *Check) ID() string { return c.spec.ID }

// Title is what the list of checks shows.
func (c *Check) Title() lab.Text { return c.spec.Title }

// MustHold reports whether the check has to be met again when the exercise is completed.
func (c *Check) MustHold() bool { return c.spec.MustHold }

// Answer is what the learner is asked to type; nil for a check that asks nothing.
func (c *Check) Answer() *AnswerSpec { return c.spec.Answer }

// Uses reports whether the check reads a variable: an object, request, file or let of
// its spec, "record" or "answer".
func (c *Check) Uses(variable string) bool {
	for _, x := range c.expects {
		if slices.Contains(x.uses, variable) || slices.Contains(x.shown, variable) {
			return true
		}
	}
	return false
}

// Watches lists what should make the check run again, sorted: kinds ("Pod",
// "Deployment") for objects, and "record", "answer" and "file:PATH". A check with
// requests names Pod, Service and EndpointSlice.
func (c *Check) Watches() []string {
	var out []string
	for name, o := range c.spec.Objects {
		if c.Uses(name) {
			out = append(out, o.Kind)
			if hasPods(o.Kind) {
				out = append(out, "Pod") // explanations look at them
			}
		}
	}
	for name := range c.spec.Requests {
		if c.Uses(name) {
			out = append(out, "EndpointSlice", "Pod", "Service")
		}
	}
	for name := range c.spec.Guests {
		if c.Uses(name) {
			out = append(out, "EndpointSlice", "Pod", "Service")
		}
	}
	for name := range c.spec.Access {
		if c.Uses(name) {
			out = append(out, recordVariable)
		}
	}
	for name := range c.spec.Stored {
		if c.Uses(name) {
			out = append(out, recordVariable)
		}
	}
	for name, path := range c.spec.Files {
		if c.Uses(name) {
			out = append(out, "file:"+path)
		}
	}
	for _, name := range []string{recordVariable, answerVariable} {
		if c.Uses(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Holds is Run for conditions (of hints and of start states): true only for a met check.
func (c *Check) Holds(ctx context.Context, w World) bool {
	return c.Run(ctx, w).Status == lab.CheckMet
}

// Run looks and says what it found. It never panics, takes at most a few seconds,
// and never reports met when something that it needs could not be read. Regressed is left to the caller.
func (c *Check) Run(ctx context.Context, w World) (result lab.CheckResult) {
	defer func() {
		if r := recover(); r != nil {
			result = c.unknown(textFaulty)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	r := newRun(c, w)
	for i := range c.expects {
		x := &c.expects[i]
		met, err := r.holds(ctx, x)
		var missing *absence
		switch {
		case errors.As(err, &missing):
			return r.notMet(ctx, x, missing)
		case err != nil:
			return c.unknown(unknownText(err))
		case !met:
			return r.notMet(ctx, x, nil)
		}
	}
	result = lab.CheckResult{Check: c.spec.ID, Title: c.spec.Title, Status: lab.CheckMet}
	if c.done != nil {
		result.Message = c.done.fill(ctx, r.vars)
	}
	return result
}

func (c *Check) unknown(message lab.Text) lab.CheckResult {
	return lab.CheckResult{Check: c.spec.ID, Title: c.spec.Title, Status: lab.CheckUnknown, Message: message}
}
