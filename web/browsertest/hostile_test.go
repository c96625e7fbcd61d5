package browsertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"kubistro/internal/lab"
	"kubistro/web/webtest"
)

// evil breaks out of elements, attributes and scripts where text isn't taken for text.
const evil = `"'><img src=x onerror=pwned=1><svg onload=pwned=2></script><script>pwned=3</script><a href="javascript:pwned=4">x</a>{{7*7}}`

// harmless is true while nothing of evil has become more than text.
const harmless = `window.pwned === undefined && !document.querySelector('img[src=x], [onerror], [onload], a[href^="javascript:"], script:not([src]):not([type="application/json"])')`

// TestNothingOfAClusterBecomesMarkup puts markup into everything that a learner, a Pod
// or a cluster names, and looks at all of it. (checkConsole fails on what the policy had to stop.)
func TestNothingOfAClusterBecomesMarkup(t *testing.T) {
	b, _, v := openLab(t, "en", nil)
	both := lab.Text{ZhTW: evil, En: evil}
	pod := webtest.Ref("Pod", evil)
	pod.Namespace = evil
	v.Put(lab.ObjectState{
		Ref: pod, Labels: map[string]string{"station": evil, evil: evil}, Owner: &lab.ObjectRef{Kind: "ReplicaSet", Name: evil},
		Node: "kitchen-1", IP: evil, Status: evil, Containers: 1, Images: []string{evil}, Created: time.Now(),
	}, evil, 0)
	v.Put(lab.ObjectState{Ref: webtest.Ref("Pod", "late"), Labels: map[string]string{"station": "grill"}, Node: "kitchen-2", Status: evil, Images: []string{evil}, Created: time.Now()}, evil, 0)
	v.Put(lab.ObjectState{Ref: webtest.Ref("Node", evil), Status: evil, CPU: evil, Memory: evil, Taints: []string{evil}}, evil, 0)
	v.Put(lab.ObjectState{Ref: webtest.Ref("Deployment", evil), Desired: 3, Actual: 1, Labels: map[string]string{evil: evil}, Images: []string{evil}, Revision: evil}, evil, 0)
	v.Put(lab.ObjectState{Ref: webtest.Ref("Service", evil), ClusterIP: evil, Type: evil, Ports: []string{evil}, Selector: map[string]string{evil: evil}}, evil, 0)
	last := v.Add(lab.Event{
		Type: lab.EventEvent, Actor: evil, Verb: evil, Object: pod, Reason: evil, Message: evil, Text: &both,
	})
	v.SetCheck("three-cooks", lab.CheckResult{Check: "three", Status: lab.CheckNotMet, Message: both, Object: evil, Field: evil, Expected: evil, Found: evil})
	b.wait("the check's message", fmt.Sprintf("document.querySelector('#exercise-three-cooks').textContent.includes(%q)", evil))

	v.Tab("main").Print(evil + "\r\n")
	b.wait("the terminal's text", "window.kubistro.terminalText().replaceAll('\\n', '').includes('<script>pwned=3</script>')")

	b.do(`document.querySelector('[data-tool=record]').click()`)
	b.wait("the frame", fmt.Sprintf("window.kubistro.last() >= %d", last))
	b.wait("its text in the record", `document.querySelector('.rows-scroll').textContent.includes('<img src=x onerror=pwned=1>')`)
	b.do(`for (const e of document.querySelectorAll('.row button, .row summary, .row')) e.click()`)

	v.PutFile(evil, evil)
	v.PutFile("edit.yaml", evil)
	b.do(`document.querySelector('[data-tool=files]').click()`)
	v.AskEdit("edit.yaml")
	b.wait("the file's text", "document.querySelector('.cm-content')?.textContent.includes('<script>pwned=3</script>')")
	b.wait("the file's name", fmt.Sprintf("[...document.querySelectorAll('[data-panel=files], .files, .tool-files')].concat(document.body).some(e => e.textContent.includes(%q))", evil))

	b.do(`for (const e of document.querySelectorAll('.cook, .room, .board-line, .chip summary')) e.click()`)
	if !js[bool](b, harmless) {
		t.Errorf("something became markup: %s", js[string](b, `[...document.querySelectorAll('img[src=x], [onerror], [onload], a[href^="javascript:"], script:not([src])')].map(e => e.outerHTML).join('\n')`))
	}
	v.SetStatus(lab.Status{State: lab.StateFailed, Problem: &both})
	b.wait("the reason", fmt.Sprintf("document.querySelector('.curtain').textContent.includes(%q)", evil))
	if !js[bool](b, harmless) {
		t.Error("the reason of a failed start became markup")
	}
}

