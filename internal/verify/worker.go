package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

const (
	defaultSettle = 20 * time.Second
	lookEvery     = 200 * time.Millisecond
	quietFor      = 2 * time.Second // without news from the cluster, or of the same result, before "not met" is believed
	scriptTab     = "verify"
	scriptLimit   = 3 * time.Minute
	startLimit    = 15 * time.Minute // of a kind cluster on a busy machine
	outputKept    = 2000
)

// worker is one learner who tries everything.
type worker struct {
	Config
	learner  lab.LearnerID
	sessions map[string]string // by course
	dirty    map[string]bool   // by course: a lesson has been walked through on the session's cluster
	tried    bool              // an exercise, on whatever cluster
}

func (w *worker) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, id := range w.sessions {
		if err := w.Lab.End(ctx, w.learner, id); err != nil {
			w.Log.Warn("session not ended", "session", id, "error", err)
		}
	}
}

func (w *worker) session(ctx context.Context, courseID string) (string, error) {
	if id := w.sessions[courseID]; id != "" {
		return id, nil
	}
	s, _, err := w.Lab.Open(ctx, w.learner, courseID)
	if err != nil {
		return "", fmt.Errorf("verify: open a session: %w", err)
	}
	w.sessions[courseID] = s.ID
	return s.ID, w.untilReady(ctx, s.ID)
}

