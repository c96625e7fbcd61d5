package web

import (
	"context"
	"net/http"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"kubistro/internal/lab"
)

func (s *Server) listExercises(w http.ResponseWriter, r *http.Request) error {
	states, err := s.Lab.Exercises(r.Context(), learnerOf(r), sessionID(r), r.URL.Query().Get("level"))
	if err != nil {
		return err
	}
	if states == nil {
		states = []lab.ExerciseState{}
	}
	writeJSON(w, http.StatusOK, map[string]any{"exercises": s.showExercises(r, states)})
	return nil
}

// exerciseJSON adds the texts of the hints that are open.
type exerciseJSON struct {
	lab.ExerciseState
	HintsTotal int        `json:"hintsTotal"`
	HintTexts  []lab.Text `json:"hintTexts"` // safe HTML
}

func (s *Server) showExercises(r *http.Request, states []lab.ExerciseState) []exerciseJSON {
	out := make([]exerciseJSON, 0, len(states))
	for _, st := range states {
		out = append(out, s.showExercise(st))
	}
	return out
}

func (s *Server) showExercise(st lab.ExerciseState) exerciseJSON {
	v := exerciseJSON{ExerciseState: st, HintTexts: []lab.Text{}}
	if v.Checks == nil {
		v.Checks = []lab.CheckResult{}
	}
	if c := s.Library.Course(st.Course); c != nil && c.Exercise(st.Exercise) != nil {
		e := c.Exercise(st.Exercise)
		v.HintsTotal = len(e.Hints)
		open := st.Opened
		for i := len(open); i < st.Hints; i++ {
			open = append(open, i)
		}
		for _, i := range open {
			if i < len(e.Hints) { // a lesson may have lost some since
				v.HintTexts = append(v.HintTexts, e.Hints[i].HTML)
			}
		}
	}
	return v
}

type exerciseCall func(ctx context.Context, learner lab.LearnerID, id, exercise string) (lab.ExerciseState, error)

func (s *Server) exercise(w http.ResponseWriter, r *http.Request, do exerciseCall) error {
	st, err := do(r.Context(), learnerOf(r), sessionID(r), chi.URLParam(r, "exercise"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, s.showExercise(st))
	return nil
}

func (s *Server) startExercise(w http.ResponseWriter, r *http.Request) error {
	return s.exercise(w, r, s.Lab.StartExercise)
}

func (s *Server) checkExercise(w http.ResponseWriter, r *http.Request) error {
	return s.exercise(w, r, s.Lab.Check)
}

func (s *Server) hintExercise(w http.ResponseWriter, r *http.Request) error {
	return s.exercise(w, r, s.Lab.Hint)
}

func (s *Server) resetExercise(w http.ResponseWriter, r *http.Request) error {
	op, err := s.Lab.ResetExercise(r.Context(), learnerOf(r), sessionID(r), chi.URLParam(r, "exercise"))
	if err != nil {
		return err
	}
	return accepted(w, r, op)
}

func (s *Server) solveExercise(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Solution int `json:"solution"`
	}
	if r.ContentLength != 0 {
		if err := s.readJSON(r, &in); err != nil {
			return err
		}
	}
	op, err := s.Lab.Solve(r.Context(), learnerOf(r), sessionID(r), chi.URLParam(r, "exercise"), in.Solution)
	if err != nil {
		return err
	}
	return accepted(w, r, op)
}

// answerMost is the longest answer that can be typed, in characters.
const answerMost = 500

func (s *Server) answerCheck(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Text string `json:"text"`
	}
	if err := s.readJSON(r, &in); err != nil {
		return err
	}
	if utf8.RuneCountInString(in.Text) > answerMost {
		return lab.Fail(lab.CodeTooLarge,
			"答案太長了，請寫在 500 個字以內。",
			"The answer is too long. Keep it under 500 characters.")
	}
	return s.exercise(w, r, func(ctx context.Context, l lab.LearnerID, id, exercise string) (lab.ExerciseState, error) {
		return s.Lab.Answer(ctx, l, id, exercise, chi.URLParam(r, "check"), in.Text)
	})
}
