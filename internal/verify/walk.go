package verify

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

const (
	walkTab    = "walk"
	endlessFor = 5 * time.Second  // how long a command that goes on until Ctrl-C runs
	lookFor    = 40 * time.Second // how long the walk looks again for what the lesson quotes
)

// walk is a learner who reads a level's lesson from top to bottom on a fresh cluster: types every
// command where it stands, opens the manifests, starts the exercises, and does what the
// commands of its section haven't done of an exercise by its first solution.
type walk struct {
	*worker
	id    string
	level *course.Level
	steps []Step
}

// walks verifies a level's lesson. All languages have the same commands; the outputs that each of
// them quotes are compared.
func (w *worker) walks(ctx context.Context, l *course.Level) ([]Step, error) {
	v := &walk{worker: w, level: l}
	if lacks := w.lacks(l.Needs); lacks != "" {
		v.step("", 0, "", "", "the driver lacks "+lacks)
		return v.steps, nil
	}
	if err := w.leave(ctx, l.Course.ID); err != nil { // of what others left there
		return nil, err
	}
	var err error
	if v.id, err = w.session(ctx, l.Course.ID); err != nil {
		return nil, err
	}
	w.dirty[l.Course.ID] = true
	doc := l.Lesson[lab.En]
	for i := range doc.Sections {
		s := section{walk: v, en: doc.Sections[i]}
		if other := l.Lesson[lab.ZhTW]; other != nil && i < len(other.Sections) {
			s.zh = other.Sections[i]
		}
		if !slices.ContainsFunc(s.en.Blocks, func(b course.Block) bool {
			return b.Kind == course.BlockCommand || b.Kind == course.BlockExercise || b.Kind == course.BlockManifest
		}) {
			continue
		}
		began := time.Now()
		fault, output := s.read(ctx)
		if ctx.Err() != nil {
			return v.steps, ctx.Err()
		}
		v.step(s.en.ID, time.Since(began), fault, output, "")
	}
	return v.steps, w.Lab.CloseTerminal(ctx, w.learner, v.id, walkTab)
}

func (w *walk) step(title string, took time.Duration, fault, output, skipped string) {
	s := Step{Course: w.level.Course.ID, Level: w.level.ID, Kind: "lesson", Title: title, Millis: took.Milliseconds(), Fault: fault, Skipped: skipped}
	if fault != "" {
		s.Output = tail(output)
	}
	w.steps = append(w.steps, s)
	w.Report(s)
}

// section is what the walk does in one section.
type section struct {
	*walk
	en, zh  course.Section
	printed []printed // by the newest command block
	outputs string    // of the whole section, for faults
	open    []*course.Exercise
}

type printed struct{ command, output string }

// read goes through the section and returns the first fault.
func (s *section) read(ctx context.Context) (fault, output string) {
	for i, b := range s.en.Blocks {
		switch b.Kind {
		case course.BlockCommand:
			fault = s.run(ctx, b)
		case course.BlockOutput:
			fault = s.compare(ctx, b)
			if fault == "" && i < len(s.zh.Blocks) {
				fault = s.compare(ctx, s.zh.Blocks[i])
			}
		case course.BlockManifest:
			if err := s.Lab.Put(ctx, s.learner, s.id, path.Base(b.Path), []byte(b.Text)); err != nil {
				fault = "open " + b.Path + ": " + text(err)
			}
		case course.BlockExercise:
			fault = s.start(ctx, b.Exercise)
		}
		if fault != "" {
			return fault, s.outputs
		}
	}
	for _, e := range s.open {
		if fault := s.finish(ctx, e); fault != "" {
			return fault, s.outputs
		}
	}
	return "", ""
}

// run types the commands of a block.
func (s *section) run(ctx context.Context, b course.Block) string {
	s.printed = nil
	for i, c := range b.Commands {
		command, err := s.command(ctx, c)
		if err != nil {
			return err.Error()
		}
		fails := b.Mode == course.ModeFails && i == len(b.Commands)-1
		if fault := s.typed(ctx, command, b.Mode, fails); fault != "" {
			return fault
		}
	}
	return ""
}