// TestTerminalOutputTypesNothing prints every question that a terminal answers, as a Pod's
// log may: the answers would be typed into the shell, again at every visit.
func TestTerminalOutputTypesNothing(t *testing.T) {
	b, s, v := openLab(t, "en", nil)
	b.wait("the prompt", "window.kubistro.terminalText().includes('$')")
	title := js[string](b, "document.title")
	tab := v.Tab("main")
	tab.Print("\x1b[c\x1b[>c\x1b[=c\x1b[5n\x1b[6n\x1b[?6n\x1b[?15n\x1b[1$p\x1b[?1$p\x1b[>q\x1b[14t\x1b[18t\x1b[21t" +
		"\x1bP$qm\x1b\\\x1bP$q\"p\x1b\\\x1bP+q544e\x1b\\\x1b]4;1;?\x07\x1b]10;?\x07\x1b]11;?\x07\x1b]12;?\x1b\\" + "\x05" +
		"\x1b[?1000h\x1b[?1003h\x1b[?1006h\x1b[?1004h" +
		"\x1b]0;pwned\x07\x1b]2;pwned\x07\x1b]52;c;cHduZWQ=\x07\x1b]52;c;?\x07" +
		"\x1b]8;;http://evil.example/\x07link\x1b]8;;\x07 the end\r\n")
	b.wait("the output", "window.kubistro.terminalText().includes('link the end')")
	b.do(`document.querySelector('.xterm-screen').dispatchEvent(new MouseEvent('mousedown', {bubbles: true, clientX: 300, clientY: 500}))`)
	b.do(`document.querySelector('.xterm-helper-textarea').blur(); document.querySelector('.xterm-helper-textarea').focus()`)
	enter := func(line string) {
		b.typeText(line + "\r")
		waitFor(t, "the line "+line, func() bool { n := len(tab.Entered()); return n > 0 && len(tab.Entered()[n-1]) >= len(line) })
	}
	enter("echo one")
	b.run(chromedp.Navigate(s.URL + levelPath))
	b.wait("the output once more", "window.kubistro?.terminalText?.().includes('link the end')")
	b.do(`document.querySelector('.xterm-helper-textarea').focus()`)
	enter("echo two")
	if got := tab.Entered(); len(got) != 2 || got[0] != "echo one" || got[1] != "echo two" {
		t.Errorf("entered: %q", got)
	}
	if now := js[string](b, "document.title"); now != title {
		t.Errorf("the page's title is %q", now)
	}
	if js[bool](b, "document.querySelector('.xterm a, .xterm-underline-1') !== null") {
		t.Error("the output made a link")
	}
}

// TestAnswersAndHintsComeFromTheServer opens the page in a browser that remembers nothing.
func TestAnswersAndHintsComeFromTheServer(t *testing.T) {
	b, s, v := openLab(t, "en", nil)
	const card = "document.querySelector('#exercise-bare-pod')"
	const field = card + ".querySelector('[data-check=why] input')"
	b.do(field + ".value = 'half typed'")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.Lab.Answer(ctx, v.Learner(), v.ID(), "bare-pod", "why", "the controller"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lab.Hint(ctx, v.Learner(), v.ID(), "bare-pod"); err != nil {
		t.Fatal(err)
	}
	b.do("localStorage.clear(); sessionStorage.clear()")
	b.run(chromedp.Navigate(s.URL + levelPath))
	b.wait("the answer", field+"?.value === 'the controller'")
	b.wait("the hint", card+".querySelector('.hint') !== null")
	b.do(field + ".value = 'something better'")
	v.SetCheck("bare-pod", lab.CheckResult{Check: "hired", Status: lab.CheckMet})
	b.wait("another check's news", card+".querySelector('[data-check=hired]').dataset.status === 'met'")
	if got := js[string](b, field+".value"); got != "something better" {
		t.Errorf("what was being typed became %q", got)
	}
}
