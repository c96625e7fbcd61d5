package session

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/terminal"
)

const (
	cleanLimit  = 5 * time.Second // for cleaning in place: a fresh cluster takes as long, and together they stay below 10 s
	repairLimit = 90 * time.Second
)

// baseline is the file that tells what a cluster had when it was new.
func (l *live) baseline(cluster string) string {
	return filepath.Join(l.dir, "baseline-"+cluster+".json.gz")
}

// Reset is part of API.
func (s *Service) Reset(ctx context.Context, learner lab.LearnerID, id string) (lab.Operation, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return lab.Operation{}, err
	}
	l.touch()
	return l.works.start("reset", "", repairLimit, func(ctx context.Context) error {
		l.feed.Lab(lab.Event{Verb: "reset", Reason: "start", Text: &lab.Text{
			ZhTW: "整個叢集重設：換上全新的叢集，檔案和進度都保留。", En: "The whole cluster is reset: a fresh one takes its place; files and progress stay.",
		}})
		if err := l.progress.forgetStarts(ctx, ""); err != nil {
			return err
		}
		if _, err := l.replace(ctx, l.shape()); err != nil {
			return err
		}
		l.feed.Lab(lab.Event{Verb: "reset", Reason: "done", Text: &lab.Text{ZhTW: "全新的叢集準備好了。", En: "The fresh cluster is ready."}})
		return nil
	})
}

// ResetExercise is part of API.
func (s *Service) ResetExercise(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.Operation, error) {
	l, e, err := s.exercise(ctx, learner, id, exercise)
	if err != nil {
		return lab.Operation{}, err
	}
	l.touch()
	return l.works.start("reset_exercise", exercise, repairLimit+time.Duration(len(e.Before()))*catchUpLimit, func(ctx context.Context) error {
		return l.resetExercise(ctx, e)
	})
}

// resetExercise brings the start state back: it cleans the cluster, or else
// takes a fresh one, catches up with what the exercise goes on from, and sets it up.
func (l *live) resetExercise(ctx context.Context, e *course.Exercise) error {
	l.progress.starting.Lock()
	defer l.progress.starting.Unlock()
	n := l.feed.Lab(lab.Event{Verb: "reset", Object: lab.ObjectRef{Kind: "Exercise", Name: e.ID}, Reason: "start", Text: &lab.Text{
		ZhTW: "重設練習「" + e.Title.ZhTW + "」。", En: "Resetting the exercise “" + e.Title.En + "”.",
	}})
	if err := l.progress.forgetStarts(ctx, ""); err != nil {
		return err
	}
	l.feed.Working(n)
	r, err := l.cleaned(ctx, e.Level.Shape())
	l.feed.Working(0)
	if err != nil {
		return err
	}
	err = l.progress.enter(ctx, r, e, "reset")
	if err != nil && ctx.Err() == nil {
		l.log.Warn("start state not reached after cleaning; replacing the cluster", "exercise", e.ID, "error", err)
		if r, err = l.replace(ctx, e.Level.Shape()); err == nil {
			err = l.progress.enter(ctx, r, e, "reset")
		}
	}
	if err != nil {
		return err
	}
	_, err = l.progress.look(ctx, e, true)
	return err
}

// cleaned returns the session's cluster as if it were new, in a shape.
func (l *live) cleaned(ctx context.Context, shape lab.ClusterSpec) (*running, error) {
	if r := l.ready(); r != nil && r.cluster == l.current() {
		clean, cancel := context.WithTimeout(ctx, cleanLimit)
		err := l.cleanInPlace(clean, r, shape)
		cancel()
		if err == nil {
			return r, l.shaped(ctx, r.cluster, shape)
		}
		if ctx.Err() != nil {
			return nil, err
		}
		l.log.Info("cluster can't be cleaned; replacing it", "reason", err)
		return l.replace(ctx, shape)
	}
	switch l.current().Status().State {
	case lab.StateFailed, lab.StateAsleep:
		return l.replace(ctx, shape)
	}
	r, err := l.settled(ctx)
	if err != nil {
		return nil, err
	}
	clean, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	if err := l.cleanInPlace(clean, r, shape); err != nil {
		l.log.Info("cluster can't be cleaned; replacing it", "reason", err)
		return l.replace(ctx, shape)
	}
	return r, l.shaped(ctx, r.cluster, shape)
}

// Solve is part of API.
func (s *Service) Solve(ctx context.Context, learner lab.LearnerID, id, exercise string, solution int) (lab.Operation, error) {
	l, e, err := s.exercise(ctx, learner, id, exercise)
	if err != nil {
		return lab.Operation{}, err
	}
	if solution < 0 || solution >= len(e.Solutions) {
		return lab.Operation{}, lab.Fail(lab.CodeNotFound, "沒有這個解法。", "There is no such solution.")
	}
	l.touch()
	return l.works.start("solve", fmt.Sprintf("%s/%d", exercise, solution), repairLimit, func(ctx context.Context) error {
		return l.solve(ctx, e, e.Solutions[solution])
	})
}

// answers gives a solution's answers; those that are commands are what they print in the terminal.
func (l *live) answers(ctx context.Context, of map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(of))
	for check, answer := range of {
		if command, ok := course.AnswerCommand(answer); ok {
			r, err := l.settled(ctx)
			if err != nil {
				return nil, err
			}
			printed, _, err := terminal.Exec(ctx, l.tabs.config(ctx, r, "answer"), command)
			if err != nil {
				return nil, fmt.Errorf("session: answer to %s: %w", check, err)
			}
			answer = strings.TrimSpace(printed)
		}
		out[check] = answer
	}
	return out, nil
}

// solve shows a solution: it types it where the learner can watch.
func (l *live) solve(ctx context.Context, e *course.Exercise, v course.Solution) error {
	if err := l.progress.start(ctx, e); err != nil {
		return err
	}
	term, err := l.tabs.get(ctx, "main")
	if err != nil {
		return err
	}
	l.feed.Lab(lab.Event{Verb: "solve", Object: lab.ObjectRef{Kind: "Exercise", Name: e.ID}, Reason: "start", Text: &lab.Text{
		ZhTW: "示範解法：" + v.Title.ZhTW, En: "Showing a solution: " + v.Title.En,
	}})
	row, err := l.progress.update(ctx, e.ID, markSolved)
	if err != nil {
		return err
	}
	if err := l.home.place(v.Files); err != nil {
		return err
	}
	if err := typeScript(ctx, term, v.Script); err != nil {
		return err
	}
	answers, err := l.answers(ctx, v.Answers)
	if err != nil {
		return err
	}
	if err := l.progress.answer(ctx, e, answers); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, max(e.Settle, 5*time.Second))
	defer cancel()
	for row.DoneAt.IsZero() {
		if _, err := l.progress.look(wait, e, true); err != nil {
			break
		}
		if row = l.progress.row(e.ID); !row.DoneAt.IsZero() {
			break
		}
		select {
		case <-l.s.Clock.After(250 * time.Millisecond):
		case <-wait.Done():
		}
		if wait.Err() != nil {
			break
		}
	}
	l.feed.Lab(lab.Event{Verb: "solve", Object: lab.ObjectRef{Kind: "Exercise", Name: e.ID}, Reason: "done"})
	return nil
}
