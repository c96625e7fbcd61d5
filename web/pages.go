package web

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/web/ui"
)

const themeCookie = "kubistro_theme"

// page adapts a handler of pages: errors become a page in the reader's language.
func (s *Server) page(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.assets.Built() {
			s.render(w, r, http.StatusServiceUnavailable, ui.NotBuilt())
			return
		}
		if e := s.guard(h, w, r); e != nil {
			s.errorPage(w, r, e)
		}
	}
}

func (s *Server) errorPage(w http.ResponseWriter, r *http.Request, e *lab.Error) {
	code := status(e.Code)
	p := s.newPage(r, strconv.Itoa(code)+" · Kubistro")
	s.render(w, r, code, ui.Error(ui.ErrorPage{Page: p, Status: code, Message: e.Text.In(p.Lang)}))
}

// render draws a page completely before the first byte is sent.
func (s *Server) render(w http.ResponseWriter, r *http.Request, code int, c templ.Component) {
	var b bytes.Buffer
	if err := c.Render(r.Context(), &b); err != nil {
		s.Log.Error("page can't be drawn", "path", r.URL.Path, "error", err)
		http.Error(w, "The page can't be drawn. · 頁面無法顯示。", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Cookie, Accept-Language")
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		w.Write(b.Bytes())
	}
}

func (s *Server) newPage(r *http.Request, title string) ui.Page {
	p := ui.Page{
		Texts: s.texts, Lang: langOf(r), Title: title, Path: r.URL.Path, Nonce: nonceOf(r), Preview: s.Preview != nil,
		Script: s.assets.URL("main.js"), Style: s.assets.URL("main.css"),
		Icons: s.assets.URL("icons.svg"), Icon: s.assets.URL("favicon.svg"),
	}
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		p.Theme = c.Value
	}
	return p
}

func (s *Server) home(w http.ResponseWriter, r *http.Request) error {
	if err := s.keepLang(w, r); err != nil {
		return err
	}
	p := ui.HomePage{Page: s.newPage(r, "Kubistro"), Go: "/"}
	var err error
	if p.Due, err = s.due(r.Context(), learnerOf(r), p.Page); err != nil {
		return err
	}
	for _, c := range s.Library.All() {
		progress, err := s.progressOf(r.Context(), learnerOf(r), c)
		if err != nil {
			return err
		}
		if next := nextLevel(c, progress); next != nil && (p.Go == "/" || progress.started() && !p.Started) {
			p.Go, p.Started = ui.LevelLink(next), progress.started()
		}
		p.Courses = append(p.Courses, ui.Card{
			Title: p.In(c.Title), Summary: p.In(c.Summary), Link: ui.CourseLink(c),
			Percent: progress.percent(), Parts: p.T("course.levels", len(c.Levels)),
		})
	}
	s.render(w, r, http.StatusOK, ui.Home(p))
	return nil
}

// nextLevel is the first open level that isn't complete, or the last open one.
func nextLevel(c *course.Course, p courseProgress) *course.Level {
	var last *course.Level
	for _, l := range c.Levels {
		if l.Coming {
			continue
		}
		last = l
		if p.levels[l.ID].percent() < 100 {
			return l
		}
	}
	return last
}

func (s *Server) course(w http.ResponseWriter, r *http.Request) error {
	if err := s.keepLang(w, r); err != nil {
		return err
	}
	c := s.Library.Course(chi.URLParam(r, "course"))
	if c == nil {
		return errNoCourse
	}
	progress, err := s.progressOf(r.Context(), learnerOf(r), c)
	if err != nil {
		return err
	}
	p := ui.CoursePage{Page: s.newPage(r, ""), Percent: progress.percent()}
	p.Name, p.Summary = p.In(c.Title), p.In(c.Summary)
	p.Quizzes = templ.SafeURL("/quizzes#" + c.ID)
	p.Title = p.Name + " · Kubistro"
	next := nextLevel(c, progress)
	for _, l := range c.Levels {
		card := ui.Card{Number: l.Number, Title: p.In(l.Title), Summary: p.In(l.Summary), Minutes: l.Minutes}
		if !l.Coming {
			card.Link = ui.LevelLink(l)
			card.Percent = progress.levels[l.ID].percent()
			card.Parts = p.T("level.parts", len(l.Exercises), len(l.Quiz))
			card.Current = l == next && card.Percent < 100
		}
		p.Levels = append(p.Levels, card)
	}
	s.render(w, r, http.StatusOK, ui.Course(p))
	return nil
}

