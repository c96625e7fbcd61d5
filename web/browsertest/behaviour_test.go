package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"kubistro/internal/lab"
	"kubistro/web"
	"kubistro/web/webtest"
)

// openLab opens level 1 on doubles with the sample restaurant.
func openLab(t *testing.T, lang string, change func(*web.Config)) (*tab, *webtest.Server, *webtest.Session) {
	t.Helper()
	s := webtest.NewServer(t, change)
	b := open(t, 1280, 720, lang)
	b.run(chromedp.Navigate(s.URL + levelPath))
	b.wait("the session", "window.kubistro?.state() === 'ready'")
	v := s.Lab.Only()
	v.Restaurant()
	b.wait("three cooks", "document.querySelectorAll('.cook[data-mood=ready]').length === 3")
	return b, s, v
}

func TestLanguageSwitchKeepsThePlace(t *testing.T) {
	b, _, _ := openLab(t, "en", nil)
	const top = `[...document.querySelectorAll('.block')].find(e => e.getBoundingClientRect().bottom > document.querySelector('.js-lesson').getBoundingClientRect().top + 8)?.dataset.place`
	b.do(`document.querySelector('[data-place="board-2"].block').scrollIntoView()`)
	b.do(`document.querySelector('[data-tool=files]').click(); document.querySelector('.js-open').click()`)
	b.wait("the editor", "document.querySelector('.cm-content')?.textContent.includes('replicas')")
	b.do(`document.querySelector('.cm-content').focus()`)
	b.typeText("# unsaved")
	b.wait("the unsaved mark", "document.querySelector('.editor-mark').dataset.dirty === 'true'")
	before := js[string](b, top)
	b.do(`document.querySelector('.js-lang').click()`)
	b.wait("the other language", "document.documentElement.lang === 'zh-TW' && window.kubistro?.state() === 'ready'")
	b.wait("the same place", fmt.Sprintf("(%s) === %q", top, before))
	b.wait("the unsaved text", "document.querySelector('.cm-content')?.textContent.includes('# unsaved')")
	if tool := js[string](b, "document.querySelector('.tab[aria-selected=true]').dataset.tool"); tool != "files" {
		t.Errorf("the tab is %q after the switch", tool)
	}
}

