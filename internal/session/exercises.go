package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kubistro/internal/checker"
	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/store"
)

const (
	startLimit  = 60 * time.Second // for a start state, a cluster that has to wake included
	readyLimit  = 10 * time.Second // for the start state's own condition
	hearLimit   = 5 * time.Second  // for the record to tell of the start state
	answerBytes = 2000
)

// exercise finds an exercise of the session's course that this server can do.
func (l *live) exercise(id string) (*course.Exercise, error) {
	e := l.course().Exercise(id)
	if e == nil {
		return nil, lab.Fail(lab.CodeNotFound, "沒有這個練習。", "There is no such exercise.")
	}
	lacks := l.s.lacks(e.Level)
	for _, n := range e.Before() {
		lacks = append(lacks, l.s.lacks(n.Level)...)
	}
	if len(lacks) > 0 {
		list := strings.Join(lacks, ", ")
		return nil, lab.Fail(lab.CodeUnsupported, "這個伺服器的叢集類型做不到這個練習需要的："+list+"。",
			"The clusters of this server can't do what this exercise needs: "+list+".")
	}
	return e, nil
}

// start sets an exercise's start state up, unless it has been in this session.
func (p *progress) start(ctx context.Context, e *course.Exercise) error {
	p.starting.Lock()
	defer p.starting.Unlock()
	if p.row(e.ID).StartedIn(p.l.id) {
		return nil
	}
	if waits := p.waits(e); len(waits) > 0 {
		return textWaits(waits[0])
	}
	// It goes on when the page is closed meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	stop := context.AfterFunc(p.l.ctx, cancel)
	defer stop()
	r, err := p.l.settled(ctx)
	if err != nil {
		return err
	}
	if e.Fresh {
		r, err = p.tidied(ctx, e)
	} else {
		r, err = p.l.reshape(ctx, r, e.Level)
	}
	if err != nil {
		return err
	}
	return p.begin(ctx, r, e, "setup")
}

// tidied removes what former exercises left, whose start states are gone with that.
func (p *progress) tidied(ctx context.Context, e *course.Exercise) (*running, error) {
	p.l.feed.Lab(lab.Event{Verb: "tidy", Object: lab.ObjectRef{Kind: "Exercise", Name: e.ID}, Text: &lab.Text{
		ZhTW: "先收拾之前練習留下的東西。", En: "What former exercises left is tidied up first.",
	}})
	if err := p.forgetStarts(ctx, ""); err != nil {
		return nil, err
	}
	return p.l.cleaned(ctx, e.Level.Shape())
}

// begin makes the start state on a cluster and notes that the exercise starts now.
func (p *progress) begin(ctx context.Context, r *running, e *course.Exercise, verb string) error {
	l := p.l
	n := l.feed.Lab(lab.Event{Verb: verb, Object: lab.ObjectRef{Kind: "Exercise", Name: e.ID}, Reason: "start", Text: &lab.Text{
		ZhTW: "準備練習「" + e.Title.ZhTW + "」。", En: "Setting up the exercise “" + e.Title.En + "”.",
	}})
	l.feed.Working(n)
	defer l.feed.Working(0)
	if err := p.setUp(ctx, r, e); err != nil {
		return err
	}
	if err := l.heard(ctx, r); err != nil {
		return err
	}
	_, err := p.update(ctx, e.ID, func(x *store.Exercise) error {
		x.Session, x.StartedAt, x.StartEvent = l.id, l.s.Clock.Now().UTC(), l.record.Last()
		x.Met, x.Typed = nil, nil
		return nil
	})
	if err != nil {
		return err
	}
	l.feed.Lab(lab.Event{Verb: verb, Object: lab.ObjectRef{Kind: "Exercise", Name: e.ID}, Reason: "done"})
	p.dismissGuests(e.ID) // of a former start
	s := p.standing(e.ID)
	s.mu.Lock()
	s.results, s.told = nil, ""
	s.mu.Unlock()
	return nil
}

// heard waits, for a while, until the record holds all that was done so far: the setup isn't the learner's work.
func (l *live) heard(ctx context.Context, r *running) error {
	limited, cancel := context.WithTimeout(ctx, hearLimit)
	defer cancel()
	if err := r.watch.CatchUp(limited); err != nil {
		l.log.Warn("the record is behind its cluster", "error", err)
	}
	return ctx.Err()
}

// setUp makes an exercise's start state: files, manifests, and the wait for its condition.
func (p *progress) setUp(ctx context.Context, r *running, e *course.Exercise) error {
	objects, err := manifests(e.Level.Files, e.Setup)
	if err != nil {
		return err
	}
	if err := p.l.home.place(e.Files); err != nil {
		return err
	}
	if err := r.apply(ctx, objects); err != nil {
		return lab.Fail(lab.CodeConflict, "練習的起始狀態建立不起來，請按「重設練習」。", "The exercise's start state could not be set up. Press Reset.").Because(err)
	}
	if err := p.waitFor(ctx, r, e.Ready); err != nil {
		return err
	}
	faults, err := manifests(e.Level.Files, e.Inject)
	if err != nil {
		return err
	}
	if err := r.apply(ctx, faults); err != nil {
		return lab.Fail(lab.CodeConflict, "練習的起始狀態建立不起來，請按「重設練習」。", "The exercise's start state could not be set up. Press Reset.").Because(err)
	}
	if err := p.waitFor(ctx, r, e.Shows); err != nil {
		return err
	}
	if err := r.sendHome(ctx, e); err != nil {
		return err
	}
	p.l.absent(e)
	return nil
}

