package browsertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"kubistro/internal/lab"
	"kubistro/web/webtest"
)

const levelPath = "/courses/restaurant/1"

// stages of a start that has come to the scheduler.
func starting() lab.Status {
	now := time.Now()
	return lab.Status{State: lab.StateProvisioning, Why: "create", Since: now.Add(-3 * time.Second), Stage: "scheduler", Stages: []lab.Stage{
		{Name: "etcd", Started: now.Add(-3 * time.Second), Millis: 120, Done: true},
		{Name: "apiserver", Started: now.Add(-2800 * time.Millisecond), Millis: 2100, Done: true},
		{Name: "controllers", Started: now.Add(-700 * time.Millisecond), Millis: 400, Done: true},
		{Name: "scheduler", Started: now.Add(-300 * time.Millisecond)},
	}}
}

// TestLook walks through every page in both languages, light and dark, wide and
// narrow: nothing may be wider than the window, nothing may be refused by the
// page's policy, and pictures are taken for people to look at.
func TestLook(t *testing.T) {
	sizes := []struct {
		name          string
		width, height int64
	}{{"wide", 1280, 720}, {"phone", 390, 844}}
	for _, size := range sizes {
		for _, look := range []struct{ lang, theme string }{{"zh-TW", "light"}, {"en", "dark"}} {
			name := fmt.Sprintf("%s-%s-%s", size.name, look.lang, look.theme)
			t.Run(name, func(t *testing.T) {
				s := webtest.NewServer(t, nil)
				b := open(t, size.width, size.height, look.lang)
				b.theme(look.theme)
				visit := func(page, path string) {
					b.run(chromedp.Navigate(s.URL + path))
					b.shot(name + "-" + page)
					b.fits(page)
				}
				visit("home", "/")
				visit("course", "/courses/restaurant")
				visit("glossary", "/glossary")
				visit("quizzes", "/quizzes")
				b.wait("the questions", loaded)
				b.shot(name + "-quizzes")
				b.do(`document.querySelector(".js-form").requestSubmit()`)
				b.wait("a question", shown+" !== ''")
				b.shot(name + "-quizzes-question")
				b.fits("a question of the quizzes")
				b.forgive("404")
				visit("missing", "/nothing/here")

				s.Lab.Start = lab.StateProvisioning
				b.run(chromedp.Navigate(s.URL + levelPath))
				b.wait("the session", "window.kubistro?.state() === 'provisioning'")
				session := s.Lab.Only()
				session.SetStatus(starting())
				b.wait("the running stage", `document.querySelector('.stage[data-name=scheduler][data-state=now]') !== null`)
				b.showView("floor")
				b.shot(name + "-starting")
				session.SetStatus(lab.Status{State: lab.StateReady})
				session.Restaurant()
				b.wait("three cooks", "document.querySelectorAll('.cook[data-mood=ready]').length === 3")
				b.shot(name + "-floor")
				b.fits("floor")
				session.Trouble()
				b.wait("trouble", "document.querySelector('.cook[data-mood=crash]') !== null")
				b.run(chromedp.Click(chromedp.CSS(".cook[data-mood=image] button")))
				b.shot(name + "-trouble")
				b.showView("lesson")
				b.do(`document.querySelector('#exercise-bare-pod').scrollIntoView()`)
				b.shot(name + "-exercise")
				b.fits("lesson")
				b.showView("terminal")
				b.wait("the prompt", "window.kubistro.terminalText().includes('learner')")
				b.shot(name + "-terminal")
				b.showView("files")
				b.do(`document.querySelector('.js-open').click()`)
				b.wait("the editor", "document.querySelector('.cm-content')?.textContent.includes('replicas')")
				b.shot(name + "-files")
				b.fits("files")
				b.showView("record")
				b.wait("rows", "document.querySelectorAll('.row').length > 5")
				b.do(`document.querySelector('.row-cause').click()`)
				b.shot(name + "-record")
				b.fits("record")
			})
		}
	}
}

// showView shows a part of the lab, however wide the window is.
func (b *tab) showView(view string) {
	b.t.Helper()
	b.do(fmt.Sprintf(`{
		const narrow = matchMedia("(max-width: 760px)").matches;
		document.querySelector(narrow ? ".views [data-view=%[1]s]" : "[data-tool=%[1]s]")?.click();
	}`, view))
}

// fits fails when the page is wider than its window.
func (b *tab) fits(what string) {
	b.t.Helper()
	if over := js[int](b, "document.documentElement.scrollWidth - window.innerWidth"); over > 0 {
		b.t.Errorf("%s is %d px wider than the window", what, over)
	}
}
