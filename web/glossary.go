package web

import (
	"net/http"
	"slices"

	"kubistro/internal/course"
	"kubistro/web/ui"
)

// glossary is the page of all terms, in the order in which they are taught.
func (s *Server) glossary(w http.ResponseWriter, r *http.Request) error {
	if err := s.keepLang(w, r); err != nil {
		return err
	}
	p := ui.GlossaryPage{Page: s.newPage(r, "")}
	p.Title = p.T("glossary.title") + " · Kubistro"
	for _, c := range s.Library.All() {
		for _, t := range c.Glossary {
			if slices.ContainsFunc(p.Terms, func(e ui.GlossaryEntry) bool { return e.ID == t.ID }) {
				continue // courses share the glossary
			}
			p.Terms = append(p.Terms, s.glossaryEntry(p.Page, t))
		}
	}
	s.render(w, r, http.StatusOK, ui.Glossary(p))
	return nil
}

// glossaryEntry names only the levels that are there: an author's server may be without the built-in courses.
func (s *Server) glossaryEntry(p ui.Page, t *course.Term) ui.GlossaryEntry {
	e := ui.GlossaryEntry{ID: t.ID, Name: t.Name, Metaphor: p.In(t.Metaphor), Truth: p.In(t.Truth)}
	for _, at := range t.Taught {
		if c := s.Library.Course(at.Course); c != nil {
			if l := c.Level(at.Level); l != nil && !l.Coming {
				e.Taught = append(e.Taught, ui.GlossaryLink{
					Title: p.In(c.Title) + " · " + p.T("quizzes.level", l.Number, p.In(l.Title)), Link: ui.LevelLink(l),
				})
			}
		}
	}
	return e
}
