package web

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"

	"github.com/go-chi/chi/v5"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

var (
	errNoCourse = lab.Fail(lab.CodeNotFound,
		"沒有這門課程。首頁列出了所有課程。",
		"There is no such course. The start page lists all of them.")
	errNoLevel = lab.Fail(lab.CodeNotFound,
		"這門課程沒有這一關，或者還沒開放。",
		"This course has no such level, or it isn't open yet.")
	errNoQuestion = lab.Fail(lab.CodeNotFound,
		"這一關沒有這個題目。",
		"This level has no such question.")
	errNoLessonFile = lab.Fail(lab.CodeNotFound,
		"這一關沒有這個檔案。",
		"This level has no such file.")
)

func newBytesReader(b []byte) io.Reader { return bytes.NewReader(b) }

// ignoreGone forgives that the client went away before it had everything.
func ignoreGone(error) error { return nil }

// levelOf finds the open level that a request names.
func (s *Server) levelOf(r *http.Request) (*course.Level, error) {
	c := s.Library.Course(chi.URLParam(r, "course"))
	if c == nil {
		return nil, errNoCourse
	}
	l := c.Level(chi.URLParam(r, "level"))
	if l == nil || l.Coming {
		return nil, errNoLevel
	}
	return l, nil
}

type levelJSON struct {
	ID      string   `json:"id"`
	Number  int      `json:"number"`
	Title   lab.Text `json:"title"`
	Summary lab.Text `json:"summary"`
	Minutes int      `json:"minutes"`
	Coming  bool     `json:"coming,omitempty"`
	Percent int      `json:"percent"`
}

type courseJSON struct {
	ID      string      `json:"id"`
	Title   lab.Text    `json:"title"`
	Summary lab.Text    `json:"summary"`
	Percent int         `json:"percent"`
	Levels  []levelJSON `json:"levels"`
}

func (s *Server) listCourses(w http.ResponseWriter, r *http.Request) error {
	out := []courseJSON{}
	for _, c := range s.Library.All() {
		p, err := s.progressOf(r.Context(), learnerOf(r), c)
		if err != nil {
			return err
		}
		v := courseJSON{ID: c.ID, Title: c.Title, Summary: c.Summary, Percent: p.percent(), Levels: []levelJSON{}}
		for _, l := range c.Levels {
			v.Levels = append(v.Levels, levelJSON{
				ID: l.ID, Number: l.Number, Title: l.Title, Summary: l.Summary, Minutes: l.Minutes,
				Coming: l.Coming, Percent: p.levels[l.ID].percent(),
			})
		}
		out = append(out, v)
	}
	writeJSON(w, http.StatusOK, map[string]any{"courses": out})
	return nil
}

func (s *Server) progress(w http.ResponseWriter, r *http.Request) error {
	c := s.Library.Course(chi.URLParam(r, "course"))
	if c == nil {
		return errNoCourse
	}
	p, err := s.progressOf(r.Context(), learnerOf(r), c)
	if err != nil {
		return err
	}
	type levelProgress struct {
		Done    int `json:"done"`
		Total   int `json:"total"`
		Percent int `json:"percent"`
	}
	levels := map[string]levelProgress{}
	for _, l := range c.Levels {
		t := p.levels[l.ID]
		levels[l.ID] = levelProgress{Done: t.done, Total: t.total, Percent: t.percent()}
	}
	writeJSON(w, http.StatusOK, map[string]any{"course": c.ID, "percent": p.percent(), "levels": levels})
	return nil
}

// lessonFile gives a manifest of a level as the lesson shows it.
func (s *Server) lessonFile(w http.ResponseWriter, r *http.Request) error {
	l, err := s.levelOf(r)
	if err != nil {
		return err
	}
	name := chi.URLParam(r, "*")
	if l.Files == nil || !fs.ValidPath(name) || !shown(l, name) {
		return errNoLessonFile
	}
	body, err := fs.ReadFile(l.Files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoLessonFile
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	_, err = w.Write(body)
	return ignoreGone(err)
}

// shown reports whether the lesson shows a file: solutions and checks stay in the kitchen.
func shown(l *course.Level, name string) bool {
	for _, d := range l.Lesson {
		for _, section := range d.Sections {
			for _, b := range section.Blocks {
				if b.Kind == course.BlockManifest && b.Path == name {
					return true
				}
			}
		}
	}
	return false
}
