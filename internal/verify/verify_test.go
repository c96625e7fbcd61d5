package verify

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"kubistro/internal/course"
	"kubistro/internal/lab"
)

const levelYAML = `minutes: 5
exercises:
  - id: cook
    title: {zh-TW: 煮, en: Cook}
    task: {zh-TW: 煮, en: Cook}
    settle: 300ms
    checks:
      - {id: done, title: {zh-TW: 好, en: Done}, expect: [{that: "true", message: {zh-TW: 還沒, en: raw}}]}
    hints: [{text: {zh-TW: 一, en: One}}, {text: {zh-TW: 二, en: Two}}]
    solutions:
      - {title: {zh-TW: 解, en: By hand}, script: cook}
    wrong:
      - {title: burnt, script: burn, check: done, message: burnt}
      - {title: nothing, script: sleep, check: done, message: raw}
`

// library is a course of one exercise. Its expectations don't matter: the lab of these tests says what is met.
func library(t *testing.T, lesson string) *course.Library {
	t.Helper()
	title := "{zh-TW: 一, en: One}"
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"diner/course.yaml":  "title: " + title + "\nsummary: " + title + "\nlevels:\n  - {title: " + title + ", summary: " + title + "}\n",
		"diner/1/level.yaml": levelYAML, "diner/1/quiz.yaml": "questions: []\n",
		"diner/1/lesson.zh-TW.md": "# 一\n" + lesson, "diner/1/lesson.en.md": "# One\n" + lesson,
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	l, err := course.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pretender is a lab whose exercise is in the state that the newest script has left.
type pretender struct {
	mu      sync.Mutex
	state   string
	states  map[string]lab.CheckResult // by script; "" is the start
	print   map[string]string          // by command
	codes   map[string]int
	typed   []string
	events  uint64
	answers int
}

func newPretender() *pretender {
	result := func(s lab.CheckStatus, en string) lab.CheckResult {
		return lab.CheckResult{Check: "done", Status: s, Message: lab.Text{ZhTW: en, En: en}}
	}
	return &pretender{states: map[string]lab.CheckResult{
		"": result(lab.CheckNotMet, "raw"), "cook": result(lab.CheckMet, ""), "burn": result(lab.CheckNotMet, "it is burnt"), "sleep": result(lab.CheckNotMet, "still raw"),
	}, print: map[string]string{}, codes: map[string]int{}}
}

func (p *pretender) Open(context.Context, lab.LearnerID, string) (lab.Session, bool, error) {
	return lab.Session{ID: "s"}, true, nil
}

func (p *pretender) Get(context.Context, lab.LearnerID, string) (lab.Session, error) {
	return lab.Session{ID: "s", Status: lab.Status{State: lab.StateReady}, State: lab.StateReady}, nil
}

func (p *pretender) End(context.Context, lab.LearnerID, string) error { return nil }

func (p *pretender) Check(context.Context, lab.LearnerID, string, string) (lab.ExerciseState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return lab.ExerciseState{Exercise: "cook", Started: true, Checks: []lab.CheckResult{p.states[p.state]}}, nil
}

func (p *pretender) Answer(ctx context.Context, l lab.LearnerID, id, e, _, _ string) (lab.ExerciseState, error) {
	p.answers++
	return p.Check(ctx, l, id, e)
}

func (p *pretender) ResetExercise(context.Context, lab.LearnerID, string, string) (lab.Operation, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = ""
	return lab.Operation{ID: "o", Done: true}, nil
}

func (p *pretender) Operation(context.Context, lab.LearnerID, string, string) (lab.Operation, error) {
	return lab.Operation{ID: "o", Done: true}, nil
}

func (p *pretender) Put(context.Context, lab.LearnerID, string, string, []byte) error { return nil }

func (p *pretender) Exec(context.Context, lab.LearnerID, string, string) (string, int, error) {
	return "", 0, nil
}

func (p *pretender) Type(_ context.Context, _ lab.LearnerID, _, _, script string, _ time.Duration) (string, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.typed = append(p.typed, script)
	if _, known := p.states[script]; known {
		p.state = script
	}
	return p.print[script], p.codes[script], nil
}

func (p *pretender) CloseTerminal(context.Context, lab.LearnerID, string, string) error { return nil }

func (p *pretender) LastEvent(context.Context, lab.LearnerID, string) (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events, nil
}

func run(t *testing.T, p *pretender, lesson string) []Step {
	t.Helper()
	l := library(t, lesson)
	exercises, err := Select(l, "")
	if err != nil {
		t.Fatal(err)
	}
	var levels []*course.Level
	if lesson != "" {
		levels, exercises = Levels(exercises, ""), nil
	}
	steps, err := Run(t.Context(), Config{Lab: p, Library: l, Workers: 2, Log: slog.New(slog.DiscardHandler)}, levels, exercises)
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// No result that isn't right gives a report without faults.
func TestEveryWrongResultIsAFault(t *testing.T) {
	if steps := run(t, newPretender(), ""); Faults(steps) != 0 || len(steps) != 7 {
		t.Fatalf("a sound exercise: %+v", steps)
	}
	for name, tt := range map[string]struct {
		script string
		status lab.CheckStatus
		en     string
		kind   string
	}{
		"met before the solution":               {"", lab.CheckMet, "", "start"},
		"unknown before the solution":           {"", lab.CheckUnknown, "no look", "start"},
		"not met after the right solution":      {"cook", lab.CheckNotMet, "raw", "solution"},
		"unknown after the right solution":      {"cook", lab.CheckUnknown, "no look", "solution"},
		"met after a wrong one":                 {"burn", lab.CheckMet, "", "wrong"},
		"unknown after a wrong one":             {"burn", lab.CheckUnknown, "it is burnt", "wrong"},
		"another message after a wrong one":     {"burn", lab.CheckNotMet, "raw", "wrong"},
		"no message after one that did nothing": {"sleep", lab.CheckNotMet, "", "wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPretender()
			r := p.states[tt.script]
			r.Status, r.Message.En = tt.status, tt.en
			p.states[tt.script] = r
			steps := run(t, p, "")
			found := false
			for _, s := range steps {
				found = found || s.Fault != "" && s.Kind == tt.kind
			}
			if !found || Faults(steps) == 0 {
				t.Errorf("no fault of kind %s: %+v", tt.kind, steps)
			}
		})
	}
}

func TestNothingTriedIsAnError(t *testing.T) {
	l := library(t, "")
	l.Courses[0].Levels[0].Needs = []string{"real-containers"}
	exercises, err := Select(l, "")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := Run(t.Context(), Config{Lab: newPretender(), Library: l, Log: slog.New(slog.DiscardHandler)}, Levels(exercises, ""), exercises)
	if err == nil || len(steps) != 2 || steps[0].Skipped == "" {
		t.Errorf("%v %+v", err, steps)
	}
}

func TestBriefTriesOneOfEach(t *testing.T) {
	l := library(t, "")
	exercises, err := Select(l, "")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for seed := range uint64(4) {
		p := newPretender()
		steps, err := Run(t.Context(), Config{Lab: p, Library: l, Log: slog.New(slog.DiscardHandler), Brief: true, Seed: seed}, nil, exercises)
		if err != nil || Faults(steps) != 0 || len(steps) != 5 || steps[1].Kind != "solution" || steps[3].Kind != "wrong" {
			t.Errorf("seed %d: %v %+v", seed, err, steps)
		}
		seen[steps[3].Title] = true
	}
	if !seen["burnt"] || !seen["nothing"] {
		t.Errorf("other seeds try the same: %v", seen)
	}
}

func TestWhatTimeDoesNotReachIsSkipped(t *testing.T) {
	l := library(t, "")
	exercises, err := Select(l, "")
	if err != nil {
		t.Fatal(err)
	}
	twice := append(exercises, exercises...)
	steps, err := Run(t.Context(), Config{Lab: newPretender(), Library: l, Log: slog.New(slog.DiscardHandler), Within: 1, Workers: 1}, nil, twice)
	if err != nil || len(steps) != 8 || steps[0].Skipped != "" || steps[7].Skipped == "" {
		t.Errorf("%v %+v, want the first tried and the second skipped", err, steps)
	}
}

const lesson = "\n## See {#see}\n\n```command\nkubectl get pods\n```\n\n```output\nNAME   READY\nsoup   1/1   ## ready\n```\n\n```command fails\nkubectl get secret\n```\n\n## Cook {#cook}\n\n```exercise cook\n```\n"

func TestLessonIsWalkedThrough(t *testing.T) {
	good := func() *pretender {
		p := newPretender()
		p.print["kubectl get pods"], p.codes["kubectl get secret"] = "NAME   READY   AGE\nsoup   1/1     3s\n", 1
		return p
	}
	p := good()
	if steps := run(t, p, lesson); Faults(steps) != 0 || len(steps) != 2 || steps[0].Name() != "lesson see" {
		t.Fatalf("a sound lesson: %+v", steps)
	}
	if got := strings.Join(p.typed, ";"); got != "kubectl get pods;kubectl get secret;cook" {
		t.Errorf("typed %s", got)
	}
	for name, tt := range map[string]struct {
		change func(*pretender)
		lesson string
		fault  string
	}{
		"a command fails":              {func(p *pretender) { p.codes["kubectl get pods"] = 1 }, lesson, "code 1"},
		"one that should doesn't":      {func(p *pretender) { p.codes["kubectl get secret"] = 0 }, lesson, "should fail"},
		"the exercise isn't done":      {func(p *pretender) { p.states["cook"] = p.states[""] }, lesson, "not met after the right solution"},
		"an output without a command":  {func(*pretender) {}, "\n## A {#a}\n\n```exercise cook\n```\n\n```output\nx\n```\n", "without a command"},
		"an output of another command": {func(*pretender) {}, "\n## A {#a}\n\n```command\nkubectl run x\n```\n\n```output\nx created\n```\n\n```exercise cook\n```\n", `"x created"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := good()
			tt.change(p)
			steps := run(t, p, tt.lesson)
			var all []string
			for _, s := range steps {
				all = append(all, s.Fault)
			}
			if !strings.Contains(strings.Join(all, "\n"), tt.fault) {
				t.Errorf("faults %q, want one with %q", all, tt.fault)
			}
		})
	}
	t.Run("an example isn't compared", func(t *testing.T) {
		if steps := run(t, good(), "\n## A {#a}\n\n```output example\nx\n```\n\n```exercise cook\n```\n"); Faults(steps) != 0 {
			t.Error(steps)
		}
	})
}

func TestJUnit(t *testing.T) {
	steps := []Step{
		{Course: "a", Level: "1", Exercise: "x", Kind: "start", Millis: 1500},
		{Course: "a", Level: "1", Exercise: "x", Kind: "wrong", Title: "<b>", Fault: `says "&"`, Output: "]]>\x1b[1m"},
		{Course: "a", Level: "2", Kind: "lesson", Skipped: "the driver lacks audit"},
	}
	var b bytes.Buffer
	if err := WriteJUnit(&b, steps, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, b.Bytes())
	}
	if s := fmt.Sprintf("%d %d %d %s %d %s", got.Tests, got.Failures, got.Skipped, got.Time, len(got.Suites), got.Suites[0].Time); s != "3 1 1 2.000 2 1.500" {
		t.Errorf("%s\n%s", s, b.Bytes())
	}
	if c := got.Suites[0].Cases[1]; c.Name != "x wrong <b>" || c.Failure == nil || c.Failure.Message != `says "&"` || !strings.Contains(c.Failure.Text, "]]>") {
		t.Errorf("%+v", c)
	}
}
