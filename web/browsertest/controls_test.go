package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"kubistro/web"
	"kubistro/web/webtest"
)

// TestControls does from the page what can be done to the cluster from outside of it, in
// both languages, light and dark, wide and narrow.
func TestControls(t *testing.T) {
	for _, c := range []struct {
		lang, theme   string
		width, height int64
	}{{"zh-TW", "light", 1280, 720}, {"en", "dark", 1280, 720}, {"zh-TW", "dark", 390, 844}, {"en", "light", 390, 844}} {
		name := fmt.Sprintf("controls-%s-%s-%d", c.lang, c.theme, c.width)
		t.Run(name, func(t *testing.T) {
			s := webtest.NewServer(t, nil)
			b := open(t, c.width, c.height, c.lang)
			b.theme(c.theme)
			b.run(chromedp.Navigate(s.URL + levelPath))
			b.wait("the session", "window.kubistro?.state() === 'ready'")
			s.Lab.Only().Restaurant()
			b.showView("floor")
			b.wait("three cooks", "document.querySelectorAll('.cook[data-mood=ready]').length === 3")
			b.wait("the switches", "document.querySelectorAll('.kitchen-switches:not([hidden])').length === 3")
			b.shot(name + "-floor")
			b.fits("floor with switches")

			const breaker = `[...document.querySelectorAll('.room')].find(e => e.textContent.includes('kitchen-2')).querySelector('[data-act=power]')`
			b.do(breaker + ".focus()")
			b.do(breaker + ".click()")
			b.wait("the question", "document.querySelector('dialog.ask[open]') !== null")
			b.shot(name + "-ask")
			b.do("document.querySelector('dialog.ask button').click()") // no
			b.wait("the focus back at the breaker", "document.activeElement === "+breaker)
			if s.Lab.Kitchen("kitchen-2").Power == false {
				t.Error("a cancelled question cut the power")
			}
			b.do(breaker + ".click()")
			b.do("document.querySelector('dialog.ask [data-act=yes]').click()")
			b.wait("the breaker off", breaker+".getAttribute('aria-pressed') === 'false'")
			b.wait("the note", "document.querySelectorAll('.room[data-outside=true]').length === 1")
			b.shot(name + "-dark")

			b.do("document.querySelector('.open-kitchen').click()")
			b.do("document.querySelector('dialog.ask input[name=labels]').value = 'disk=ssd, zone=b'")
			b.shot(name + "-open")
			b.fits("opening a kitchen")
			b.do("document.querySelector('dialog.ask form').requestSubmit()")
			b.wait("the dialog gone", "document.querySelector('dialog') === null")
			if k := s.Lab.Kitchen("kitchen-4"); k.CPU != "2" || k.Labels["disk"] != "ssd" || k.Labels["zone"] != "b" {
				t.Errorf("the new kitchen: %+v", k)
			}

			b.showView("controls")
			part := func(p string) { b.do(fmt.Sprintf(`document.querySelector('.controls-bar [data-part=%s]').click()`, p)) }
			part("loops")
			b.wait("the loops", "document.querySelectorAll('.loop').length > 8")
			b.do(`document.querySelector('.loop[data-key=kube-scheduler] button').click()`)
			b.wait("the scheduler at home", `document.querySelector('.loop[data-key=kube-scheduler]').dataset.home === 'true'`)
			b.shot(name + "-loops")
			b.fits("loops")
			part("clock")
			b.do(`document.querySelector('[data-speed="10"]').click()`)
			b.wait("the fast clock", `document.querySelector('[data-speed="10"]').getAttribute('aria-pressed') === 'true'`)
			b.wait("the real figure in the bar", `document.querySelector('.clock-text').textContent.includes('30') && document.querySelector('.clock-text').textContent.includes('5')`)
			b.shot(name + "-clock")
			b.fits("clock")
			part("etcd")
			b.wait("the keys", "document.querySelectorAll('.etcd-key').length === 2")
			b.do(`document.querySelector('[data-key="/registry/secrets/default/sauce"]').click()`)
			b.wait("the bytes", "document.querySelector('.hex')?.textContent.includes('andmother')")
			b.shot(name + "-etcd")
			b.do(`document.querySelector('[data-act=encrypt]').click()`)
			b.wait("the encrypted bytes", "document.querySelector('.hex')?.textContent.includes('k8s:enc:secretbo')")
			b.shot(name + "-sealed")
			b.fits("etcd")
			b.do(`document.querySelector('.clock-chip').click()`)
			b.shot(name + "-chip")
			b.fits("the clock's list")

			b.showView("record")
			told := map[string]string{"en": "tripped the breaker of Kitchen 2", "zh-TW": "電源開關"}[c.lang]
			b.wait("the acts in the record", fmt.Sprintf("document.querySelector('.js-record').textContent.includes(%q)", told))
			b.shot(name + "-record")
		})
	}
}

// TestPanelsAreTheLevels: a level that shows no panels has no switches and no tab.
func TestPanelsAreTheLevels(t *testing.T) {
	s := webtest.NewServer(t, func(c *web.Config) {
		c.Library = webtest.Library()
		c.Library.Courses[0].Levels[0].Panels = nil
	})
	b := open(t, 1280, 720, "en")
	b.run(chromedp.Navigate(s.URL + levelPath))
	b.wait("the session", "window.kubistro?.state() === 'ready'")
	s.Lab.Only().Restaurant()
	b.wait("three cooks", "document.querySelectorAll('.cook[data-mood=ready]').length === 3")
	if n := js[int](b, "document.querySelectorAll('.kitchen-switches:not([hidden]), .open-kitchen:not([hidden]), [data-tool=controls], .clock-place details:not([hidden])').length"); n != 0 {
		t.Errorf("%d controls on a level without panels", n)
	}
	if err := s.Lab.SetClusterClock(t.Context(), s.Lab.Only().Learner(), s.Lab.Only().ID(), 10); err != nil {
		t.Fatal(err)
	}
	b.wait("the clock, which is always shown when it is fast", "document.querySelector('.clock-place details:not([hidden])') !== null")
}
