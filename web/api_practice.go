package web

import (
	"context"
	"net/http"
	"time"

	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/quiz"
)

const (
	practiceBatch = 100                 // answers in one call
	practiceAge   = 60 * 24 * time.Hour // an older answer counts as of now: somebody's clock is wrong
)

// keyJSON is a question with all that judges it, so that a page can go on without the server.
type keyJSON struct {
	Course  string              `json:"course"`
	Level   string              `json:"level"`
	ID      string              `json:"id"`
	Kind    course.QuestionKind `json:"kind"`
	Topic   string              `json:"topic"`
	Options []keyOptionJSON     `json:"options"`
	Is      bool                `json:"is"`
	Why     lab.Text            `json:"why"` // safe HTML for a typed answer that is none of the options
}

type keyOptionJSON struct {
	optionJSON
	Pair   string   `json:"pair,omitempty"` // kind match: the first option that has the same pair
	Accept []string `json:"accept,omitempty"`
}

type memoryJSON struct {
	Course   string     `json:"course"`
	Question string     `json:"question"`
	Correct  bool       `json:"correct"`
	Due      *time.Time `json:"due,omitempty"`
	At       time.Time  `json:"at"`
}

func memoryOf(m quiz.Memory) memoryJSON {
	out := memoryJSON{Course: m.Course, Question: m.Question, Correct: m.Correct, At: m.At}
	if !m.Due.IsZero() {
		out.Due = &m.Due
	}
	return out
}

// practiced calls f for every question that needs no cluster.
func (s *Server) practiced(f func(*course.Level, *course.Question)) {
	for _, c := range s.Library.All() {
		for _, l := range c.Levels {
			for _, q := range l.Quiz {
				if !l.Coming && q.Kind != course.InCluster {
					f(l, q)
				}
			}
		}
	}
}

func keyOf(l *course.Level, q *course.Question) keyJSON {
	k := keyJSON{Course: l.Course.ID, Level: l.ID, ID: q.ID, Kind: q.Kind, Topic: q.Topic, Options: []keyOptionJSON{}, Is: q.Is, Why: q.Otherwise}
	pairs := map[lab.Text]string{}
	for _, p := range q.Pairs() {
		pairs[p.Text] = p.ID
	}
	for _, o := range q.Options {
		option := keyOptionJSON{optionJSON: optionJSON{ID: o.ID, Right: o.Right, Why: o.WhyHTML}, Accept: o.Accept}
		if q.Kind == course.Match {
			option.Pair = pairs[o.Pair]
		}
		k.Options = append(k.Options, option)
	}
	return k
}

func (s *Server) practice(w http.ResponseWriter, r *http.Request) error {
	memories, err := s.Store.Memories(r.Context(), learnerOf(r))
	if err != nil {
		return err
	}
	kept := map[[2]string]quiz.Memory{}
	for _, m := range memories {
		kept[[2]string{m.Course, m.Question}] = m
	}
	questions, known := []keyJSON{}, []memoryJSON{}
	s.practiced(func(l *course.Level, q *course.Question) {
		questions = append(questions, keyOf(l, q))
		if m, ok := kept[[2]string{l.Course.ID, q.ID}]; ok {
			known = append(known, memoryOf(m))
		}
	})
	writeJSON(w, http.StatusOK, map[string]any{"questions": questions, "memories": known})
	return nil
}

// practiceAnswers takes answers that were given when At says, perhaps without a network. They are judged
// here whatever the page thought of them. Sending one again changes nothing.
func (s *Server) practiceAnswers(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Answers []struct {
			Course   string    `json:"course"`
			Question string    `json:"question"`
			Answer   []string  `json:"answer"`
			At       time.Time `json:"at"`
		} `json:"answers"`
	}
	if err := s.readJSON(r, &in); err != nil {
		return err
	}
	if len(in.Answers) > practiceBatch {
		return lab.Fail(lab.CodeInvalid, "一次送出太多答案，請分批送。", "These are too many answers at once. Send them in parts.")
	}
	out, refused := []memoryJSON{}, 0
	for _, a := range in.Answers {
		l, q := s.practiceQuestion(a.Course, a.Question)
		if q == nil || !q.Valid(a.Answer) {
			refused++ // the course has changed since: no reason to keep the others
			continue
		}
		m, err := s.practise(r.Context(), learnerOf(r), l, q, a.Answer, s.sensible(a.At))
		if err != nil {
			return err
		}
		out = append(out, memoryOf(m))
	}
	writeJSON(w, http.StatusOK, map[string]any{"memories": out, "refused": refused})
	return nil
}

// sensible is when an answer was given, by the server's clock where the browser's can't be believed.
func (s *Server) sensible(at time.Time) time.Time {
	now := s.Now()
	if at.After(now) || now.Sub(at) > practiceAge {
		return now
	}
	return at
}

func (s *Server) practiceQuestion(courseID, id string) (*course.Level, *course.Question) {
	c := s.Library.Course(courseID)
	if c == nil {
		return nil, nil
	}
	for _, l := range c.Levels {
		if q := question(l, id); q != nil && !l.Coming && q.Kind != course.InCluster {
			return l, q
		}
	}
	return nil, nil
}

// practise remembers an answer. A right one counts in the level too; a wrong one takes nothing away there.
func (s *Server) practise(ctx context.Context, learner lab.LearnerID, l *course.Level, q *course.Question, answer []string, at time.Time) (quiz.Memory, error) {
	correct := q.Right(answer)
	m, err := s.remember(ctx, learner, l, q, correct, at)
	if err != nil || !correct {
		return m, err
	}
	answers, err := s.Store.Answers(ctx, learner, l.Course.ID, l.ID)
	if err != nil {
		return m, err
	}
	for _, a := range answers {
		if a.Question == q.ID && a.Correct {
			return m, nil
		}
	}
	_, err = s.Store.SaveAnswer(ctx, Answer{Learner: learner, Course: l.Course.ID, Level: l.ID, Question: q.ID, Options: answer, Correct: true})
	return m, err
}

func (s *Server) remember(ctx context.Context, learner lab.LearnerID, l *course.Level, q *course.Question, correct bool, at time.Time) (quiz.Memory, error) {
	return s.Store.Remember(ctx, learner, l.Course.ID, q.ID, func(m quiz.Memory) quiz.Memory { return m.After(correct, at) })
}
