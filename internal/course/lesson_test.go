package course

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/lab"
)

// document reads an English lesson on top of the fixture's level.
func document(t *testing.T, source string) *Document {
	t.Helper()
	l, err := Load(fixture(files()))
	if err != nil {
		t.Fatal(err)
	}
	doc, faults := parseLesson(l.Course("diner").Level("1"), "lesson.en.md", lab.En, []byte(source))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return doc
}

func TestLessonIsCutIntoBlocks(t *testing.T) {
	doc := document(t, "# Soup\n\nHi.\n\nThere.\n\n```command\nkubectl get pods\n\nkubectl get pod {{live: newest Pod of deployment/soup}} -o yaml\n```\n\n"+
		"## Two {#two}\n\n```output\nA   B  ## two letters\nC\n```\n\n```aside cook\nI *cook*.\n```\n\n```aside\nNarrator.\n```\n\n"+
		"```manifest manifests/soup.yaml\n```\n\n```exercise boil\n```\n\n```diagram\n a\n |\n b\n---\na above b\n```\n\n```quiz which\n```\n\n```yaml\nx: 1\n```\n")
	if doc.Title != "Soup" || len(doc.Sections) != 2 || doc.Sections[1].ID != "two" || doc.Sections[1].Title != "Two" {
		t.Fatalf("%+v", doc)
	}
	var kinds []string
	for _, s := range doc.Sections {
		for _, b := range s.Blocks {
			kinds = append(kinds, b.ID+" "+string(b.Kind))
		}
	}
	want := []string{"opening-1 html", "opening-2 command", "two-1 output", "two-2 aside", "two-3 aside", "two-4 manifest",
		"two-5 exercise", "two-6 diagram", "two-7 quiz", "two-8 html"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Fatal(diff)
	}
	first, second := doc.Sections[0].Blocks, doc.Sections[1].Blocks
	if got := first[0].HTML; got != "<p>Hi.</p>\n<p>There.</p>\n" {
		t.Errorf("HTML %q", got)
	}
	if got := first[1].Commands; len(got) != 2 || got[1].String() != "kubectl get pod POD -o yaml" || got[1].Parts[1].Live.Owner != "deployment/soup" {
		t.Errorf("commands %+v", got)
	}
	if diff := cmp.Diff([]OutputLine{{"A   B", "two letters"}, {"C", ""}}, second[0].Lines); diff != "" {
		t.Error(diff)
	}
	if second[1].Speaker == nil || second[1].Speaker.ID != "cook" || second[1].HTML != "<p>I <em>cook</em>.</p>" || second[2].Speaker != nil {
		t.Errorf("asides %+v %+v", second[1], second[2])
	}
	if !strings.Contains(second[3].Text, "kind: Deployment") || second[4].Exercise.ID != "boil" || len(second[6].Questions) != 1 {
		t.Errorf("manifest, exercise or quiz is wrong: %+v", second[3:7])
	}
	if second[5].Text != " a\n |\n b" || second[5].HTML != "a above b" {
		t.Errorf("diagram %+v", second[5])
	}
}

func TestHTMLIsSafe(t *testing.T) {
	for _, source := range []string{
		"[x](javascript:alert(1))", "<img src=x onerror=alert(1)>", "a <b>c</b>", "![x](javascript:alert(1))",
		"`<script>`", "{{live: newest Pod with a=\"><script>}}", "[x](data:text/html,<script>alert(1)</script>)",
	} {
		out := htmlOf(source, true)
		for _, bad := range []string{"<script", "<img src=x", "href=\"javascript", "src=\"javascript", "<b>", "href=\"data"} {
			if strings.Contains(out, bad) {
				t.Errorf("%s becomes %s", source, out)
			}
		}
	}
}

func TestLiveValues(t *testing.T) {
	tests := []struct {
		source string
		want   Live
	}{
		{"newest Pod of deployment/grill", Live{Want: "name", Pick: "newest", Kind: "Pod", Owner: "deployment/grill", Fallback: "POD"}},
		{"newest Pod of deployment/grill or POD-NAME", Live{Want: "name", Pick: "newest", Kind: "Pod", Owner: "deployment/grill", Fallback: "POD-NAME"}},
		{"ip of oldest Pod with station=grill", Live{Want: "ip", Pick: "oldest", Kind: "Pod", Labels: "station=grill", Fallback: "—"}},
		{"count of Pods with station=grill", Live{Want: "count", Kind: "Pod", Labels: "station=grill", Fallback: "—"}},
		{"Pod", Live{Want: "name", Pick: "newest", Kind: "Pod", Fallback: "POD"}},
	}
	for _, tt := range tests {
		got, err := ParseLive(tt.source)
		tt.want.Source = tt.source
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tt.source, err, diff)
		}
	}
	for _, bad := range []string{"", "pod", "newest", "age of Pod", "Pod of grill", "newest Pod with \"><script>"} {
		if l, err := ParseLive(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, l)
		}
	}
	want := `<p>See <span class="live js-live" data-live-want="name" data-live-pick="newest" data-live-kind="Pod" data-live-owner="deployment/grill">POD</span> now</p>`
	if got := htmlOf("See {{live: newest Pod of deployment/grill}} now", true); got != want {
		t.Errorf("got %s", got)
	}
}

func TestQuizAnswers(t *testing.T) {
	option := func(id string, right bool) Option { return Option{ID: id, Right: right} }
	one := &Question{ID: "q", Kind: OneOf, Options: []Option{option("a", true), option("b", false), option("c", false)}}
	several := &Question{ID: "q", Kind: SeveralOf, Options: []Option{option("a", true), option("b", true), option("c", false)}}
	order := &Question{ID: "q", Kind: Order, Options: []Option{option("a", true), option("b", true), option("c", true)}}
	tests := []struct {
		q            *Question
		answer       string
		valid, right bool
	}{
		{one, "a", true, true}, {one, "b", true, false}, {one, "a b", false, false}, {one, "", false, false}, {one, "x", false, false},
		{several, "b a", true, true}, {several, "a", true, false}, {several, "a b c", true, false}, {several, "a a", false, false}, {several, "", false, false},
		{order, "a b c", true, true}, {order, "b a c", true, false}, {order, "a b", false, false}, {order, "a b b", false, false},
	}
	for _, tt := range tests {
		answer := strings.Fields(tt.answer)
		if got := tt.q.Valid(answer); got != tt.valid {
			t.Errorf("%s %q: valid %v", tt.q.Kind, tt.answer, got)
		}
		if got := tt.q.Right(answer); tt.valid && got != tt.right {
			t.Errorf("%s %q: right %v", tt.q.Kind, tt.answer, got)
		}
	}
	for _, id := range strings.Fields("a b c d relay order-1 order-2") {
		q := &Question{ID: id, Kind: Order, Options: []Option{option("a", true), option("b", true)}}
		if q.Right(ids(q.Shuffled("me"))) {
			t.Errorf("question %s is shown in the right order", id)
		}
	}
}

func TestAnswerCommand(t *testing.T) {
	for answer, want := range map[string]string{
		"$(kubectl get svc grill -o jsonpath='{.spec.clusterIP}')": "kubectl get svc grill -o jsonpath='{.spec.clusterIP}'",
		" $(echo 3) ": "echo 3",
		"3":           "", "$3": "", "$(echo": "", "echo $(date)": "",
	} {
		got, ok := AnswerCommand(answer)
		if got != want || ok != (want != "") {
			t.Errorf("AnswerCommand(%q) = %q, %v; want %q", answer, got, ok, want)
		}
	}
}
