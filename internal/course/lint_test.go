package course

import (
	"errors"
	"strings"
	"testing"
)

const (
	level  = "diner/1/level.yaml"
	quiz   = "diner/1/quiz.yaml"
	house  = "diner/course.yaml"
	lesson = "diner/1/lesson.en.md"
	soup   = "diner/1/manifests/soup.yaml"
)

func TestSoundCourseHasNoFault(t *testing.T) {
	if faults := Lint(fixture(files()), pantry()); len(faults) > 0 {
		t.Fatal(Faults(faults))
	}
}

// TestFaultsAreNamedWithFileAndLine breaks one thing at a time: old is replaced by
// text in the file, and the fault stands where mark then is (line 0: anywhere in the file).
func TestFaultsAreNamedWithFileAndLine(t *testing.T) {
	tests := []struct{ name, file, old, text, mark, message string }{
		{"unknown field", level, "minutes: 5", "minutes: 5\nminuts: 6", "minuts", `unknown field "minuts"`},
		{"unknown field, deep", level, "- that: soup", "- taht: soup", "taht", `unknown field "taht"`},
		{"missing field", level, "minutes: 5\n", "", "needs", `field "minutes" is missing`},
		{"missing language", level, "{zh-TW: 三碗, en: Three}", "{en: Three}", "{en: Three}", "missing in zh-TW"},
		{"empty language", level, "{zh-TW: 三碗, en: Three}", "{zh-TW: 三碗, en: ' '}", "三碗", "missing in en"},
		{"unknown language", house, "{zh-TW: 小館, en: Diner}", "{zh-TW: 小館, en: Diner, de: Kneipe}", "Kneipe", `unknown language "de"`},
		{"unknown capability", level, "[audit]", "[magic]", "magic", `"magic" isn't one of`},
		{"not a list", level, "needs: [audit]", "needs: audit", "needs", "must be a list"},
		{"not a number", level, "minutes: 5", "minutes: many", "minutes", "must be a number"},
		{"not YAML", level, "minutes: 5", "minutes: [5", "needs", ""},
		{"key twice", level, "minutes: 5", "minutes: 5\nminutes: 6", "minutes: 6", "stands here twice"},
		{"CEL syntax", level, "soup.spec.replicas == 3", "soup.spec.replicas ==", "- that: soup", "Syntax error"},
		{"CEL variable", level, "soup.spec.replicas == 3", "stew.spec.replicas == 3", "- that: stew", "undeclared reference to 'stew'"},
		{"CEL in a block", level, "that: soup.spec.replicas == 3", "that: |\n              true &&\n              stew == 1", "stew", "undeclared"},
		{"CEL of a hint", level, "when: soup == null", "when: soop == null", "when: soop", "undeclared reference to 'soop'"},
		{"CEL of the start state", level, "ready: soup != null", "ready: 1 + 1", "ready: 1", "true or false"},
		{"missing fault", level, "setup: [manifests/soup.yaml]", "inject: [manifests/stew.yaml]", "manifests/stew.yaml", "no manifest"},
		{"missing manifest", level, "setup: [manifests/soup.yaml]", "setup: [manifests/stew.yaml]", "manifests/stew.yaml", "no manifest"},
		{"file outside the home", level, "files: {soup.yaml:", "files: {../soup.yaml:", "../soup.yaml", "can't be a path"},
		{"unresolved check", level, "check: three\n        message: it is 2", "check: four\n        message: it is 2", "four", `no check "four"`},
		{"answer that nobody asked for", level, "answers: {asked:", "answers: {three:", "answers: {three", "doesn't ask for an answer"},
		{"check twice", level, "id: asked", "id: three\n      # again", "again", ""},
		{"too few wrong solutions", level, "      - title: two\n        script: kubectl scale deployment soup --replicas=2\n        check: three\n        message: it is 2\n", "", "- id: boil", "at least two wrong"},
		{"raw HTML in a task", level, "en: Boil it}", "en: <b>Boil</b> it}", "<b>", "raw HTML"},
		{"id that is used already", quiz, "id: which", "id: boil", "id: boil", "already used at " + level},
		{"two right options of one", quiz, "{id: b, text", "{id: b, right: true, text", "- id: which", "2 right options"},
		{"unknown kind of question", quiz, "kind: one", "kind: any", "kind: any", `"any" isn't one of`},
		{"unresolved exercise", lesson, "exercise boil", "exercise fry", "exercise fry", `no exercise "fry"`},
		{"unresolved question", lesson, "```quiz", "```quiz whose", "quiz whose", `no question "whose"`},
		{"unknown directive", lesson, "```command", "```comand", "comand", `unknown kind of block "comand"`},
		{"unknown speaker", lesson, "```quiz", "```aside waiter\nHi.\n```\n\n```quiz", "aside waiter", `"waiter"`},
		{"unresolved manifest", lesson, "```quiz", "```manifest manifests/x.yaml\n```\n\n```quiz", "manifest manifests/x", "no manifest"},
		{"raw HTML in a lesson", lesson, "Opening.", "Opening.\n\n<script>alert(1)</script>", "<script>", "raw HTML"},
		{"bad live value", lesson, "kubectl get pods", "kubectl get {{live: some pod}}", "{{live", "isn't of the form"},
		{"section without id", lesson, " {#boil}", "", "## Boiling", "needs an id"},
		{"image that the pantry lacks", soup, "image: soup:1", "image: stew", "image: stew", `no image "stew"`},
		{"tag that the pantry lacks", soup, "image: soup:1", "image: soup:7", "image: soup:7", `only with the tags 1, 2, not "7"`},
		{"missing image that exists", level, `["soup:9"]`, `["soup:9", "soup:1"]`, "soup:9", "should be missing"},
		{"missing image that nobody uses", level, `["soup:9"]`, `["soup:9", "soup:8"]`, "soup:9", `uses the missing image "soup:8"`},
		{"manifest without kind", soup, "kind: Deployment\n", "", "apiVersion: apps/v1", "no kind"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := files()
			if !strings.Contains(f[tt.file], tt.old) {
				t.Fatalf("%s has no %q", tt.file, tt.old)
			}
			f[tt.file] = strings.Replace(f[tt.file], tt.old, tt.text, 1)
			line := lineOf(t, f[tt.file], tt.mark)
			faults := Lint(fixture(f), pantry())
			for _, got := range faults {
				near := got.Line == line || tt.name == "not YAML" && got.Line > 0 || tt.name == "check twice"
				if got.File == tt.file && near && strings.Contains(got.Message, tt.message) {
					return
				}
			}
			t.Errorf("want %s:%d: ...%s..., got:\n%v", tt.file, line, tt.message, Faults(faults))
		})
	}
}

