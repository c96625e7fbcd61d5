package course

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// question parses one question in the place of the fixture's.
func question(t *testing.T, source string) (*Question, Faults) {
	t.Helper()
	f := files()
	f[quiz] = "questions:\n" + source
	l, faults := load(fixture(f), nil)
	if len(l.Courses[0].Levels[0].Quiz) != 1 {
		t.Fatalf("%d questions: %v", len(l.Courses[0].Levels[0].Quiz), faults)
	}
	return l.Courses[0].Levels[0].Quiz[0], faults
}

const both = "{zh-TW: 文, en: text}"

func options(extra ...string) string {
	var b strings.Builder
	b.WriteString("    options:\n")
	for i, e := range extra {
		fmt.Fprintf(&b, "      - {id: %c, text: %s, why: %s%s}\n", 'a'+i, both, both, e)
	}
	return b.String()
}

func head(kind string) string { return "  - id: q\n    kind: " + kind + "\n    text: " + both + "\n" }

func TestQuestionKinds(t *testing.T) {
	match := head("match") + options(", pair: {zh-TW: 一, en: One}", ", pair: {zh-TW: 二, en: Two}", ", pair: {zh-TW: 一, en: One}")
	truth := head("truth") + "    is: false\n" + options("", ", right: true", "")
	typed := head("type") + "    otherwise: " + both + "\n" + options(`, right: true, accept: [ClusterIP, cluster ip]`, `, accept: ["10", ten]`)
	tests := []struct {
		source, answer string
		valid, right   bool
	}{
		{match, "a=a|b=b|c=c", true, true}, {match, "c=a|b=b|a=c", true, true}, {match, "a=b|b=a|c=c", true, false},
		{match, "a=a|b=b", false, false}, {match, "a=a|a=a|b=b", false, false}, {match, "a=x|b=b|c=c", false, false}, {match, "a|b|c", false, false},
		{truth, "false|b", true, true}, {truth, "true|b", true, false}, {truth, "false|a", true, false}, {truth, "false", false, false}, {truth, "b|false", false, false}, {truth, "maybe|b", false, false},
		{typed, "ClusterIP", true, true}, {typed, " ｃlusterip ", true, true}, {typed, "`Cluster  IP`", true, true}, {typed, "10", true, false}, {typed, "10.0", true, false}, {typed, "NodePort", true, false}, {typed, " ", false, false},
		{typed, strings.Repeat("x", 501), false, false},
	}
	for _, tt := range tests {
		q, faults := question(t, tt.source)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		answer := strings.Split(tt.answer, "|")
		if got := q.Valid(answer); got != tt.valid {
			t.Errorf("%s %q: valid %v", q.Kind, tt.answer, got)
		}
		if got := q.Right(answer); got != tt.right {
			t.Errorf("%s %q: right %v", q.Kind, tt.answer, got)
		}
	}
	q, _ := question(t, typed)
	if o := q.Typed([]string{"10.00"}); o == nil || o.ID != "b" {
		t.Errorf("10.00 is option %v", o)
	}
	q, _ = question(t, match)
	if pairs := q.Pairs(); len(pairs) != 2 || len(q.ShuffledPairs("me")) != 2 {
		t.Errorf("pairs %v", pairs)
	}
}

func TestQuestionAboutTheCluster(t *testing.T) {
	source := head("cluster") + "    objects: {grill: {kind: Service, name: grill}}\n    let:\n      - {name: ip, is: grill.spec.clusterIP}\n    that: answer == ip\n    why: " + both + "\n    otherwise: " + both + "\n"
	q, faults := question(t, source)
	if len(faults) > 0 || q.Check == nil || !q.Check.Uses("grill") || q.Right([]string{"x"}) {
		t.Errorf("%v %+v", faults, q)
	}
	for broken, with := range map[string]string{"answer == ip": "size(ip) > 0", "    why: " + both + "\n": "", "answer": "andwer", "kind: Service, ": ""} {
		if _, faults := question(t, strings.Replace(source, broken, with, 1)); len(faults) == 0 {
			t.Errorf("%q for %q: no fault", with, broken)
		}
	}
}

func TestQuestionFaults(t *testing.T) {
	for name, source := range map[string]string{
		"match without pair":     head("match") + options(", pair: "+both, ", pair: "+both, ""),
		"match of one pair":      head("match") + options(", pair: "+both, ", pair: "+both, ", pair: "+both),
		"pair elsewhere":         head("one") + options(", right: true", ", pair: "+both, ""),
		"truth without is":       head("truth") + options("", ", right: true", ""),
		"truth without a reason": head("truth") + "    is: true\n" + options("", "", ""),
		"is elsewhere":           head("one") + "    is: true\n" + options("", ", right: true", ""),
		"is perhaps":             head("truth") + "    is: perhaps\n" + options("", ", right: true", ""),
		"type without right":     head("type") + "    otherwise: " + both + "\n" + options(", accept: [x]"),
		"type without otherwise": head("type") + options(", right: true, accept: [x]"),
		"type without accept":    head("type") + "    otherwise: " + both + "\n" + options(", right: true"),
		"no options":             head("one"),
		"topic":                  head("one") + "    topic: The Pods\n" + options("", ", right: true", ""),
		"shown by nobody":        head("one") + "    shown: [nobody]\n" + options("", ", right: true", ""),
	} {
		if _, faults := question(t, source); len(faults) == 0 {
			t.Errorf("%s: no fault", name)
		}
	}
	if _, faults := question(t, head("one")+"    topic: pods\n    shown: [boil, TestSomething]\n"+options("", ", right: true", "")); len(faults) > 0 {
		t.Error(faults)
	}
}

// What is shown doesn't tell the right answer, and stays in its place for one learner.
func TestShuffled(t *testing.T) {
	q := &Question{ID: "q", Kind: OneOf}
	for i := range 5 {
		q.Options = append(q.Options, Option{ID: string(rune('a' + i)), Right: i == 0})
	}
	first := map[string]int{}
	for i := range 200 {
		seed := fmt.Sprint("learner", i)
		got := ids(q.Shuffled(seed))
		if !slices.Equal(got, ids(q.Shuffled(seed))) {
			t.Fatalf("%s sees another order the second time", seed)
		}
		first[got[0]]++
	}
	for id, n := range first {
		if n < 15 || n > 80 {
			t.Errorf("option %s comes first for %d of 200", id, n)
		}
	}
	if len(first) != 5 || q.Options[0].ID != "a" {
		t.Errorf("first: %v", first)
	}
}