func TestKeyboard(t *testing.T) {
	b, _, _ := openLab(t, "en", nil)
	b.do(`document.body.focus()`)
	b.run(chromedp.KeyEvent(kb.Tab))
	if got := js[string](b, "document.activeElement.className"); got != "skip" {
		t.Errorf("the first stop is %q, want the skip link", got)
	}
	seen := map[string]bool{}
	for range 90 {
		b.run(chromedp.KeyEvent(kb.Tab))
		what := js[string](b, `(e => {
			const ring = getComputedStyle(e).outlineStyle !== "none" || e.matches(".xterm-helper-textarea, .cm-content");
			const name = (e.getAttribute("aria-label") || e.textContent || e.getAttribute("placeholder") || e.labels?.[0]?.textContent || "").trim();
			return [e.className.split?.(" ")[0] ?? e.tagName, ring, name !== ""].join("|");
		})(document.activeElement)`)
		class, rest, _ := strings.Cut(what, "|")
		seen[class] = true
		if rest != "true|true" {
			t.Errorf("%s: focus ring and name are %s", class, rest)
		}
		if class == "tab" {
			break
		}
	}
	for _, class := range []string{"chip", "splitter", "room-main", "cook-main", "line-main", "tab"} {
		if !seen[class] {
			t.Errorf("Tab never comes to .%s; it came to %v", class, seen)
		}
	}
	b.run(chromedp.KeyEvent(kb.End))
	b.wait("the last tab by the End key", "document.activeElement.dataset.tool === 'controls' && !document.querySelector('#panel-controls').hidden")
	b.run(chromedp.KeyEvent(kb.ArrowLeft))
	b.wait("the record by arrow keys", "document.activeElement.dataset.tool === 'record' && !document.querySelector('#panel-record').hidden")
	b.do(`document.querySelector('.splitter-v').focus()`)
	width := js[int](b, "document.querySelector('.js-lesson').offsetWidth")
	b.run(chromedp.KeyEvent(kb.ArrowRight))
	b.wait("a wider lesson", fmt.Sprintf("document.querySelector('.js-lesson').offsetWidth > %d", width))
	b.do(`document.querySelector('.cook-main').focus()`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.wait("the details", "document.activeElement.classList.contains('details') && document.activeElement.textContent.includes('10.244.')")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.wait("the focus back on the cook", "document.activeElement.classList.contains('cook-main')")
}

// A button that is pressed keeps the focus, or gives it to the one that takes its place.
func TestFocusStaysInTheExercise(t *testing.T) {
	b, _, _ := openLab(t, "en", nil)
	const card = "document.querySelector('#exercise-three-cooks')"
	b.wait("the exercise", "!"+card+".querySelector('.js-start').disabled || "+card+".querySelector('.js-start').hidden")
	b.do(card + `.scrollIntoView(); ` + card + `.querySelector('.js-start').focus()`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.wait("the start", card+".querySelector('.js-start').hidden")
	b.wait("the focus on the check", "document.activeElement === "+card+".querySelector('.js-check')")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.wait("the check's answer", card+".querySelector('.js-exercise-message').textContent !== ''")
	if !js[bool](b, "document.activeElement === "+card+".querySelector('.js-check')") {
		t.Error("the check takes the focus away")
	}
}

func TestFloorFollowsTheCluster(t *testing.T) {
	b, _, v := openLab(t, "en", nil)
	if got := js[string](b, "document.querySelector('.line-figures').textContent"); got != "3/3" {
		t.Errorf("the whiteboard shows %q", got)
	}
	if got := js[int](b, "document.querySelectorAll('.dot[data-ready=true]').length"); got != 2 {
		t.Errorf("%d of the hotline's dots are ready, want 2", got)
	}
	v.Trouble()
	b.wait("the cook at the door", "document.querySelector('.door .cook-name')?.textContent === 'banquet'")
	b.wait("the dark kitchen", "document.querySelectorAll('.room[data-state=dark]').length === 1")
	b.wait("two teams", "document.querySelectorAll('.team').length === 2")
	if got := js[string](b, "document.querySelector('.cook[data-mood=crash] .cook-restarts').textContent"); got != "↻4" {
		t.Errorf("restarts are shown as %q", got)
	}
	v.Remove(webtest.Ref("Pod", "banquet"), "learner", 0)
	b.wait("an empty door", "document.querySelector('.door').hidden")
	b.wait("the live value of the lesson", "document.querySelector('[data-live-want=count]').textContent === '4'")
}

func TestRecordSurvivesAReloadAndShowsCauses(t *testing.T) {
	b, s, _ := openLab(t, "en", nil)
	b.do(`document.querySelector('[data-tool=record]').click()`)
	b.wait("rows", "document.querySelectorAll('.row').length > 8")
	b.run(chromedp.Navigate(s.URL + levelPath))
	b.wait("the rows again", "document.querySelectorAll('.row').length > 8")
	b.wait("the team lead's work", "[...document.querySelectorAll('.row')].some(r => r.textContent.includes('hired cook grill-x2k9q'))")
	b.do(`document.querySelector('[data-v=kubernetes]').click()`)
	b.wait("the other vocabulary", "[...document.querySelectorAll('.row')].some(r => r.textContent.includes('created Pod grill-5d7c9f8b6-x2k9q'))")
	b.do(`[...document.querySelectorAll('.row')].find(r => r.textContent.includes('bound Pod grill-5d7c9f8b6-x2k9q')).click()`)
	b.wait("the chain back to the learner", "[...document.querySelectorAll('.chain-step')].length === 4 && document.querySelector('.chain-step').textContent.includes('you created Deployment grill')")
	b.do(`document.querySelector('.record-bar select').value = 'learner'; document.querySelector('.record-bar select').dispatchEvent(new Event('change'))`)
	b.wait("the learner's rows only", "[...document.querySelectorAll('.row')].every(r => r.querySelector('.row-actor').textContent === 'you') && document.querySelectorAll('.row').length >= 2")
}

func TestTenThousandEventsStayFast(t *testing.T) {
	b, _, v := openLab(t, "en", nil)
	b.do(`document.querySelector('[data-tool=record]').click()`)
	for i := range 10_000 {
		v.Write("learner", "create", webtest.Ref("ConfigMap", fmt.Sprintf("c%d", i)), 0)
	}
	b.wait("all of them", "document.querySelector('.record-count').textContent.includes('100')")
	if n := js[int](b, "document.querySelectorAll('.row').length"); n > 80 {
		t.Errorf("%d rows are drawn", n)
	}
	if ms := js[float64](b, `(() => { const t = performance.now(); document.querySelector('.rows-scroll').scrollTop = 5000; document.querySelector('.rows-scroll').dispatchEvent(new Event('scroll')); return performance.now() - t })()`); ms > 200 {
		t.Errorf("scrolling takes %.0f ms", ms)
	}
}

func TestTerminalComesBackAfterACut(t *testing.T) {
	b, s, v := openLab(t, "en", nil)
	b.forgive("WebSocket")
	b.wait("the prompt", "window.kubistro.terminalText().includes('$')")
	b.do(`document.querySelector('.js-run').click()`)
	b.wait("the command's output", "window.kubistro.terminalText().includes('grill-5d7c9f8b6-b7m4z')")
	b.typeText("echo ha")
	b.wait("the half-typed command", "window.kubistro.terminalText().endsWith('echo ha')")
	for i := range 3 {
		s.CloseClientConnections()
		v.Tab("main").Print(fmt.Sprintf("<%d>", i))
		b.wait("coming back", fmt.Sprintf("window.kubistro.terminalText().endsWith('<%d>')", i))
	}
	b.typeText("llo\r")
	b.wait("the whole command's output", "window.kubistro.terminalText().split('hallo').length >= 2")
	if got := v.Tab("main").Entered(); len(got) != 2 || got[1] != "echo hallo" {
		t.Errorf("entered: %q", got)
	}
	if n := js[int](b, "window.kubistro.terminalText().split('<1>').length - 1"); n != 1 {
		t.Errorf("a line is there %d times", n)
	}
}

func TestChecksTickWithoutAClick(t *testing.T) {
	b, s, v := openLab(t, "en", nil)
	b.do(`document.querySelector('#exercise-three-cooks .js-check').click()`)
	b.wait("the reason", "document.querySelector('#exercise-three-cooks .check-message').textContent.includes('deployment/grill')")
	b.do(`document.querySelector('#exercise-three-cooks .js-hint').click()`)
	b.wait("the hint", "document.querySelector('#exercise-three-cooks .hint')?.textContent.includes('get pods')")
	v.SetCheck("three-cooks", lab.CheckResult{Check: "three", Status: lab.CheckMet})
	s.Store.SetDone("three-cooks")
	b.wait("the tick", "document.querySelector('#exercise-three-cooks [data-check=three]').dataset.status === 'met'")
	b.wait("the congratulation", "document.querySelector('#exercise-three-cooks').dataset.done === 'true'")
	b.wait("the per cent: one of nine", "document.querySelector('.js-level-percent').textContent === '11%'")
	v.SetCheck("three-cooks", lab.CheckResult{Check: "three", Status: lab.CheckNotMet, Regressed: true, Message: lab.Text{En: "Only two cooks.", ZhTW: "只有兩位。"}})
	b.wait("the regression", "document.querySelector('#exercise-three-cooks [data-check=three]').dataset.regressed === 'true'")
	b.do(`document.querySelector('#exercise-three-cooks .js-solve-menu').open = true; document.querySelectorAll('#exercise-three-cooks .js-solve')[1].click()`)
	b.wait("the solution's end", "document.querySelector('#exercise-three-cooks .js-exercise-message').textContent.includes('Look at the terminal')")
	if !s.Lab.Called("solve three-cooks 1") {
		t.Error("the second solution wasn't asked for")
	}
}

func TestQuizExplainsAndRemembers(t *testing.T) {
	b, s, _ := openLab(t, "en", nil)
	b.do(`document.querySelector('[data-question=new-pod] input[value=shout]').click(); document.querySelector('[data-question=new-pod] .js-send').click()`)
	b.wait("the explanation of every option", "[...document.querySelectorAll('[data-question=new-pod] .js-why')].every(e => !e.hidden && e.textContent !== '')")
	b.do(`document.querySelector('[data-question=new-pod] .js-retry').click()`)
	b.do(`document.querySelector('[data-question=new-pod] input[value=delete]').click(); document.querySelector('[data-question=new-pod] .js-send').click()`)
	b.wait("the right verdict", "document.querySelector('[data-question=new-pod]').dataset.correct === 'true'")
	for range 6 { // bubble sort by the buttons
		b.do(`(() => { const ids = ["r1", "r2", "r3"]; const list = [...document.querySelectorAll('[data-question=relay] .js-option')];
			const i = list.findIndex((e, i) => i > 0 && ids.indexOf(e.dataset.option) < ids.indexOf(list[i - 1].dataset.option)); if (i > 0) list[i].querySelector('.js-up').click() })()`)
	}
	b.do(`document.querySelector('[data-question=relay] .js-send').click()`)
	b.wait("the order", "document.querySelector('[data-question=relay]').dataset.correct === 'true'")
	for question, do := range map[string]string{
		"who":     `for (const s of q.querySelectorAll('.js-pair')) s.value = s.closest('.js-option').dataset.option`,
		"moves":   `q.querySelector('input[value=false]').click(); q.querySelector('input[value=never]').click()`,
		"sign":    `q.querySelector('.js-typed').value = ' ｓｉｇｔｅｒｍ '`,
		"your-ip": `q.querySelector('.js-typed').value = '10.96.0.7'`,
	} {
		b.do(`(() => { const q = document.querySelector('[data-question="` + question + `"]'); ` + do + `; q.querySelector('.js-send').click() })()`)
		b.wait(question, `document.querySelector('[data-question="`+question+`"]').dataset.correct === 'true'`)
	}
	b.run(chromedp.Navigate(s.URL + levelPath + "?lang=zh-TW"))
	b.wait("the stored answers", "document.querySelectorAll('.js-question[data-correct=true]').length === 6")
	b.wait("the score", "document.querySelector('.js-quiz-score').textContent.includes('6')")
	b.wait("the answers themselves", `[...document.querySelectorAll('[data-question=who] .js-pair')].every(s => s.disabled && s.value === s.closest('.js-option').dataset.option) &&
		document.querySelector('[data-question=moves] .js-truth input[value=false]').checked && document.querySelector('[data-question=sign] .js-typed').value === 'ｓｉｇｔｅｒｍ'`)
}

func TestEditorTellsOfConflictsAndEdits(t *testing.T) {
	b, s, v := openLab(t, "en", nil)
	b.forgive("409")
	b.do(`document.querySelector('.js-open').click()`)
	b.wait("the editor", "document.querySelector('.cm-content')?.textContent.includes('replicas')")
	b.do(`document.querySelector('.cm-content').focus()`)
	b.typeText("# mine")
	v.PutFile("grill.yaml", "kind: Theirs\n")
	b.run(chromedp.KeyEvent("s", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.wait("the notice", "!document.querySelector('.editor-notice').hidden && document.querySelector('.editor-notice').textContent.includes('changed')")
	b.do(`[...document.querySelectorAll('.editor-notice button')].find(x => x.textContent === 'Take the other one').click()`)
	b.wait("their version", "document.querySelector('.cm-content').textContent.includes('Theirs')")
	v.PutFile("edit.yaml", "kind: Deployment\n")
	v.AskEdit("edit.yaml")
	b.wait("the file that kubectl edit waits for", "!document.querySelector('.edit-bar').hidden && document.querySelector('.editor-name').textContent === 'edit.yaml'")
	b.do(`document.querySelector('.edit-bar .primary').click()`)
	b.wait("the terminal again", "document.querySelector('[data-tool=terminal]').getAttribute('aria-selected') === 'true'")
	b.wait("the answer", "document.querySelector('.edit-bar').hidden")
	if !s.Lab.Called("edit e1 true") {
		t.Error("the waiting command wasn't answered")
	}
}

func TestStatesOfTheCluster(t *testing.T) {
	b, s, v := openLab(t, "en", nil)
	v.SetStatus(lab.Status{State: lab.StateFailed, Problem: &lab.Text{En: "The disk is full.", ZhTW: "磁碟滿了。"}})
	b.wait("the reason", "document.querySelector('.curtain h2')?.textContent.includes('couldn') && document.querySelector('.curtain').textContent.includes('The disk is full.')")
	b.shot("state-failed")
	b.do(`document.querySelector('.curtain .button').click()`)
	b.wait("the start", "document.querySelector('.curtain').dataset.state === 'provisioning'")
	if !s.Lab.Called("retry") {
		t.Error("retry wasn't asked for")
	}
	v.SetStatus(lab.Status{State: lab.StateProvisioning, Why: "restart"})
	b.wait("restarting", "document.querySelector('.curtain h2').textContent.includes('restarting')")
	v.SetStatus(lab.Status{State: lab.StateQueued, Queue: 3})
	b.wait("the queue", "document.querySelector('.curtain').textContent.includes('number 3')")
	v.SetStatus(lab.Status{State: lab.StateAsleep})
	b.wait("sleep", "document.querySelector('.curtain').dataset.state === 'asleep'")
	b.shot("state-asleep")
	b.do(`document.querySelector('.curtain .button').click()`)
	b.wait("waking", "document.querySelector('.curtain h2').textContent.includes('Waking')")
	v.SetStatus(lab.Status{State: lab.StateReady})
	b.wait("the open floor", "document.querySelector('.curtain').hidden")
}

// TestInsideAnIframe shows the page in a frame of another origin.
func TestInsideAnIframe(t *testing.T) {
	s := webtest.NewServer(t, func(c *web.Config) { c.FrameAncestors = []string{"http://127.0.0.1:*"} })
	inner := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	outer := frameServer(t, inner+levelPath)
	b := open(t, 1280, 720, "en")
	b.run(chromedp.Navigate(outer))
	waitFor(t, "a session", func() bool { return s.Lab.Only() != nil })
	s.Lab.Only().Restaurant()
	waitFor(t, "the terminal of the framed page", func() bool { return s.Lab.Only().Tab("main").Connected() })
}