// lacks names the capabilities that the driver hasn't; empty when it has all.
func (w *worker) lacks(needs []string) string {
	var out []string
	for _, n := range needs {
		if !slices.Contains(w.Capabilities, n) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return strings.Join(out, ", ")
}

// leave ends the worker's session of a course, so that the next one has a fresh cluster.
func (w *worker) leave(ctx context.Context, courseID string) error {
	id := w.sessions[courseID]
	if id == "" {
		return nil
	}
	delete(w.sessions, courseID)
	if err := w.Lab.End(ctx, w.learner, id); err != nil {
		return fmt.Errorf("verify: end a session: %w", err)
	}
	return nil
}

// untilReady waits for the session's cluster: how long that takes isn't the exercise's fault.
func (w *worker) untilReady(ctx context.Context, id string) error {
	for limit := time.Now().Add(startLimit); ; {
		s, err := w.Lab.Get(ctx, w.learner, id)
		switch {
		case err != nil:
			return fmt.Errorf("verify: session: %w", err)
		case s.State == lab.StateReady:
			return nil
		case s.State == lab.StateFailed && s.Status.Problem != nil:
			return fmt.Errorf("verify: the cluster didn't start: %s", s.Status.Problem.En)
		case s.State == lab.StateFailed || time.Now().After(limit):
			return fmt.Errorf("verify: the cluster isn't ready but %s (stage %s)", s.State, s.Status.Stage)
		}
		if !wait(ctx, lookEvery) {
			return ctx.Err()
		}
	}
}

// exercise verifies one exercise from its start state to its last wrong attempt.
func (w *worker) exercise(ctx context.Context, e *course.Exercise) ([]Step, error) {
	needs := e.Level.Needs
	for _, n := range e.Before() {
		needs = slices.Concat(needs, n.Level.Needs)
	}
	if lacks := w.lacks(needs); lacks != "" {
		s := Step{Course: e.Level.Course.ID, Level: e.Level.ID, Exercise: e.ID, Letter: e.Letter, Kind: "start", Skipped: "the driver lacks " + lacks}
		w.Report(s)
		return []Step{s}, nil
	}
	id, err := w.session(ctx, e.Level.Course.ID)
	if err != nil {
		return nil, err
	}
	a := &attempt{worker: w, id: id, e: e}
	if course := e.Level.Course.ID; len(e.Needs) > 0 || w.dirty[course] {
		delete(w.dirty, course)
		if err := a.reset(ctx); err != nil {
			return a.steps, err
		}
	}
	began := time.Now()
	state, err := w.Lab.Check(ctx, w.learner, id, e.ID)
	if err != nil {
		a.step("start", "", time.Since(began), "the start state can't be set up: "+text(err), "")
		return a.steps, ctx.Err()
	}
	a.step("start", "", time.Since(began), tooEarly(state), "")
	if len(e.Solutions) == 0 {
		a.step("solution", "", 0, "there is no solution", "")
	}
	solutions, wrongs := e.Solutions, e.Wrong
	if w.Brief {
		solutions, wrongs = one(solutions, w.Seed), one(wrongs, w.Seed)
	}
	for _, v := range solutions {
		if err := a.right(ctx, v); err != nil {
			return a.steps, err
		}
	}
	for _, v := range wrongs {
		if err := a.wrong(ctx, v); err != nil {
			return a.steps, err
		}
	}
	return a.steps, nil
}

// one is the element of a list that a seed chooses; none of an empty list.
func one[T any](list []T, seed uint64) []T {
	if len(list) == 0 {
		return nil
	}
	i := seed % uint64(len(list))
	return list[i : i+1]
}

// attempt is the work on one exercise.
type attempt struct {
	*worker
	id    string
	e     *course.Exercise
	steps []Step
}

func (a *attempt) step(kind, title string, took time.Duration, fault, output string) {
	s := Step{
		Course: a.e.Level.Course.ID, Level: a.e.Level.ID, Exercise: a.e.ID, Letter: a.e.Letter,
		Kind: kind, Title: title, Millis: took.Milliseconds(), Fault: fault,
	}
	if fault != "" {
		s.Output = tail(output)
	}
	a.steps = append(a.steps, s)
	a.Report(s)
}

func (a *attempt) right(ctx context.Context, v course.Solution) error {
	began := time.Now()
	output, fault := a.do(ctx, v.Files, v.Script, v.Answers)
	if fault == "" {
		fault = a.untilMet(ctx)
	}
	a.step("solution", v.Title.En, time.Since(began), fault, output)
	return a.reset(ctx)
}

func (a *attempt) wrong(ctx context.Context, v course.Wrong) error {
	began := time.Now()
	output, fault := a.do(ctx, v.Files, v.Script, v.Answers)
	if fault == "" {
		fault = a.staysWrong(ctx, v)
	}
	a.step("wrong", v.Title, time.Since(began), fault, output)
	return a.reset(ctx)
}

// do writes the files, runs the script and gives the answers.
func (a *attempt) do(ctx context.Context, files map[string][]byte, script string, answers map[string]string) (output, fault string) {
	for path, content := range files {
		if err := a.Lab.Put(ctx, a.learner, a.id, path, content); err != nil {
			return "", "file " + path + ": " + text(err)
		}
	}
	if strings.TrimSpace(script) != "" {
		limited, cancel := context.WithTimeout(ctx, scriptLimit)
		defer cancel()
		var err error
		output, _, err = a.Lab.Type(limited, a.learner, a.id, scriptTab, script, 0)
		if closed := a.Lab.CloseTerminal(ctx, a.learner, a.id, scriptTab); err == nil {
			err = closed
		}
		if err != nil {
			return output, "the script can't be run: " + text(err)
		}
	}
	for check, answer := range answers {
		if command, ok := course.AnswerCommand(answer); ok {
			printed, code, err := a.Lab.Exec(ctx, a.learner, a.id, command)
			if err != nil || code != 0 {
				return output + printed, fmt.Sprintf("answer to %s: %s ended with code %d (%v)", check, command, code, err)
			}
			answer = strings.TrimSpace(printed)
		}
		if _, err := a.Lab.Answer(ctx, a.learner, a.id, a.e.ID, check, answer); err != nil {
			return output, "answer to " + check + ": " + text(err)
		}
	}
	return output, ""
}

func (a *attempt) settle() time.Duration {
	if a.e.Settle > 0 {
		return a.e.Settle
	}
	return defaultSettle
}

// untilMet waits until all checks are met.
func (a *attempt) untilMet(ctx context.Context) string {
	var last lab.ExerciseState
	for limit := time.Now().Add(a.settle()); ; {
		state, err := a.Lab.Check(ctx, a.learner, a.id, a.e.ID)
		if err != nil {
			return text(err)
		}
		if last = state; allMet(state) {
			return ""
		}
		if time.Now().After(limit) || !wait(ctx, lookEvery) {
			return "not met after the right solution: " + describe(last, lab.CheckMet)
		}
	}
}

// staysWrong waits until the named check says its message and the cluster has been quiet for a moment; in
// a cluster that never is, the result has to stay for as long.
func (a *attempt) staysWrong(ctx context.Context, v course.Wrong) string {
	var since time.Time
	var found string
	last, quiet := uint64(0), time.Now()
	for limit := time.Now().Add(a.settle()); ; {
		state, err := a.Lab.Check(ctx, a.learner, a.id, a.e.ID)
		if err != nil {
			return text(err)
		}
		n, err := a.Lab.LastEvent(ctx, a.learner, a.id)
		if err != nil {
			return text(err)
		}
		if n != last {
			last, quiet = n, time.Now()
		}
		if allMet(state) {
			return "all checks are met after a wrong attempt"
		}
		var ok bool
		if ok, found = says(state, v); !ok {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		}
		if ok && (time.Since(quiet) >= quietFor || time.Since(since) >= quietFor) {
			return ""
		}
		if since.IsZero() && time.Now().After(limit) || !wait(ctx, lookEvery) {
			return fmt.Sprintf("check %s should be not met and say %q, but %s", v.Check, v.Message, found)
		}
	}
}

// says reports whether the check that a wrong attempt names is not met with its message.
func says(state lab.ExerciseState, v course.Wrong) (ok bool, found string) {
	for _, c := range state.Checks {
		if c.Check != v.Check {
			continue
		}
		if c.Status == lab.CheckNotMet && strings.Contains(c.Message.En, v.Message) {
			return true, ""
		}
		return false, fmt.Sprintf("it is %s and says %q", c.Status, c.Message.En)
	}
	return false, "there is no such check"
}

// untilDone resets an exercise and waits.
func (w *worker) untilDone(ctx context.Context, id, exercise string) (lab.Operation, error) {
	op, err := w.Lab.ResetExercise(ctx, w.learner, id, exercise)
	for err == nil && !op.Done {
		if !wait(ctx, 20*time.Millisecond) {
			return op, ctx.Err()
		}
		op, err = w.Lab.Operation(ctx, w.learner, id, op.ID)
	}
	return op, err
}

// reset brings the start state back, in time, with no check met.
func (a *attempt) reset(ctx context.Context) error {
	began := time.Now()
	op, err := a.untilDone(ctx, a.id, a.e.ID)
	took := time.Since(began)
	own := took - time.Duration(op.CatchUpMillis)*time.Millisecond
	switch {
	case err != nil:
		a.step("reset", "", took, text(err), "")
		return ctx.Err()
	case op.Problem != nil:
		a.step("reset", "", took, op.Problem.En, "")
		return ctx.Err()
	}
	state, err := a.Lab.Check(ctx, a.learner, a.id, a.e.ID)
	fault := ""
	switch {
	case err != nil:
		fault = text(err)
	case own > resetLimit:
		fault = fmt.Sprintf("took %s, more than %s", own.Round(100*time.Millisecond), resetLimit)
	default:
		fault = tooEarly(state)
	}
	a.step("reset", "", took, fault, "")
	return ctx.Err()
}

// tooEarly names the checks that aren't plainly "not met" in the start state.
func tooEarly(state lab.ExerciseState) string {
	var out []string
	for _, c := range state.Checks {
		if c.Status != lab.CheckNotMet {
			out = append(out, fmt.Sprintf("%s is %s (%s)", c.Check, c.Status, c.Message.En))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "before the solution: " + strings.Join(out, "; ")
}

func describe(state lab.ExerciseState, except lab.CheckStatus) string {
	var out []string
	for _, c := range state.Checks {
		if c.Status != except {
			out = append(out, fmt.Sprintf("%s is %s (%s)", c.Check, c.Status, c.Message.En))
		}
	}
	return strings.Join(out, "; ")
}

func allMet(state lab.ExerciseState) bool {
	return len(state.Checks) > 0 && !slices.ContainsFunc(state.Checks, func(c lab.CheckResult) bool { return c.Status != lab.CheckMet })
}

// text is an error's sentence for people, and its cause where that says more.
func text(err error) string {
	e := lab.AsError(err)
	if e.Err != nil {
		return e.Text.En + " (" + e.Err.Error() + ")"
	}
	return e.Text.En
}

func tail(s string) string {
	if len(s) > outputKept {
		return "…" + strings.ToValidUTF8(s[len(s)-outputKept:], "")
	}
	return s
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