func (s *section) typed(ctx context.Context, command, mode string, fails bool) string {
	limited, cancel := context.WithTimeout(ctx, scriptLimit)
	defer cancel()
	var stop time.Duration
	if mode == course.ModeEndless {
		stop = endlessFor
	}
	output, code, err := s.Lab.Type(limited, s.learner, s.id, walkTab, command, stop)
	s.printed = append(s.printed, printed{command, output})
	s.outputs += "$ " + command + "\n" + output
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %s", command, text(err))
	case mode == course.ModeEndless:
	case fails && code == 0:
		return command + " should fail, by the text, and doesn't"
	case !fails && code != 0:
		return fmt.Sprintf("%s ended with code %d", command, code)
	}
	return ""
}

// changes are commands that do something: they are typed once.
var changes = regexp.MustCompile(`\bkubectl\s+(?:-\S+\s+(?:\S+\s+)?)?(?:apply|create|delete|run|scale|expose|set|rollout\s+(?:undo|restart|pause|resume)|label|annotate|patch|edit|replace|exec|cp|` +
	`drain|cordon|uncordon|taint|autoscale|debug|certificate|attach)\b|\blab\s+(?:node\s|loop\s|clock\s+\d|encryption\s+o)|\bguest\b|[^0-9>&]>[^&>]|>>|\b(?:rm|mv|cp|sed\s+-i|touch|mkdir)\s`)

// compare waits until the quoted lines are among what the commands above print: commands that only look are
// typed again, as a learner would.
func (s *section) compare(ctx context.Context, b course.Block) string {
	lines := quoted(b)
	if b.Mode == course.ModeExample || len(lines) == 0 {
		return ""
	}
	if len(s.printed) == 0 {
		return "an output is quoted without a command before it in its section: mark it as an example"
	}
	for limit := time.Now().Add(lookFor); ; {
		var all strings.Builder
		for _, p := range s.printed {
			all.WriteString(p.output)
		}
		lost := missing(lines, all.String())
		if lost == "" {
			return ""
		}
		again := slices.IndexFunc(s.printed, func(p printed) bool { return !changes.MatchString(p.command) })
		if again < 0 || time.Now().After(limit) || !wait(ctx, lookEvery) {
			return fmt.Sprintf("the lesson quotes %q, and no line printed has that shape", lost)
		}
		for i, p := range s.printed {
			if changes.MatchString(p.command) {
				continue
			}
			limited, cancel := context.WithTimeout(ctx, scriptLimit)
			output, _, err := s.Lab.Type(limited, s.learner, s.id, walkTab, p.command, 0)
			cancel()
			if err != nil {
				return p.command + ": " + text(err)
			}
			s.printed[i].output = output
			s.outputs += "$ " + p.command + "\n" + output
		}
	}
}

// start begins an exercise where the lesson has it.
func (s *section) start(ctx context.Context, e *course.Exercise) string {
	s.open = append(s.open, e)
	if _, err := s.Lab.Check(ctx, s.learner, s.id, e.ID); err == nil {
		return ""
	}
	// It goes on from one that isn't done in this cluster, or something is in the way: a learner resets.
	return s.resetTo(ctx, e)
}

func (s *section) resetTo(ctx context.Context, e *course.Exercise) string {
	op, err := s.untilDone(ctx, s.id, e.ID)
	switch {
	case err != nil:
		return "exercise " + e.ID + ": " + text(err)
	case op.Problem != nil:
		return "exercise " + e.ID + ": " + op.Problem.En
	}
	return ""
}

// finish does what is left of an exercise at the end of its section.
func (s *section) finish(ctx context.Context, e *course.Exercise) string {
	a := &attempt{worker: s.worker, id: s.id, e: e}
	if state, err := s.Lab.Check(ctx, s.learner, s.id, e.ID); err == nil && allMet(state) {
		return ""
	}
	output, fault := a.do(ctx, e.Solutions[0].Files, e.Solutions[0].Script, e.Solutions[0].Answers)
	s.outputs += output
	if fault == "" {
		if fault = a.untilMet(ctx); fault == "" {
			return ""
		}
	}
	if fault := s.resetTo(ctx, e); fault != "" {
		return fault
	}
	if output, fault = a.do(ctx, e.Solutions[0].Files, e.Solutions[0].Script, e.Solutions[0].Answers); fault == "" {
		fault = a.untilMet(ctx)
	}
	s.outputs += output
	if fault != "" {
		return "exercise " + e.ID + ": " + fault
	}
	return ""
}
