package browsertest

import (
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"kubistro/web"
	"kubistro/web/webtest"
)

const loaded = "document.querySelector('.js-quizzes')?.dataset.loaded === 'true'"

// shown is the question that the page of quizzes shows; empty for none.
const shown = "(document.querySelector('.js-slot .js-question')?.dataset.question ?? '')"

// The right answer of each question of the sample course, as a person gives it.
const answerRight = `(() => {
	const f = document.querySelector(".js-slot .js-question");
	const check = (v) => { f.querySelector("input[value=" + v + "]").checked = true; };
	switch (f.dataset.question) {
	case "new-pod": check("delete"); break;
	case "keeps": check("name"); check("ip"); break;
	case "relay":
		for (const id of ["r1", "r2", "r3"])
			for (let n = 0; n < 3; n++) f.querySelector("[data-option=" + id + "] .js-down").click();
		break;
	case "who": for (const o of f.querySelectorAll(".js-option")) o.querySelector("select").value = o.dataset.option; break;
	case "moves": check("false"); check("never"); break;
	case "sign": f.querySelector(".js-typed").value = " sigterm "; break;
	}
	f.requestSubmit();
})()`

func TestQuizzes(t *testing.T) {
	// The server's clock is behind: what is missed now was missed yesterday by the browser's.
	s := webtest.NewServer(t, func(c *web.Config) { c.Now = func() time.Time { return time.Now().Add(-25 * time.Hour) } })
	b := open(t, 1280, 720, "en")
	b.run(chromedp.Navigate(s.URL + "/quizzes#restaurant/1"))
	b.wait("the questions", loaded)
	b.wait("the level of the link", "document.querySelector('.js-from').value === 'restaurant/1'")
	b.do(`document.querySelector("input[name=many][value='0']").click(); document.querySelector(".js-form [type=submit]").focus()`)
	b.run(chromedp.KeyEvent(kb.Enter))
	seen := map[string]bool{}
	for i := range 6 {
		b.wait("a question", shown+" !== ''")
		id := js[string](b, shown)
		if seen[id] {
			t.Fatalf("%s comes twice", id)
		}
		seen[id] = true
		if id == "new-pod" {
			b.do(`document.querySelector(".js-slot input[value=shout]").click(); document.querySelector(".js-slot form").requestSubmit()`)
			b.wait("the explanation", "document.querySelector('.js-slot [data-option=shout] .js-why')?.textContent.includes('loud')")
			// A second try, after reading why, is for oneself.
			b.do(`document.querySelector(".js-retry").click(); ` + answerRight)
		} else {
			b.do(answerRight)
		}
		b.wait("the verdict on "+id, "document.querySelector('.js-slot .js-question').dataset.correct === 'true'")
		b.wait("the way on", "document.activeElement === document.querySelector('.js-next')")
		if i == 0 {
			b.shot("quizzes-answered")
		}
		b.run(chromedp.KeyEvent(kb.Enter))
	}
	b.wait("the result", "document.querySelector('.js-result').textContent.startsWith('5 of 6')")
	b.wait("the focus on it", "document.activeElement === document.querySelector('.js-end')")
	b.shot("quizzes-result")
	b.wait("all answers with the server", "localStorage.getItem('kubistro.quiz.queue') === null")
	right := 0
	for _, m := range s.Store.Practised() {
		if m.Answered != 1 {
			t.Errorf("%s was answered %d times", m.Question, m.Answered)
		}
		if m.Correct {
			right++
		}
	}
	if right != 5 {
		t.Errorf("the server has %d right answers", right)
	}
	if n := s.Lab.Count(); n != 0 {
		t.Errorf("%d sessions were opened", n)
	}
	b.do("document.querySelector('.js-back').click()")
	b.wait("the score", "document.querySelector('.js-scores').textContent.includes('Restarts')")
	b.wait("what comes back", "!document.querySelector('.js-due').hidden")
	b.do("document.querySelector('.js-due-go').click()")
	b.wait("the missed question", shown+" === 'new-pod'")
	b.do(answerRight)
	b.wait("the end of the list", "!document.querySelector('.js-next').hidden && document.querySelector('.js-next').textContent.includes('result')")
}

// TestTermsExplainThemselves comes to a term by keyboard: it shows its line, and Escape takes that away.
func TestTermsExplainThemselves(t *testing.T) {
	b, _, _ := openLab(t, "en", nil)
	b.do(`document.querySelector(".term a").focus()`)
	const tip = "getComputedStyle(document.querySelector('.term-tip')).display"
	b.wait("the explanation", tip+" === 'block' && document.querySelector('.term-tip').textContent.includes('scheduled')")
	// A window without the focus of the desktop, as here, sends no such event by itself.
	b.do(`document.querySelector(".term").dispatchEvent(new FocusEvent("focusin"))`)
	b.wait("it within the lesson", "document.querySelector('.term-tip').getBoundingClientRect().right <= document.querySelector('.js-lesson').getBoundingClientRect().right")
	b.fits("the explanation of a term")
	b.shot("term")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.wait("quiet", tip+" === 'none'")
	if got := js[string](b, "document.activeElement.getAttribute('href')"); got != "/glossary#pod" {
		t.Errorf("the focus is on %q", got)
	}
}

// TestQuizzesWithoutNetwork pulls the plug: the page goes on, comes back after a reload, and its answers arrive later.
func TestQuizzesWithoutNetwork(t *testing.T) {
	s := webtest.NewServer(t, nil)
	b := open(t, 390, 844, "en")
	b.forgive("ERR_")
	b.forgive("503")
	b.run(chromedp.Navigate(s.URL + "/quizzes"))
	b.wait("the questions", loaded)
	b.do(`window.kept = false;
		const look = async () => {
			const names = ["/quizzes", "/api/v1/quizzes", ...[...document.querySelectorAll("script[src], link[rel=stylesheet]")].map((e) => e.src || e.href)];
			const found = await Promise.all(names.map((n) => caches.match(n)));
			window.kept = found.every(Boolean) && Boolean(navigator.serviceWorker.controller);
			if (!window.kept) setTimeout(look, 50);
		};
		void look();`)
	b.wait("the page in the worker's cache", "window.kept")

	address := s.Listener.Addr().String()
	s.CloseClientConnections()
	s.Server.Close()
	b.run(chromedp.Reload())
	b.wait("the page without a network", loaded)
	b.wait("its style", "getComputedStyle(document.querySelector('.topbar')).display === 'flex'")
	b.do(`document.querySelector(".js-form").requestSubmit()`)
	b.wait("a question", shown+" !== ''")
	id := js[string](b, shown)
	b.do(answerRight)
	b.wait("the verdict", "document.querySelector('.js-slot .js-question').dataset.correct === 'true'")
	b.wait("word of the waiting answer", "document.querySelector('.js-offline').textContent.includes('wait for a connection: 1')")
	b.shot("quizzes-offline")
	b.fits("quizzes without a network")
	if n := len(s.Store.Practised()); n != 0 {
		t.Fatalf("the server has %d answers already", n)
	}

	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	again := httptest.NewUnstartedServer(s.Web)
	_ = again.Listener.Close()
	again.Listener = l
	again.Start()
	t.Cleanup(again.Close)
	b.wait("the answer sent", "document.querySelector('.js-offline').hidden && localStorage.getItem('kubistro.quiz.queue') === null")
	kept := s.Store.Practised()
	if len(kept) != 1 || kept[0].Question != id || !kept[0].Correct || kept[0].Answered != 1 {
		t.Errorf("the server has %+v, want one right answer to %s", kept, id)
	}
}