// waitFor waits until a condition of the start state holds.
func (p *progress) waitFor(ctx context.Context, r *running, condition *checker.Check) error {
	if condition == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	w := &world{l: p.l, r: r, live: true}
	for {
		last := condition.Run(ctx, w)
		if last.Status == lab.CheckMet {
			return nil
		}
		select {
		case <-p.l.s.Clock.After(debounce):
		case <-ctx.Done():
			return lab.Fail(lab.CodeUnavailable, "練習的起始狀態遲遲沒有就緒："+last.Message.ZhTW+" 請按「重設練習」。",
				"The exercise's start state doesn't get ready: "+last.Message.En+" Press Reset.")
		}
	}
}

// forgetStarts notes that no exercise has its start state any more, save one. Done stays done.
func (p *progress) forgetStarts(ctx context.Context, except string) error {
	var all error
	p.dismissGuests("")
	p.mu.Lock()
	clear(p.caughtUp)
	p.mu.Unlock()
	for _, e := range p.exercises("") {
		if e.ID == except || !p.row(e.ID).StartedIn(p.l.id) {
			continue
		}
		_, err := p.update(ctx, e.ID, func(x *store.Exercise) error {
			x.Session, x.Met, x.Typed = "", nil, nil
			return nil
		})
		all = errors.Join(all, err)
		s := p.standing(e.ID)
		s.mu.Lock()
		s.results = nil
		p.push(s, p.state(e, p.row(e.ID), nil), false)
		s.mu.Unlock()
	}
	return all
}

// exercise finds the session and the exercise.
func (s *Service) exercise(ctx context.Context, learner lab.LearnerID, id, exercise string) (*live, *course.Exercise, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return nil, nil, err
	}
	e, err := l.exercise(exercise)
	return l, e, err
}

// Exercises is part of API.
func (s *Service) Exercises(ctx context.Context, learner lab.LearnerID, id, level string) ([]lab.ExerciseState, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	if level != "" && l.course().Level(level) == nil {
		return nil, lab.Fail(lab.CodeNotFound, "沒有這一關。", "There is no such level.")
	}
	out := []lab.ExerciseState{}
	for _, e := range l.progress.exercises(level) {
		st := l.progress.standing(e.ID)
		st.mu.Lock()
		out = append(out, l.progress.state(e, l.progress.row(e.ID), st.results))
		st.mu.Unlock()
	}
	return out, nil
}

// StartExercise is part of API.
func (s *Service) StartExercise(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error) {
	l, e, err := s.exercise(ctx, learner, id, exercise)
	if err != nil {
		return lab.ExerciseState{}, err
	}
	if err := l.progress.start(ctx, e); err != nil {
		return lab.ExerciseState{}, err
	}
	return l.progress.look(ctx, e, false)
}

// Check is part of API.
func (s *Service) Check(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error) {
	l, e, err := s.exercise(ctx, learner, id, exercise)
	if err != nil {
		return lab.ExerciseState{}, err
	}
	l.touch()
	if !l.progress.row(e.ID).StartedIn(l.id) {
		if err := l.progress.start(ctx, e); err != nil {
			return lab.ExerciseState{}, err
		}
	}
	if l.current().Status().State == lab.StateReady {
		// Just ready: the watches need a moment. Without them the checks say that they are unknown.
		wait, cancel := context.WithTimeout(ctx, readyLimit)
		defer cancel()
		if _, err := l.settled(wait); err != nil {
			l.log.Debug("checks without a cluster", "error", err)
		}
	}
	return l.progress.look(ctx, e, true)
}

// Hint is part of API.
func (s *Service) Hint(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error) {
	l, e, err := s.exercise(ctx, learner, id, exercise)
	if err != nil {
		return lab.ExerciseState{}, err
	}
	l.touch()
	fits := l.progress.fittingHints(ctx, e)
	row, err := l.progress.update(ctx, e.ID, func(x *store.Exercise) error {
		x.Opened = x.OpenHints()
		if i, ok := nextHint(len(e.Hints), x.Opened, fits); ok {
			x.Opened = append(x.Opened, i)
		}
		x.Hints = len(x.Opened)
		return nil
	})
	if err != nil {
		return lab.ExerciseState{}, err
	}
	st := l.progress.standing(e.ID)
	st.mu.Lock()
	defer st.mu.Unlock()
	return l.progress.state(e, row, st.results), nil
}

// Answer is part of API.
func (s *Service) Answer(ctx context.Context, learner lab.LearnerID, id, exercise, check, text string) (lab.ExerciseState, error) {
	l, e, err := s.exercise(ctx, learner, id, exercise)
	if err != nil {
		return lab.ExerciseState{}, err
	}
	if c := e.Check(check); c == nil || c.Answer() == nil {
		return lab.ExerciseState{}, lab.Fail(lab.CodeNotFound, "這個檢查不需要作答。", "That check asks for no answer.")
	}
	if len(text) > answerBytes {
		return lab.ExerciseState{}, lab.Fail(lab.CodeTooLarge, "答案太長了。", "The answer is too long.")
	}
	l.touch()
	if err := l.progress.start(ctx, e); err != nil {
		return lab.ExerciseState{}, err
	}
	if err := l.progress.answer(ctx, e, map[string]string{check: text}); err != nil {
		return lab.ExerciseState{}, err
	}
	return l.progress.look(ctx, e, false)
}

func (p *progress) answer(ctx context.Context, e *course.Exercise, answers map[string]string) error {
	_, err := p.update(ctx, e.ID, func(x *store.Exercise) error {
		typed := make(map[string]string, len(x.Typed)+len(answers))
		for k, v := range x.Typed {
			typed[k] = v
		}
		for k, v := range answers {
			typed[k] = v
		}
		x.Typed = typed
		return nil
	})
	if err != nil {
		return fmt.Errorf("session: answer: %w", err)
	}
	p.changed("answer")
	return nil
}
