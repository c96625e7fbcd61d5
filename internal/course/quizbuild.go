package course

import (
	"fmt"
	"slices"
	"strings"

	"kubistro/internal/checker"
)

// quizBuilder makes the questions of a level.
type quizBuilder struct {
	*builder
	level *Level
	file  string
}

func (b *quizBuilder) fault(line int, format string, args ...any) {
	b.faults = append(b.faults, Fault{File: b.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

func (b *quizBuilder) build(src quizFile) {
	for _, n := range src.Questions {
		b.unique(b.file, n.ID)
		q := &Question{
			ID: n.ID.Value, Kind: QuestionKind(n.Kind.Value), Topic: n.Topic.Value, Text: n.Text.Text, HTML: inBoth(n.Text.Text, true),
			Is: n.Is.Value == "true", Otherwise: inBoth(n.Otherwise.Text, false),
		}
		if n.Topic.Value != "" && !slug.MatchString(n.Topic.Value) {
			b.fault(n.Topic.Line, "%q can't be a topic: use small letters, digits and hyphens", n.Topic.Value)
		}
		for _, s := range n.Shown {
			if !strings.HasPrefix(s.Value, "Test") && b.course.Exercise(s.Value) == nil {
				b.fault(s.Line, "there is no exercise %q in the course so far; a Go test is named TestSomething", s.Value)
			}
			q.Shown = append(q.Shown, s.Value)
		}
		for _, o := range n.Options {
			b.option(q, o)
		}
		if q.Kind == InCluster {
			q.Check = b.check(n)
		}
		b.rules(n, q)
		b.level.Quiz = append(b.level.Quiz, q)
	}
}

func (b *quizBuilder) option(q *Question, n optionNode) {
	if slices.ContainsFunc(q.Options, func(x Option) bool { return x.ID == n.ID.Value }) {
		b.fault(n.ID.Line, "option %q stands here twice", n.ID.Value)
	}
	o := Option{ID: n.ID.Value, Text: n.Text.Text, HTML: inBoth(n.Text.Text, false), Pair: n.Pair.Text,
		Why: n.Why.Text, WhyHTML: inBoth(n.Why.Text, false), Right: n.Right}
	for _, a := range n.Accept {
		o.Accept = append(o.Accept, a.Value)
	}
	if all := q.Kind == Order || q.Kind == Match; all {
		if n.Right {
			b.fault(n.ID.Line, "options of kind %s have no right one: they are all right as they stand", q.Kind)
		}
		o.Right = true
	}
	if has := !n.Pair.IsZero(); has != (q.Kind == Match) {
		b.fault(n.ID.Line, "option %q: pair belongs to options of kind match, and they need it", o.ID)
	}
	if has := len(o.Accept) > 0; has != (q.Kind == Typed) {
		b.fault(n.ID.Line, "option %q: accept belongs to options of kind type, and they need it", o.ID)
	}
	if q.Kind == Match && strings.Contains(o.ID, "=") {
		b.fault(n.ID.Line, "option %q: an id of kind match has no =", o.ID)
	}
	q.Options = append(q.Options, o)
}

// check compiles the condition of a question about the cluster.
func (b *quizBuilder) check(n questionNode) *checker.Check {
	s := checker.Spec{ID: n.ID.Value, Title: n.Text.Text, Objects: objectsOf(n.Objects), Done: n.Why.Text, Answer: &checker.AnswerSpec{Prompt: n.Text.Text},
		Expect: []checker.Expectation{{That: n.That.Value, Line: n.That.Line, Message: n.Otherwise.Text}}}
	for _, l := range n.Let {
		s.Lets = append(s.Lets, checker.Let{Name: l.Name.Value, Expr: l.Is.Value, Line: l.Is.Line})
	}
	if n.That.Value == "" || n.Why.IsZero() || n.Otherwise.IsZero() {
		return nil // rules names it
	}
	c, err := checker.Compile(s)
	if err != nil {
		line, message := n.Line, err.Error()
		if f, ok := err.(*checker.Fault); ok {
			line, message = max(line, f.Line), f.Message
		}
		b.fault(line, "question %q: %s", n.ID.Value, message)
		return nil
	}
	if !c.Uses("answer") {
		b.fault(n.That.Line, "question %q: the condition doesn't look at answer", n.ID.Value)
	}
	return c
}

// rules demands what each kind of question has to have, and nothing else.
func (b *quizBuilder) rules(n questionNode, q *Question) {
	right := 0
	for _, o := range q.Options {
		if o.Right {
			right++
		}
	}
	if cluster := q.Kind == InCluster; cluster != (n.That.Value != "") || cluster != !n.Why.IsZero() {
		b.fault(n.Line, "question %q: that and why belong to kind cluster, which needs both", q.ID)
	}
	if open := q.Kind == InCluster || q.Kind == Typed; open != !n.Otherwise.IsZero() {
		b.fault(n.Line, "question %q: otherwise belongs to kinds type and cluster, which need it", q.ID)
	}
	if truth := q.Kind == Truth; truth != (n.Is.Value != "") {
		b.fault(n.Line, "question %q: is belongs to kind truth, which needs it", q.ID)
	}
	switch {
	case q.Kind == InCluster:
		if len(q.Options) > 0 {
			b.fault(n.Line, "question %q: kind cluster has no options", q.ID)
		}
	case q.Kind == Typed && right == 0:
		b.fault(n.Line, "question %q has no right option", q.ID)
	case q.Kind == Typed:
	case len(q.Options) < 3:
		b.fault(n.Line, "question %q needs at least three options", q.ID)
	case (q.Kind == OneOf || q.Kind == Truth) && right != 1:
		b.fault(n.Line, "question %q of kind %s has %d right options", q.ID, q.Kind, right)
	case q.Kind == SeveralOf && right == 0:
		b.fault(n.Line, "question %q has no right option", q.ID)
	case q.Kind == Match && len(q.Pairs()) < 2:
		b.fault(n.Line, "question %q: all options have the same pair", q.ID)
	}
}

// objectsOf are the objects of a check.
func objectsOf(nodes map[string]objectNode) map[string]checker.Object {
	out := map[string]checker.Object{}
	for name, o := range nodes {
		out[name] = checker.Object{Kind: o.Kind.Value, Namespace: o.Namespace.Value, Name: o.Name.Value, Labels: o.Labels.Value}
	}
	return out
}
