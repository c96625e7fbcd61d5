package web

import (
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/quiz"
	"kubistro/web/ui"
)

// worker is the script that keeps the page of quizzes for when there is no network. Its
// place decides what it may serve, so it isn't among the assets.
const worker = "/quizzes-worker.js"

// quizzes is the page of quizzes without a cluster. It holds every question, so that it goes on without a network.
func (s *Server) quizzes(w http.ResponseWriter, r *http.Request) error {
	if err := s.keepLang(w, r); err != nil {
		return err
	}
	// Another order of options each day: what is learned are answers, not places.
	p := ui.QuizzesPage{Page: s.newPage(r, ""), Worker: worker, Seed: string(learnerOf(r)) + s.Now().UTC().Format(time.DateOnly)}
	p.Title = p.T("quizzes.title") + " · Kubistro"
	for _, c := range s.Library.All() {
		part := ui.QuizCourse{ID: c.ID, Title: p.In(c.Title)}
		for _, l := range c.Levels {
			level := ui.QuizLevel{ID: l.ID, Number: l.Number, Title: p.In(l.Title), Link: ui.LevelLink(l)}
			for _, q := range l.Quiz {
				if q.Kind == course.InCluster {
					level.LeftOut++
				} else {
					level.Questions = append(level.Questions, q)
				}
			}
			if !l.Coming && len(l.Quiz) > 0 {
				part.Levels = append(part.Levels, level)
			}
		}
		if len(part.Levels) > 0 {
			p.Courses = append(p.Courses, part)
		}
	}
	s.render(w, r, http.StatusOK, ui.Quizzes(p))
	return nil
}

// due lists the levels that have questions which come back now.
func (s *Server) due(ctx context.Context, learner lab.LearnerID, p ui.Page) ([]ui.DueLine, error) {
	memories, err := s.Store.Memories(ctx, learner)
	if err != nil {
		return nil, err
	}
	now, due := s.Now(), map[[2]string]quiz.Memory{}
	for _, m := range memories {
		if m.DueAt(now) {
			due[[2]string{m.Course, m.Question}] = m
		}
	}
	var out []ui.DueLine
	s.practiced(func(l *course.Level, q *course.Question) {
		if _, ok := due[[2]string{l.Course.ID, q.ID}]; !ok {
			return
		}
		link := templ.SafeURL("/quizzes#due/" + l.Course.ID + "/" + l.ID)
		if n := len(out); n == 0 || out[n-1].Link != link {
			out = append(out, ui.DueLine{Course: p.In(l.Course.Title), Level: p.T("quizzes.level", l.Number, p.In(l.Title)), Link: link})
		}
		out[len(out)-1].Count++
	})
	return out, nil
}

// quizWorker serves the worker's script under a name that stays.
func (s *Server) quizWorker(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache")
	s.assets.ServeNamed(w, r, "quizzes-worker.js")
}
