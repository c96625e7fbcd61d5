package web

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

// verdictJSON tells how an answer did. Explanations come with it only, so that
// a page doesn't hold them before somebody has answered.
type verdictJSON struct {
	Question string       `json:"question"`
	Answer   []string     `json:"answer"`
	Correct  bool         `json:"correct"`
	Attempts int          `json:"attempts"`
	Options  []optionJSON `json:"options"`
}

type optionJSON struct {
	ID    string   `json:"id"`
	Right bool     `json:"right"`
	Why   lab.Text `json:"why"` // safe HTML
}

func verdict(q *course.Question, a Answer) verdictJSON {
	v := verdictJSON{Question: q.ID, Answer: a.Options, Correct: a.Correct, Attempts: a.Attempts}
	if v.Answer == nil {
		v.Answer = []string{}
	}
	for _, o := range q.Options {
		v.Options = append(v.Options, optionJSON{ID: o.ID, Right: o.Right, Why: o.WhyHTML})
	}
	return v
}

func (s *Server) quiz(w http.ResponseWriter, r *http.Request) error {
	l, err := s.levelOf(r)
	if err != nil {
		return err
	}
	answers, err := s.Store.Answers(r.Context(), learnerOf(r), l.Course.ID, l.ID)
	if err != nil {
		return err
	}
	out := []verdictJSON{}
	for _, a := range answers {
		if q := question(l, a.Question); q != nil && q.Valid(a.Options) {
			out = append(out, verdict(q, a))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"answers": out})
	return nil
}

func question(l *course.Level, id string) *course.Question {
	for _, q := range l.Quiz {
		if q.ID == id {
			return q
		}
	}
	return nil
}

func (s *Server) answerQuestion(w http.ResponseWriter, r *http.Request) error {
	l, err := s.levelOf(r)
	if err != nil {
		return err
	}
	q := question(l, chi.URLParam(r, "question"))
	if q == nil {
		return errNoQuestion
	}
	var in struct {
		Answer []string `json:"answer"`
	}
	if err := s.readJSON(r, &in); err != nil {
		return err
	}
	if !q.Valid(in.Answer) {
		return lab.Fail(lab.CodeInvalid,
			"這個答案不完整，請先選好選項再送出。",
			"This answer isn't complete. Choose your options first, then send it.")
	}
	a, err := s.Store.SaveAnswer(r.Context(), Answer{
		Learner: learnerOf(r), Course: l.Course.ID, Level: l.ID,
		Question: q.ID, Options: in.Answer, Correct: q.Right(in.Answer),
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, verdict(q, a))
	return nil
}

func (s *Server) clearQuiz(w http.ResponseWriter, r *http.Request) error {
	l, err := s.levelOf(r)
	if err != nil {
		return err
	}
	if err := s.Store.ClearAnswers(r.Context(), learnerOf(r), l.Course.ID, l.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
