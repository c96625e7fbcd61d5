package course

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"kubistro/internal/checker"
	"kubistro/internal/lab"
)

var slug = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// homePath is what may be named in a learner's home: no way out of it.
func homePath(p string) bool { return fs.ValidPath(p) && p != "." }

// levelBuilder makes the exercises of a level.
type levelBuilder struct {
	*builder
	level     *Level
	dir, file string
}

func (b *levelBuilder) fault(line int, format string, args ...any) {
	b.faults = append(b.faults, Fault{File: b.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

// unique demands that an exercise or question has an id of its own within the course.
func (b *builder) unique(file string, id word) {
	place := fmt.Sprintf("%s:%d", file, id.Line)
	switch first, taken := b.ids[id.Value]; {
	case id.Value == "":
	case !slug.MatchString(id.Value):
		b.faults = append(b.faults, Fault{File: file, Line: id.Line, Message: fmt.Sprintf("%q can't be an id: use small letters, digits and hyphens", id.Value)})
	case taken:
		b.faults = append(b.faults, Fault{File: file, Line: id.Line, Message: fmt.Sprintf("id %q is already used at %s", id.Value, first)})
	default:
		b.ids[id.Value] = place
	}
}

func (b *levelBuilder) build(src levelFile) {
	b.level.Minutes = src.Minutes
	for _, n := range src.Needs {
		b.level.Needs = append(b.level.Needs, n.Value)
	}
	b.level.Cluster, b.level.Panels = b.shape(src.Cluster), panels(src.Panels)
	for i, n := range src.Exercises {
		if len(n.Home) > 0 && !slices.Contains(b.level.Needs, "control-loops") {
			b.fault(n.Line, "exercise %q sends control loops home: the level must need control-loops", n.ID.Value)
		}

		b.level.Exercises = append(b.level.Exercises, b.exercise(string(rune('a'+i%26)), n))
	}
}

func (b *levelBuilder) exercise(letter string, n exerciseNode) *Exercise {
	b.unique(b.file, n.ID)
	needs := b.needs(n)
	if n.Fresh && len(needs) > 0 {
		b.fault(n.ID.Line, "an exercise that goes on from others (needs) can't begin afresh (fresh)")
	}
	e := &Exercise{Needs: needs, Fresh: n.Fresh, Level: b.level, ID: n.ID.Value, Letter: letter, Title: n.Title.Text, Task: n.Task.Text,
		TaskHTML: inBoth(n.Task.Text, true), Settle: b.duration(n.Settle, 20*time.Second)}
	b.markdown(n.Task)
	e.Setup, e.Inject = b.manifests(n.Setup), b.manifests(n.Inject)
	e.Files = b.homeFiles(n.Files)
	for _, h := range n.Home {
		e.Home = append(e.Home, h.Value)
	}
	base := b.spec(n)
	e.Guests = base.Guests
	e.Ready = b.condition(base, n.ID.Value+"/ready", n.Ready)
	e.Shows = b.condition(base, n.ID.Value+"/shows", n.Shows)
	for _, c := range n.Checks {
		if check := b.check(base, c); check != nil {
			if e.Check(check.ID()) != nil {
				b.fault(c.ID.Line, "check %q stands here twice", check.ID())
				continue
			}
			e.Checks = append(e.Checks, check)
		}
	}
	for i, h := range n.Hints {
		b.markdown(h.Text)
		e.Hints = append(e.Hints, Hint{Text: h.Text.Text, HTML: inBoth(h.Text.Text, true),
			When: b.condition(base, fmt.Sprintf("%s/hint-%d", n.ID.Value, i+1), h.When)})
	}
	for _, s := range n.Solutions {
		e.Solutions = append(e.Solutions, Solution{Title: s.Title.Text, Files: b.homeFiles(s.Files), Script: s.Script.Value, Answers: b.answers(e, s.Answers)})
	}
	for _, w := range n.Wrong {
		if e.Check(w.Check.Value) == nil && w.Check.Line > 0 {
			b.fault(w.Check.Line, "there is no check %q in this exercise", w.Check.Value)
		}
		e.Wrong = append(e.Wrong, Wrong{Title: w.Title.Value, Files: b.homeFiles(w.Files), Script: w.Script.Value,
			Answers: b.answers(e, w.Answers), Check: w.Check.Value, Message: w.Message.Value})
	}
	b.counts(n, e)
	return e
}

// manifests are paths in the level's folder.
func (b *levelBuilder) manifests(paths []word) []string {
	var out []string
	for _, p := range paths {
		if _, err := fs.Stat(b.level.Files, p.Value); err != nil {
			b.fault(p.Line, "there is no manifest %q in the level's folder", p.Value)
		}
		out = append(out, p.Value)
	}
	return out
}

// needs finds the exercises that an exercise goes on from, among those read so far.
func (b *levelBuilder) needs(n exerciseNode) []*Exercise {
	var out []*Exercise
	for _, need := range n.Needs {
		e := b.course.Exercise(need.Value)
		for _, before := range b.level.Exercises {
			if before.ID == need.Value {
				e = before
			}
		}
		switch {
		case e == nil:
			b.fault(need.Line, "there is no exercise %q before this one in the course", need.Value)
		case slices.Contains(out, e):
			b.fault(need.Line, "exercise %q stands here twice", need.Value)
		default:
			out = append(out, e)
		}
	}
	return out
}

// counts demands what every exercise has to offer.
func (b *levelBuilder) counts(n exerciseNode, e *Exercise) {
	if len(e.Checks) == 0 {
		b.fault(n.Line, "exercise %q has no check", e.ID)
	}
	if len(e.Hints) < 2 {
		b.fault(n.Line, "exercise %q needs at least two hints", e.ID)
	}
	if len(e.Solutions) == 0 {
		b.fault(n.Line, "exercise %q needs a solution", e.ID)
	}
	if len(e.Wrong) < 2 {
		b.fault(n.Line, "exercise %q needs at least two wrong solutions", e.ID)
	}
}

// homeFiles reads files for the learner's home.
func (b *levelBuilder) homeFiles(files map[string]word) map[string][]byte {
	out := map[string][]byte{}
	for name, w := range files {
		raw, err := fs.ReadFile(b.level.Files, w.Value)
		if err != nil {
			b.fault(w.Line, "there is no file %q in the level's folder", w.Value)
		}
		if !homePath(name) {
			b.fault(w.Line, "%q can't be a path in the learner's home", name)
		}
		out[name] = raw
	}
	return out
}

func (b *levelBuilder) answers(e *Exercise, answers map[string]word) map[string]string {
	out := map[string]string{}
	for id, a := range answers {
		if c := e.Check(id); c == nil || c.Answer() == nil {
			b.fault(a.Line, "check %q doesn't ask for an answer", id)
		}
		out[id] = a.Value
	}
	return out
}

func (b *levelBuilder) duration(w word, otherwise time.Duration) time.Duration {
	if w.Value == "" {
		return otherwise
	}
	d, err := time.ParseDuration(w.Value)
	if err != nil || d <= 0 {
		b.fault(w.Line, "%q isn't a time such as 20s", w.Value)
	}
	return d
}

// markdown demands that a text has no raw HTML.
func (b *levelBuilder) markdown(p prose) {
	for _, l := range lab.Langs() {
		if rawHTML(parseMarkdown([]byte(p.In(l)))) >= 0 {
			b.fault(p.Line, "raw HTML isn't allowed in lessons")
			return
		}
	}
}

// spec is the part of a check's source that all checks of an exercise share.
func (b *levelBuilder) spec(n exerciseNode) checker.Spec {
	s := checker.Spec{Objects: objectsOf(n.Objects), Requests: map[string]checker.RequestSpec{},
		Guests: map[string]checker.GuestSpec{}, Access: map[string]checker.Access{}, Stored: map[string]string{}, Files: map[string]string{}}
	for name, r := range n.Requests {
		s.Requests[name] = checker.RequestSpec{Times: r.Times, Together: r.Together, Request: checker.Request{
			URL: r.URL.Value, From: r.From.Value, Namespace: r.Namespace.Value, Method: r.Method.Value,
			Headers: values(r.Headers), Body: r.Body.Value, Timeout: b.duration(r.Timeout, 2*time.Second),
		}}
	}
	for name, g := range n.Guests {
		s.Guests[name] = checker.GuestSpec{Rate: g.Rate, Keep: b.duration(g.Keep, time.Minute), Request: checker.Request{
			URL: g.URL.Value, From: g.From.Value, Namespace: g.Namespace.Value, Method: g.Method.Value,
			Headers: values(g.Headers), Body: g.Body.Value, Timeout: b.duration(g.Timeout, 2*time.Second),
		}}
	}
	for name, a := range n.Access {
		q := checker.Access{User: a.User.Value, Verb: a.Verb.Value, Group: a.Group.Value, Resource: a.Resource.Value, Namespace: a.Namespace.Value, Name: a.Name.Value}
		for _, g := range a.Groups {
			q.Groups = append(q.Groups, g.Value)
		}
		s.Access[name] = q
	}
	for name, key := range n.Stored {
		s.Stored[name] = key.Value
	}
	for name, f := range n.Reads {
		if !homePath(f.Value) {
			b.fault(f.Line, "%q can't be a path in the learner's home", f.Value)
		}
		s.Files[name] = f.Value
	}
	for _, l := range n.Let {
		s.Lets = append(s.Lets, checker.Let{Name: l.Name.Value, Expr: l.Is.Value, Line: l.Is.Line})
	}
	return s
}

func values(in map[string]word) map[string]string {
	out := map[string]string{}
	for k, v := range in {
		out[k] = v.Value
	}
	return out
}

// condition compiles a CEL condition of the exercise; nil for an empty one.
func (b *levelBuilder) condition(base checker.Spec, id string, w word) *checker.Check {
	if strings.TrimSpace(w.Value) == "" {
		return nil
	}
	base.ID = id
	base.Expect = []checker.Expectation{{That: w.Value, Line: w.Line, Message: lab.Text{ZhTW: "還沒。", En: "Not yet."}}}
	return b.compile(base, w.Line)
}

func (b *levelBuilder) check(base checker.Spec, n checkNode) *checker.Check {
	s := base
	s.ID, s.Title, s.MustHold, s.Done = n.ID.Value, n.Title.Text, n.MustHold, n.Done.Text
	if !slug.MatchString(s.ID) && n.ID.Line > 0 {
		b.fault(n.ID.Line, "%q can't be an id: use small letters, digits and hyphens", s.ID)
	}
	if n.Answer != nil {
		s.Answer = &checker.AnswerSpec{Prompt: n.Answer.Prompt.Text}
		for _, c := range n.Answer.Choices {
			s.Answer.Choices = append(s.Answer.Choices, checker.Choice{Value: c.Value.Value, Label: c.Label.Text})
		}
	}
	for _, e := range n.Expect {
		s.Expect = append(s.Expect, checker.Expectation{That: e.That.Value, Line: e.That.Line, Message: e.Message.Text,
			Object: e.Object.Value, Field: e.Field.Value, Expected: e.Expected.Value, Found: e.Found.Value})
	}
	return b.compile(s, n.Line)
}

// compile compiles a check; its fault is put at the line of the part at fault, else at line.
func (b *levelBuilder) compile(s checker.Spec, line int) *checker.Check {
	c, err := checker.Compile(s)
	var f *checker.Fault
	if errors.As(err, &f) {
		if f.Line > 1 {
			line = f.Line
		}
		b.fault(line, "check %q: %s (column %d)", s.ID, f.Message, f.Column)
		return nil
	}
	return c
}

// inBoth converts a text in every language.
func inBoth(t lab.Text, paragraph bool) lab.Text {
	return lab.Text{ZhTW: htmlOf(t.ZhTW, paragraph), En: htmlOf(t.En, paragraph)}
}
