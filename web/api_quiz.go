package web

import (
	"html"
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
	// Truth is what the claim of kind truth is; Why explains a typed answer, safe HTML.
	Truth *bool     `json:"truth,omitempty"`
	Why   *lab.Text `json:"why,omitempty"`
}

type optionJSON struct {
	ID    string   `json:"id"`
	Right bool     `json:"right"` // of kind match: the learner's pair is right
	Why   lab.Text `json:"why"`   // safe HTML
}

func verdict(q *course.Question, a Answer) verdictJSON {
	v := verdictJSON{Question: q.ID, Answer: a.Options, Correct: a.Correct, Attempts: a.Attempts, Options: []optionJSON{}}
	if v.Answer == nil {
		v.Answer = []string{}
	}
	switch q.Kind {
	case course.Typed:
		v.Why = &q.Otherwise // what would be right isn't told: the answer can be revised
		if o := q.Typed(a.Options); o != nil {
			v.Why = &o.WhyHTML
		}
		return v
	case course.InCluster:
		return v
	case course.Truth:
		v.Truth = &q.Is
	}
	for _, o := range q.Options {
		right := o.Right
		if q.Kind == course.Match {
			right = q.Matched(a.Options, o.ID)
		}
		v.Options = append(v.Options, optionJSON{ID: o.ID, Right: right, Why: o.WhyHTML})
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
	correct := q.Right(in.Answer)
	var said *lab.Text
	if q.Kind == course.InCluster {
		result, err := s.Lab.Ask(r.Context(), learnerOf(r), l.Course.ID, q, in.Answer[0])
		if err != nil {
			return err
		}
		correct, said = result.Status == lab.CheckMet, escaped(result.Message)
	}
	a, err := s.Store.SaveAnswer(r.Context(), Answer{
		Learner: learnerOf(r), Course: l.Course.ID, Level: l.ID,
		Question: q.ID, Options: in.Answer, Correct: correct,
	})
	if err != nil {
		return err
	}
	if q.Kind != course.InCluster { // which can't come back without its cluster
		if _, err := s.remember(r.Context(), learnerOf(r), l, q, correct, s.Now()); err != nil {
			return err
		}
	}
	v := verdict(q, a)
	if said != nil {
		v.Why = said
	}
	writeJSON(w, http.StatusOK, v)
	return nil
}

// escaped makes HTML of a message that holds values of the learner's cluster.
func escaped(t lab.Text) *lab.Text {
	return &lab.Text{ZhTW: html.EscapeString(t.ZhTW), En: html.EscapeString(t.En)}
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
