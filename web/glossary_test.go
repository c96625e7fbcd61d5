package web_test

import (
	"strings"
	"testing"

	"kubistro/internal/course"
	"kubistro/lessons"
	"kubistro/web"
	"kubistro/web/webtest"
)

func TestGlossary(t *testing.T) {
	c := newClient(t, webtest.NewServer(t, nil))
	for lang, want := range map[string][]string{
		"en":    {`id="pod"`, "a cook at a station", "The smallest thing that is scheduled.", `href="/courses/restaurant/1"`, `id="ingress"`},
		"zh-TW": {`id="pod"`, "站在一個崗位上的廚師", "Kubernetes 排程的最小單位。"},
	} {
		page := c.do("GET", "/glossary?lang="+lang, "")
		for _, w := range want {
			if page.StatusCode != 200 || !strings.Contains(page.body, w) {
				t.Errorf("%s: %d without %q", lang, page.StatusCode, w)
			}
		}
		// A level that is still to come, and a course that isn't there.
		for _, no := range []string{"/courses/restaurant/3", "/courses/compose"} {
			if strings.Contains(page.body, no) {
				t.Errorf("%s: links to %s", lang, no)
			}
		}
	}
}

// TestLessonsLinkToTheGlossary: every link of a built-in lesson has its place on the page.
func TestLessonsLinkToTheGlossary(t *testing.T) {
	library, err := course.Load(lessons.FS)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, webtest.NewServer(t, func(w *web.Config) { w.Library = library }))
	page, lesson := c.do("GET", "/glossary", "").body, c.do("GET", "/courses/restaurant/1", "").body
	links := strings.Split(lesson, `href="/glossary#`)[1:]
	if len(links) < 8 {
		t.Errorf("level 1 has %d links", len(links))
	}
	seen := map[string]bool{}
	for _, l := range links {
		id, _, _ := strings.Cut(l, `"`)
		if seen[id] {
			t.Errorf("%s is linked twice", id)
		}
		seen[id] = true
		if !strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("the glossary has no %s", id)
		}
	}
}
