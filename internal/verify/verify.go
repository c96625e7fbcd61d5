// Package verify runs every exercise of a course as learners would, against
// real clusters: no check may be met before the solution, each right solution
// has to pass, each wrong one must not, a reset has to bring the start state
// back in time, and the commands of the lesson have to print what it quotes. It finds faults in lessons, checks and the lab itself; it mends nothing.
package verify

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

// resetLimit is how long an exercise's reset may take.
const resetLimit = 10 * time.Second

// Lab is what verification needs of the live labs.
type Lab interface {
	Open(ctx context.Context, learner lab.LearnerID, course string) (_ lab.Session, created bool, _ error)
	Get(ctx context.Context, learner lab.LearnerID, id string) (lab.Session, error)
	End(ctx context.Context, learner lab.LearnerID, id string) error
	Exercises
	Home
}

// Exercises is the work on exercises.
type Exercises interface {
	Check(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error)
	Answer(ctx context.Context, learner lab.LearnerID, id, exercise, check, text string) (lab.ExerciseState, error)
	ResetExercise(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.Operation, error)
	Operation(ctx context.Context, learner lab.LearnerID, id, op string) (lab.Operation, error)
}

// Home is where scripts run.
type Home interface {
	// Put writes a file.
	Put(ctx context.Context, learner lab.LearnerID, id, path string, content []byte) error
	// Exec runs a script without a terminal.
	Exec(ctx context.Context, learner lab.LearnerID, id, script string) (output string, code int, err error)
	// Type types a script into a terminal tab, opening it, and returns what was printed and the exit code of
	// the last command. A line that hasn't ended after stop, when that is above zero, gets Ctrl-C.
	Type(ctx context.Context, learner lab.LearnerID, id, tab, script string, stop time.Duration) (output string, code int, err error)
	CloseTerminal(ctx context.Context, learner lab.LearnerID, id, tab string) error
	// LastEvent is the number of the newest frame of the record: while it stays, the cluster is quiet.
	LastEvent(ctx context.Context, learner lab.LearnerID, id string) (uint64, error)
}

// Step is one thing that was verified.
type Step struct {
	Course   string `json:"course"`
	Level    string `json:"level"`
	Exercise string `json:"exercise,omitempty"` // empty for the lesson
	Letter   string `json:"letter,omitempty"`
	// Kind is start, solution, wrong or reset, or lesson.
	Kind   string `json:"kind"`
	Title  string `json:"title,omitempty"`
	Millis int64  `json:"millis"`
	// Fault says what is wrong; empty when all is well.
	Fault string `json:"fault,omitempty"`
	// Skipped says why nothing was tried.
	Skipped string `json:"skipped,omitempty"`
	// Output is the end of what the script printed, for a fault.
	Output string `json:"output,omitempty"`
}

// Name is the step's name within its level.
func (s Step) Name() string {
	return strings.Join(strings.Fields(strings.Join([]string{s.Exercise, s.Kind, s.Title}, " ")), " ")
}

// Config is what Run needs.
type Config struct {
	Lab     Lab
	Library *course.Library
	// Workers is how many lessons and exercises are verified at once, each on a cluster of its own.
	Workers int
	// Brief tries one right and one wrong answer of each exercise, which Seed chooses, and the exercises in an order
	// that Seed makes: with Within, other seeds try others.
	Brief bool
	Seed  uint64
	// Within is how long new work is begun; 0 is for ever. What is left then is skipped, but every worker tries
	// something.
	Within time.Duration
	// Capabilities of the driver; levels that need others are skipped.
	Capabilities []string
	Log          *slog.Logger
	// Report is called with each step as it ends; it may be nil. Calls don't overlap.
	Report func(Step)
}

// Select finds the exercises that a target names: restaurant, restaurant/1 or
// restaurant/1/hire-one; empty for all.
func Select(library *course.Library, target string) ([]*course.Exercise, error) {
	parts := strings.Split(strings.Trim(target, "/"), "/")
	if target == "" {
		parts = nil
	}
	if len(parts) > 3 {
		return nil, fmt.Errorf("%q: a target is COURSE, COURSE/LEVEL or COURSE/LEVEL/EXERCISE", target)
	}
	var out []*course.Exercise
	for _, c := range library.All() {
		for _, l := range c.Levels {
			for _, e := range l.Exercises {
				path := []string{c.ID, l.ID, e.ID}
				if slices.Equal(parts, path[:len(parts)]) || len(parts) == 3 && slices.Equal(parts, []string{c.ID, l.ID, e.Letter}) {
					out = append(out, e)
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%q names no exercise", target)
	}
	return out, nil
}

// Levels are the levels whose lessons belong to a target of Select: none for a single exercise.
func Levels(exercises []*course.Exercise, target string) []*course.Level {
	if strings.Count(strings.Trim(target, "/"), "/") > 1 {
		return nil
	}
	var out []*course.Level
	for _, e := range exercises {
		if !slices.Contains(out, e.Level) {
			out = append(out, e.Level)
		}
	}
	return out
}

// Run verifies lessons and exercises and returns all steps, in that order. Its
// error is for what kept it from verifying at all, and for having tried nothing; faults are in the steps.
func Run(ctx context.Context, c Config, levels []*course.Level, exercises []*course.Exercise) ([]Step, error) {
	if c.Report == nil {
		c.Report = func(Step) {}
	}
	var mu sync.Mutex
	report := c.Report
	c.Report = func(s Step) {
		mu.Lock()
		defer mu.Unlock()
		report(s)
	}
	if c.Brief {
		exercises = slices.Clone(exercises)
		rand.New(rand.NewPCG(c.Seed, 0)).Shuffle(len(exercises), func(i, k int) { exercises[i], exercises[k] = exercises[k], exercises[i] })
	}
	began := time.Now()
	late := func() bool { return c.Within > 0 && time.Since(began) > c.Within }
	// Lessons take longest, so they begin first.
	var work []func(context.Context, *worker) ([]Step, error)
	for _, l := range levels {
		work = append(work, func(ctx context.Context, w *worker) ([]Step, error) { return w.walks(ctx, l) })
	}
	for _, e := range exercises {
		work = append(work, func(ctx context.Context, w *worker) ([]Step, error) {
			if w.tried && late() {
				s := Step{Course: e.Level.Course.ID, Level: e.Level.ID, Exercise: e.ID, Letter: e.Letter, Kind: "start", Skipped: "no time was left"}
				w.Report(s)
				return []Step{s}, nil
			}
			steps, err := w.exercise(ctx, e)
			w.tried = w.tried || slices.ContainsFunc(steps, func(s Step) bool { return s.Skipped == "" })
			return steps, err
		})
	}
	steps := make([][]Step, len(work))
	next := make(chan int)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(next)
		for i := range work {
			select {
			case next <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range max(1, min(c.Workers, len(work))) {
		g.Go(func() error {
			w := &worker{Config: c, learner: newLearner(), sessions: map[string]string{}, dirty: map[string]bool{}}
			defer w.end()
			for i := range next {
				var err error
				if steps[i], err = work[i](ctx, w); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	all := slices.Concat(steps...)
	if err == nil && !slices.ContainsFunc(all, func(s Step) bool { return s.Skipped == "" }) {
		err = errors.New("nothing was tried: the driver can't do any of it")
	}
	return all, err
}

// Faults counts the steps with a fault.
func Faults(steps []Step) int {
	n := 0
	for _, s := range steps {
		if s.Fault != "" {
			n++
		}
	}
	return n
}

func newLearner() lab.LearnerID {
	var b [16]byte
	cryptorand.Read(b[:]) // never fails
	return lab.LearnerID(strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])))
}
