// Package ui draws the pages: typed view models and the templ components that
// turn them into HTML, and the interface's texts. It does no I/O.
package ui

import (
	"fmt"

	"github.com/a-h/templ"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

// Page is what every page needs.
type Page struct {
	Texts *Texts
	Lang  lab.Lang
	Title string
	Path  string // for the language links
	Theme string // light, dark or empty: the system's
	Nonce string // for style elements that scripts make
	// Preview: the page is an author's and follows changes of the courses.
	Preview bool
	// Addresses of the assets; empty without a bundle.
	Script, Style, Icons, Icon string
}

// T is the text of a key in the page's language.
func (p Page) T(key string, args ...any) string { return p.Texts.In(p.Lang, key, args...) }

// In is a lesson's text in the page's language.
func (p Page) In(t lab.Text) string { return t.In(p.Lang) }

// Other is the language that the page isn't in.
func (p Page) Other() lab.Lang {
	if p.Lang == lab.ZhTW {
		return lab.En
	}
	return lab.ZhTW
}

// OtherLink is the page in the other language.
func (p Page) OtherLink() templ.SafeURL {
	return templ.SafeURL(p.Path + "?lang=" + string(p.Other()))
}

// Card is a course or a level with the learner's progress.
type Card struct {
	Number  int
	Title   string
	Summary string
	Link    templ.SafeURL // empty: not open yet
	Minutes int
	Percent int
	Parts   string // "7 levels", "5 exercises · 6 questions"
	Current bool   // where to go on
}

// HomePage is the list of courses.
type HomePage struct {
	Page
	Courses []Card
	Go      templ.SafeURL // the one clear next step
	Started bool
	Due     []DueLine
}

// DueLine is a level with quiz questions that come back now.
type DueLine struct {
	Course, Level string
	Count         int
	Link          templ.SafeURL
}

// due is how many questions come back.
func (p HomePage) due() int {
	n := 0
	for _, l := range p.Due {
		n += l.Count
	}
	return n
}

// GlossaryPage is the list of terms.
type GlossaryPage struct {
	Page
	Terms []GlossaryEntry
}

// GlossaryEntry is a term with where it is taught.
type GlossaryEntry struct {
	ID, Name, Metaphor, Truth string
	Taught                    []GlossaryLink
}

// GlossaryLink is a level that teaches a term.
type GlossaryLink struct {
	Title string
	Link  templ.SafeURL
}

// QuizzesPage is the page of quizzes without a cluster.
type QuizzesPage struct {
	Page
	Worker  string // the script that keeps the page
	Seed    string // of the order of options
	Courses []QuizCourse
}

// QuizCourse is a course that has questions.
type QuizCourse struct {
	ID, Title string
	Levels    []QuizLevel
}

// count is how many questions the course has.
func (c QuizCourse) count() int {
	n := 0
	for _, l := range c.Levels {
		n += len(l.Questions)
	}
	return n
}

// QuizLevel is a level's questions; LeftOut are those that need a cluster.
type QuizLevel struct {
	ID        string
	Number    int
	Title     string
	Link      templ.SafeURL
	Questions []*course.Question
	LeftOut   int
}

// leftOut are the levels that have questions which need a cluster.
func (p QuizzesPage) leftOut() []QuizLevel {
	var out []QuizLevel
	for _, c := range p.Courses {
		for _, l := range c.Levels {
			if l.LeftOut > 0 {
				out = append(out, l)
			}
		}
	}
	return out
}

func (p QuizzesPage) count() int {
	n := 0
	for _, c := range p.Courses {
		n += c.count()
	}
	return n
}

// level is what the parts of a lesson's quiz need to draw a question.
func (p QuizzesPage) level() LevelPage { return LevelPage{Page: p.Page, Seed: p.Seed} }

// CoursePage is the list of a course's levels.
type CoursePage struct {
	Page
	Name    string
	Summary string
	Percent int
	Levels  []Card
	Quizzes templ.SafeURL
}

// LevelPage is the lab.
type LevelPage struct {
	Page
	Course   *course.Course
	Level    *course.Level
	Doc      *course.Document
	Percent  int
	Seed     string   // the order of quiz options is the learner's own
	Missing  []string // capabilities that the driver lacks: the level can't be done here
	Panels   []string // parts of the page that do something to the cluster from outside
	Next     *course.Level
	Previous *course.Level
}

// ErrorPage tells what went wrong and where to go.
type ErrorPage struct {
	Page
	Status  int
	Message string
}

// tools are the tabs below the floor.
func (p LevelPage) tools() []string {
	out := []string{"terminal", "files", "record"}
	for _, panel := range p.Panels {
		if panel != course.PanelKitchens { // which is on the floor itself
			return append(out, "controls")
		}
	}
	return out
}

func courseLink(c *course.Course) templ.SafeURL { return templ.SafeURL("/courses/" + c.ID) }

func levelLink(l *course.Level) templ.SafeURL {
	return templ.SafeURL("/courses/" + l.Course.ID + "/" + l.ID)
}

func exerciseLink(e *course.Exercise) templ.SafeURL {
	return levelLink(e.Level) + templ.SafeURL("#exercise-"+e.ID)
}

func quizzesLink(l *course.Level) templ.SafeURL {
	return templ.SafeURL("/quizzes#" + l.Course.ID + "/" + l.ID)
}

// LevelLink is the address of a level's page.
func LevelLink(l *course.Level) templ.SafeURL { return levelLink(l) }

// CourseLink is the address of a course's page.
func CourseLink(c *course.Course) templ.SafeURL { return courseLink(c) }

func percentText(n int) string { return fmt.Sprintf("%d%%", n) }

// progressClass picks one of the widths in the style sheet, so that no inline style is needed.
func progressClass(percent int) string { return fmt.Sprintf("w-%d", (percent+2)/5*5) }