func TestClockOfACourse(t *testing.T) {
	f := files()
	f[house] = "speed: 61\n" + f[house]
	if faults := Faults(Lint(fixture(f), pantry())); !strings.Contains(faults.Error(), house+":0: speed is from 1 to 60") {
		t.Errorf("a clock that is too fast: %v", faults)
	}
}

func TestMissingFilesAreNamed(t *testing.T) {
	for _, name := range []string{level, quiz, lesson} {
		f := files()
		delete(f, name)
		faults := Faults(Lint(fixture(f), pantry()))
		if !strings.Contains(faults.Error(), name+":0: ") {
			t.Errorf("without %s: %v", name, faults)
		}
	}
}

func TestLanguagesHaveTheSameShape(t *testing.T) {
	f := files()
	f[lesson] = strings.Replace(f[lesson], "```command\nkubectl get pods\n```\n\n", "", 1)
	faults := Faults(Lint(fixture(f), pantry()))
	if !strings.Contains(faults.Error(), "the languages differ") {
		t.Errorf("got %v", faults)
	}
}

func TestAllFaultsAtOnceAndSorted(t *testing.T) {
	f := files()
	f[house] = strings.Replace(f[house], "Diner}", "}", 1)
	f[level] = strings.Replace(strings.Replace(f[level], "minutes: 5", "minutes: x", 1), "== 3", "== y", 1)
	_, err := Load(fixture(f))
	var faults Faults
	if !errors.As(err, &faults) || len(faults) < 3 {
		t.Fatalf("got %v", err)
	}
	if faults[0].File != level || faults[len(faults)-1].File != house || faults[0].Line > faults[1].Line {
		t.Errorf("not sorted: %v", faults)
	}
	var one *Fault
	if !errors.As(err, &one) || one.Line == 0 {
		t.Errorf("a single fault can't be found in %v", err)
	}
}

func TestNeeds(t *testing.T) {
	second := strings.NewReplacer("id: boil\n", "id: again\n    needs: [boil]\n", "files: {soup.yaml: manifests/soup.yaml}", "").Replace(strings.TrimPrefix(files()["diner/1/level.yaml"], "minutes: 5\nneeds: [audit]\nmissingImages: [\"soup:9\"]\nexercises:\n"))
	f := files()
	f["diner/1/level.yaml"] += second
	l, err := Load(fixture(f))
	if err != nil {
		t.Fatal(err)
	}
	boil, again := l.Courses[0].Exercise("boil"), l.Courses[0].Exercise("again")
	if before := again.Before(); len(before) != 1 || before[0] != boil || len(boil.Before()) != 0 {
		t.Errorf("before again: %v, before boil: %v", before, boil.Before())
	}
	for name, needs := range map[string]string{"itself": "[again]", "nobody": "[nobody]", "twice": "[boil, boil]"} {
		f["diner/1/level.yaml"] = files()["diner/1/level.yaml"] + strings.Replace(second, "[boil]", needs, 1)
		if _, err := Load(fixture(f)); err == nil {
			t.Errorf("needs %s: no fault", name)
		}
	}
}

func TestSheetOfKustomizeNeedsNoName(t *testing.T) {
	f := files()
	f["diner/1/manifests/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [soup.yaml]\n"
	if faults := Lint(fixture(f), pantry()); len(faults) > 0 {
		t.Error(Faults(faults))
	}
	f["diner/1/manifests/kustomization.yaml"] = "apiVersion: v1\nkind: Kustomization\n"
	if faults := Faults(Lint(fixture(f), pantry())); !strings.Contains(faults.Error(), "no metadata") {
		t.Errorf("another kind without a name: %v", faults)
	}
}
