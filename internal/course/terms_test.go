package course

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/lab"
	"kubistro/lessons"
)

func terms() []*Term {
	return []*Term{
		{ID: "pod", Forms: []string{"Pod", "Pods"}, Truth: lab.Text{ZhTW: "最小單位", En: "the <smallest> thing"}},
		{ID: "ingress", Forms: []string{"Ingress"}, Truth: lab.Text{En: "rules"}},
		{ID: "ingress-class", Forms: []string{"Ingress class"}, Truth: lab.Text{En: "whose"}},
		{ID: "node", Forms: []string{"node", "節點"}, Truth: lab.Text{En: "a machine"}},
	}
}

// mark is how a test writes a link.
func mark(l *linker, id, text string) string {
	i := slices.IndexFunc(l.terms, func(t *Term) bool { return t.ID == id })
	return l.element(l.terms[i], text)
}

func TestFirstUsesBecomeLinks(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"the first use only", "<p>A Pod, and Pods.</p>", "<p>A [pod:Pod], and Pods.</p>"},
		{"in bold and in code", "<p><strong>Pods</strong> on a <code>node</code></p>", "<p><strong>[pod:Pods]</strong> on a <code>[node:node]</code></p>"},
		{"at the end of a sentence", "<p>That is a Pod. Next.</p>", "<p>That is a [pod:Pod]. Next.</p>"},
		{"between Chinese characters", "<p>一個Pod在節點上。</p>", "<p>一個[pod:Pod]在[node:節點]上。</p>"},
		{"the longest", "<p>Its Ingress class, an Ingress</p>", "<p>Its [ingress-class:Ingress class], an [ingress:Ingress]</p>"},
		{"no part of a name", "<p>Podcast, node-1, kubectl get Pod/x, a/node, node.spec, PodDisruptionBudget</p>", ""},
		{"no part of a command", "<p><code>kubectl get node</code></p>", ""},
		{"no link in a link", `<p><a href="/x">Pod</a></p>`, ""},
		{"no code block", "<pre><code>Pod\n</code></pre>", ""},
		{"no heading", "<h3>Pod</h3>", ""},
		{"no live value", `<p><span class="js-live" data-live-want="name">Pod</span> is it</p>`, ""},
		{"after what stays", `<p><span class="js-live">Pod</span> is a <em>Pod</em> &amp; more</p>`, `<p><span class="js-live">Pod</span> is a <em>[pod:Pod]</em> &amp; more</p>`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLinker(terms(), lab.En)
			got := l.link(tt.in)
			want := tt.want
			if want == "" {
				want = tt.in
			}
			for _, term := range l.terms {
				for _, f := range term.Forms {
					want = strings.ReplaceAll(want, "["+term.ID+":"+f+"]", mark(l, term.ID, f))
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLinksExplainInTheLessonsLanguage(t *testing.T) {
	if got := newLinker(terms(), lab.ZhTW).link("<p>Pod</p>"); !strings.Contains(got, ">最小單位<") || !strings.Contains(got, `href="/glossary#pod"`) {
		t.Error(got)
	}
	if got := newLinker(terms(), lab.En).link("<p>Pod</p>"); !strings.Contains(got, "the &lt;smallest&gt; thing") {
		t.Error(got)
	}
}

const sampleGlossary = `terms:
  - id: soup
    term: Soup
    forms: [Opening]
    metaphor: {zh-TW: 湯, en: soup}
    truth: {zh-TW: 是湯, en: It is soup}
    taught: [diner/1]
`

func TestGlossaryFaults(t *testing.T) {
	for _, tt := range []struct{ name, old, text, want string }{
		{"taught nowhere", "taught: [diner/1]", "taught: []", "taught nowhere"},
		{"no such level", "diner/1", "diner/7", "isn't there"},
		{"a level that is still to come", "diner/1", "diner/2", "isn't there"},
		{"no level", "diner/1", "diner", "COURSE/LEVEL"},
		{"never used", "[Opening]", "[Closing]", "never uses the term soup"},
		{"a form of two terms", "[Opening]", "[Opening, Opening]", "no other term"},
		{"no slug", "id: soup", "id: Soup!", "slug"},
		{"unknown field", "term: Soup", "term: Soup\n    colour: red", "unknown field"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := files()
			f["diner/1/lesson.zh-TW.md"] += "\nOpening\n"
			f["diner/1/lesson.en.md"] += "\nOpening\n"
			f["shared/glossary.yaml"] = sampleGlossary
			if faults := Lint(fixture(f), nil); len(faults) != 0 {
				t.Fatalf("the sample has faults: %v", faults)
			}
			f["shared/glossary.yaml"] = strings.Replace(sampleGlossary, tt.old, tt.text, 1)
			faults := Lint(fixture(f), nil)
			if !slices.ContainsFunc(faults, func(x Fault) bool { return x.File == "shared/glossary.yaml" && strings.Contains(x.Message, tt.want) }) {
				t.Errorf("got %v, want a fault of %q", faults, tt.want)
			}
		})
	}
}

// TestBuiltInGlossary: what the lessons link to is on the page, and each term is taught.
func TestBuiltInGlossary(t *testing.T) {
	l, err := Load(lessons.FS)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(l.Courses[0].Glossary); n < 45 {
		t.Errorf("%d terms", n)
	}
	for _, f := range lintGlossary(lessons.FS, l) {
		t.Error(&f)
	}
}
