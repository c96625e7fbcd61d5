package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/terminal"
)

const (
	catchUpLimit = 2 * time.Minute // for one exercise's solution
	catchUpLook  = 200 * time.Millisecond
)

func textWaits(e *course.Exercise) *lab.Error {
	return lab.Fail(lab.CodeConflict,
		"這個練習接著「"+e.Title.ZhTW+"」往下做。請先完成它，或按「幫我趕上進度」。",
		"This exercise goes on from “"+e.Title.En+"”. Do that one first, or let the lab catch up.")
}

// waits lists what an exercise goes on from and whose end the cluster isn't at.
func (p *progress) waits(e *course.Exercise) []*course.Exercise {
	var out []*course.Exercise
	for _, n := range e.Needs {
		row := p.row(n.ID)
		p.mu.Lock()
		done := p.caughtUp[n.ID] || row.StartedIn(p.l.id) && len(row.Met) == len(n.Checks)
		p.mu.Unlock()
		if !done {
			out = append(out, n)
		}
	}
	return out
}

// freed tells of the exercises that go on from one that has just been done.
func (p *progress) freed(done *course.Exercise) {
	for _, e := range p.exercises("") {
		row := p.row(e.ID)
		if !slices.Contains(e.Needs, done) || row.StartedIn(p.l.id) {
			continue
		}
		s := p.standing(e.ID)
		s.mu.Lock()
		p.push(s, p.state(e, row, nil), false)
		s.mu.Unlock()
	}
}

// enter brings a clean cluster to an exercise's start state: by the solutions of what it
// goes on from, then its own set-up.
func (p *progress) enter(ctx context.Context, r *running, e *course.Exercise, verb string) error {
	began := p.l.s.Clock.Now()
	for _, n := range e.Before() {
		if err := p.catchUp(ctx, r, n); err != nil {
			return err
		}
	}
	if len(e.Needs) > 0 {
		p.l.works.caughtUp(p.l.s.Clock.Since(began))
	}
	return p.begin(ctx, r, e, verb)
}

// catchUp does an exercise by its first solution. It isn't credited to the learner.
func (p *progress) catchUp(ctx context.Context, r *running, e *course.Exercise) error {
	l := p.l
	ctx, cancel := context.WithTimeout(ctx, catchUpLimit)
	defer cancel()
	told := lab.ObjectRef{Kind: "Exercise", Name: e.ID}
	n := l.feed.Lab(lab.Event{Verb: "catch-up", Object: told, Reason: "start", Text: &lab.Text{
		ZhTW: "趕上進度：做完「" + e.Title.ZhTW + "」。", En: "Catching up: doing “" + e.Title.En + "”.",
	}})
	l.feed.Working(n)
	err := p.setUp(ctx, r, e)
	l.feed.Working(0)
	if err != nil {
		return err
	}
	since, v := l.record.Last(), e.Solutions[0]
	if err := l.home.place(v.Files); err != nil {
		return err
	}
	output, _, err := terminal.Exec(ctx, l.tabs.config(ctx, r, "catch-up"), v.Script)
	if err != nil {
		return lab.Fail(lab.CodeUnavailable, "趕進度的指令執行不了，請再試一次。", "The commands that catch up can't be run. Try again.").Because(err)
	}
	answers, err := l.answers(ctx, v.Answers)
	if err != nil {
		return err
	}
	wait, stop := context.WithTimeout(ctx, max(e.Settle, 5*time.Second))
	defer stop()
	for {
		open := p.stillOpen(wait, e, &world{l: l, r: r, live: true, since: since, typed: answers})
		if open == nil {
			break
		}
		select {
		case <-l.s.Clock.After(catchUpLook):
			continue
		case <-wait.Done():
		}
		l.log.Warn("catch-up failed", "exercise", e.ID, "check", open.Check, "message", open.Message.En, "output", output)
		return lab.Fail(lab.CodeUnavailable, "「"+e.Title.ZhTW+"」沒有做成："+open.Message.ZhTW+" 請再試一次。",
			"“"+e.Title.En+"” could not be done: "+strings.TrimSuffix(open.Message.En, ".")+". Try again.")
	}
	p.mu.Lock()
	p.caughtUp[e.ID] = true
	p.mu.Unlock()
	l.feed.Lab(lab.Event{Verb: "catch-up", Object: told, Reason: "done"})
	return nil
}

// stillOpen is the first check that isn't met; nil when all are. Checks about steady guests are left
// out: nobody came while the lab caught up.
func (p *progress) stillOpen(ctx context.Context, e *course.Exercise, w *world) *lab.CheckResult {
	for _, c := range e.Checks {
		guests := false
		for name := range e.Guests {
			guests = guests || c.Uses(name)
		}
		if guests {
			continue
		}
		if r := c.Run(ctx, w); r.Status != lab.CheckMet {
			return &r
		}
	}
	return nil
}
