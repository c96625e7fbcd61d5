// Package verify runs every exercise of a course as learners would, against
// real clusters: no check may be met before the solution, each right solution
// has to pass, each wrong one must not, and a reset has to bring the start state
// back in time. It finds faults in lessons, checks and the lab itself; it mends nothing.
package verify

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"log/slog"
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

// Home is where scripts run. Put writes a file, Exec a script as typed in the terminal.
type Home interface {
	Put(ctx context.Context, learner lab.LearnerID, id, path string, content []byte) error
	Exec(ctx context.Context, learner lab.LearnerID, id, script string) (output string, code int, err error)
}

// Step is one thing that was verified.
type Step struct {
	Course   string `json:"course"`
	Level    string `json:"level"`
	Exercise string `json:"exercise"`
	Letter   string `json:"letter"`
	// Kind is start, solution, wrong or reset.
	Kind   string `json:"kind"`
	Title  string `json:"title,omitempty"`
	Millis int64  `json:"millis"`
	// Fault says what is wrong; empty when all is well.
	Fault string `json:"fault,omitempty"`
	// Output is the end of what the script printed, for a fault.
	Output string `json:"output,omitempty"`
}

// Config is what Run needs.
type Config struct {
	Lab     Lab
	Library *course.Library
	// Workers is how many exercises are verified at once, each on a cluster of its own.
	Workers int
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
	for _, c := range library.Courses {
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

// Run verifies exercises and returns all steps, in the order of the exercises. Its
// error is for what kept it from verifying at all; faults are in the steps.
func Run(ctx context.Context, c Config, exercises []*course.Exercise) ([]Step, error) {
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
	steps := make([][]Step, len(exercises))
	next := make(chan int)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(next)
		for i := range exercises {
			select {
			case next <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range max(1, min(c.Workers, len(exercises))) {
		g.Go(func() error {
			w := &worker{Config: c, learner: newLearner(), sessions: map[string]string{}}
			defer w.end()
			for i := range next {
				var err error
				if steps[i], err = w.exercise(ctx, exercises[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return slices.Concat(steps...), err
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
	rand.Read(b[:]) // never fails
	return lab.LearnerID(strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])))
}