func (s *Server) level(w http.ResponseWriter, r *http.Request) error {
	if err := s.keepLang(w, r); err != nil {
		return err
	}
	l, err := s.levelOf(r)
	if err != nil {
		return err
	}
	progress, err := s.progressOf(r.Context(), learnerOf(r), l.Course)
	if err != nil {
		return err
	}
	p := ui.LevelPage{Page: s.newPage(r, ""), Course: l.Course, Level: l, Seed: string(learnerOf(r)), Percent: progress.levels[l.ID].percent()}
	p.Title = p.In(l.Title) + " · " + p.In(l.Course.Title) + " · Kubistro"
	if p.Doc = l.Lesson[p.Lang]; p.Doc == nil {
		return errNoLevel
	}
	p.Missing, p.Panels = s.missing(l), s.panels(l)
	for i, other := range l.Course.Levels {
		if other != l {
			continue
		}
		if i > 0 {
			p.Previous = l.Course.Levels[i-1]
		}
		if i+1 < len(l.Course.Levels) {
			p.Next = l.Course.Levels[i+1]
		}
	}
	s.render(w, r, http.StatusOK, ui.Level(p))
	return nil
}

// missing lists what a level needs and the driver lacks.
func (s *Server) missing(l *course.Level) []string {
	has := map[string]bool{}
	for _, c := range s.Capabilities {
		has[c] = true
	}
	var out []string
	for _, need := range l.Needs {
		if !has[need] {
			out = append(out, need)
		}
	}
	return out
}

// panels lists what the level's page shows of what the driver can do from outside.
func (s *Server) panels(l *course.Level) []string {
	needs := map[string]string{course.PanelKitchens: "kitchen-power", course.PanelLoops: "control-loops", course.PanelClock: "clock", course.PanelEtcd: "etcd"}
	var out []string
	for _, p := range l.Panels {
		if slices.Contains(s.Capabilities, needs[p]) {
			out = append(out, p)
		}
	}
	return out
}

// setTheme keeps light, dark or the system's choice.
func (s *Server) setTheme(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Theme string `json:"theme"`
	}
	if err := s.readJSON(r, &in); err != nil {
		return err
	}
	switch in.Theme {
	case "light", "dark", "auto":
		s.setCookie(w, r, themeCookie, in.Theme)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return lab.Fail(lab.CodeInvalid, "theme 只能是 light、dark 或 auto。", "theme must be light, dark or auto.")
}

// notFound answers what no route does: JSON below /api, else a page.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	if isAPI(r) {
		writeError(w, r, lab.Fail(lab.CodeNotFound,
			"沒有這個 API 位址，請對照 API 文件。", "There is no such API address. See the API's documentation."))
		return
	}
	s.page(func(http.ResponseWriter, *http.Request) error {
		return lab.Fail(lab.CodeNotFound,
			"找不到這一頁。網址可能打錯了，或內容已經搬走。",
			"This page isn't here. The address may be mistyped, or the page has moved.")
	})(w, r)
}

func (s *Server) wrongMethod(w http.ResponseWriter, r *http.Request) {
	e := lab.Fail(lab.CodeInvalid, "這個位址不接受 "+knownMethod(r.Method)+" 方法。", "This address doesn't take the method "+knownMethod(r.Method)+".")
	writeJSON(w, http.StatusMethodNotAllowed, errorBody(e, langOf(r)))
}

func (s *Server) favicon(w http.ResponseWriter, r *http.Request) {
	if u := s.assets.URL("favicon.svg"); u != "" {
		http.Redirect(w, r, u, http.StatusFound)
		return
	}
	http.NotFound(w, r)
}
