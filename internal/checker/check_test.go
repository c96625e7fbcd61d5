package checker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/lab"
)

const grill = `
kind: Deployment
metadata: {name: grill, generation: 2}
spec:
  replicas: 2
  selector: {matchLabels: {station: grill}}
  template: {spec: {containers: [{name: cook, image: "grill-cook:1.4"}]}}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}`

func deployment(that ...string) Spec {
	s := Spec{Objects: map[string]Object{"grill": {Kind: "Deployment", Name: "grill"}}}
	for _, e := range that {
		s.Expect = append(s.Expect, Expectation{That: e})
	}
	return s
}

func TestNotMetNamesTheDifference(t *testing.T) {
	tests := []struct {
		name, that string
		want       lab.CheckResult
	}{
		{"a field", "grill.spec.replicas == 3",
			lab.CheckResult{Object: "deployment/grill", Field: "spec.replicas", Expected: "3", Found: "2"}},
		{"a comparison", "grill.status.availableReplicas >= 3",
			lab.CheckResult{Object: "deployment/grill", Field: "status.availableReplicas", Expected: "≥ 3", Found: "2"}},
		{"an optional field that is missing", "grill.?status.?readyReplicas.orValue(0) == 3",
			lab.CheckResult{Object: "deployment/grill", Field: "status.readyReplicas", Expected: "3", Found: "0"}},
		{"a field that is missing", "grill.status.readyReplicas == 3",
			lab.CheckResult{Object: "deployment/grill", Field: "status.readyReplicas", Expected: "3", Found: "—"}},
		{"an image in a list", "grill.spec.template.spec.containers[0].image == 'grill-cook:1.5'",
			lab.CheckResult{Object: "deployment/grill", Field: "spec.template.spec.containers[0].image", Expected: "grill-cook:1.5", Found: "grill-cook:1.4"}},
		{"an image by meaning", "usesImage(grill, 'grill-cook:1.5')",
			lab.CheckResult{Object: "deployment/grill", Field: "image", Expected: "grill-cook:1.5", Found: "grill-cook:1.4"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := compile(t, deployment(tt.that)).Run(t.Context(), worldOf(t, grill))
			want(t, got, lab.CheckNotMet, tt.want.Field, tt.want.Expected)
			got.Check, got.Status, got.Message = "", "", lab.Text{}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMessageIsFilledInBothLanguages(t *testing.T) {
	s := deployment()
	s.Expect = []Expectation{{That: "grill.spec.replicas == 3", Message: lab.Text{
		ZhTW: "寫的是 {grill.spec.replicas} {{位}}", En: "it says {grill.spec.replicas > 1 ? 'some {' : 'none'} {{x}} {grill.nothing}"}}}
	got := compile(t, s).Run(t.Context(), worldOf(t, grill))
	if diff := cmp.Diff(lab.Text{ZhTW: "寫的是 2 {位}", En: "it says some { {x} —"}, got.Message); diff != "" {
		t.Error(diff)
	}
}

func TestMetShowsDone(t *testing.T) {
	s := deployment("grill.spec.replicas == 2", "rolledOut(grill)")
	s.Done = lab.Text{ZhTW: "好", En: "{grill.spec.replicas} cooks"}
	want(t, compile(t, s).Run(t.Context(), worldOf(t, grill)), lab.CheckMet, "2 cooks")
}

func TestAbsence(t *testing.T) {
	absent := compile(t, deployment("grill.spec.replicas == 3"))
	got := absent.Run(t.Context(), worldOf(t, "kind: Deployment\nmetadata: {name: gril}"))
	want(t, got, lab.CheckNotMet, "no Deployment named grill", "gril: a typo?")
	if got.Object != "deployment/grill" || got.Found != "NotFound" {
		t.Errorf("object %q, found %q", got.Object, got.Found)
	}
	gone := deployment()
	gone.Expect = []Expectation{{That: "grill == null", Message: lab.Text{ZhTW: "還在", En: "still there"}}}
	want(t, compile(t, gone).Run(t.Context(), worldOf(t, "kind: Pod\nmetadata: {name: x}")), lab.CheckMet)
	want(t, compile(t, gone).Run(t.Context(), worldOf(t, grill)), lab.CheckNotMet, "still there")
}

// Case 3: a look that failed is never "gone", and never met.
func TestFailedLookIsUnknown(t *testing.T) {
	expects := []string{"grill == null", "grill.spec.replicas == 3", "size(cooks) == 0", "size(record) == 0", "web.all(r, r.code == 200)"}
	for _, that := range expects {
		for _, fail := range []error{
			errors.New("dial tcp: connection refused"), context.DeadlineExceeded,
			fmt.Errorf("read: %w", lab.Fail(lab.CodeUnavailable, "叢集睡著了", "the cluster is asleep")),
		} {
			s := deployment()
			s.Objects["cooks"] = Object{Kind: "Pod", Labels: "station=grill"}
			s.Requests = map[string]RequestSpec{"web": {Request: Request{URL: "http://web/"}}}
			s.Expect = []Expectation{{That: that, Message: lab.Text{ZhTW: "不", En: "no"}}}
			got := compile(t, s).Run(t.Context(), &world{fail: fail})
			want(t, got, lab.CheckUnknown)
			if len(got.Message.Missing()) > 0 || got.Message.En == fail.Error() {
				t.Errorf("%s: message %+v isn't for people", that, got.Message)
			}
		}
	}
}

func TestFaultOfTheCheckIsUnknown(t *testing.T) {
	for _, that := range []string{"1 / (grill.spec.replicas - 2) == 1", "grill.spec.replicas + 'x' == 'y'", "timestamp(grill.metadata.name) < now"} {
		s := deployment()
		s.Expect = []Expectation{{That: that, Message: lab.Text{ZhTW: "不", En: "no"}}}
		want(t, compile(t, s).Run(t.Context(), worldOf(t, grill)), lab.CheckUnknown, "at fault")
	}
}

func TestCostAndTimeAreBounded(t *testing.T) {
	w := worldOf(t, grill)
	for i := range 3000 {
		w.events = append(w.events, lab.Event{N: uint64(i + 1)})
	}
	s := Spec{Expect: []Expectation{{That: "record.exists(a, record.exists(b, record.exists(c, a.n + b.n + c.n < 0)))", Message: lab.Text{ZhTW: "不", En: "no"}}}}
	start := time.Now()
	want(t, compile(t, s).Run(t.Context(), w), lab.CheckUnknown)
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, compile(t, deployment("grill.spec.replicas == 2")).Run(ctx, w), lab.CheckUnknown)
}

type panicking struct{ *world }

func (panicking) Get(context.Context, string, string, string) (map[string]any, error) { panic("boom") }

func TestRunNeverPanics(t *testing.T) {
	want(t, compile(t, deployment("grill.spec.replicas == 3")).Run(t.Context(), panicking{}), lab.CheckUnknown)
}

func TestRecord(t *testing.T) {
	w := worldOf(t, grill)
	pod := func(name string) lab.ObjectRef { return lab.ObjectRef{Kind: "Pod", Namespace: "default", Name: name} }
	s := Spec{
		Lets: []Let{{Name: "left", Expr: "record.filter(e, e.type == 'audit' && e.actor == 'learner' && e.verb == 'delete' && e.object.kind == 'Pod')"}},
		Expect: []Expectation{
			{That: "size(left) > 0", Message: lab.Text{ZhTW: "還沒請走", En: "nobody was sent away"}},
			{That: "record.exists(e, e.type == 'audit' && e.verb == 'create' && e.actor == 'replicaset-controller' && e.n > left[0].n)",
				Message: lab.Text{ZhTW: "還沒有人補上", En: "{left[0].object.name} has no replacement"}},
		},
	}
	c := compile(t, s)
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "nobody was sent away")
	w.events = []lab.Event{
		{N: 4, Type: lab.EventAudit, Actor: "replicaset-controller", Verb: "create", Object: pod("a")},
		{N: 9, Type: lab.EventAudit, Actor: "learner", Verb: "delete", Object: pod("a")},
	}
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "a has no replacement")
	w.events = append(w.events, lab.Event{N: 12, Type: lab.EventAudit, Actor: "replicaset-controller", Verb: "create", Object: pod("b")})
	want(t, c.Run(t.Context(), w), lab.CheckMet)
	if diff := cmp.Diff([]string{"record"}, c.Watches()); diff != "" {
		t.Error(diff)
	}
}

func TestAnswer(t *testing.T) {
	s := deployment()
	s.ID, s.Answer = "who", &AnswerSpec{Prompt: lab.Text{ZhTW: "幾位？", En: "How many?"}}
	s.Expect = []Expectation{{That: "int(answer) == grill.spec.replicas", Message: lab.Text{ZhTW: "不是 {answer}", En: "not {answer}"}}}
	c, w := compile(t, s), worldOf(t, grill)
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "No answer")
	w.answers["who"] = "  "
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "No answer")
	w.answers["who"] = "7"
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "not 7")
	w.answers["who"] = " 2 "
	want(t, c.Run(t.Context(), w), lab.CheckMet)
	w.answers["who"] = "two"
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "not two")
}

func TestFile(t *testing.T) {
	s := Spec{Files: map[string]string{"sheet": "grill.yaml"}, Expect: []Expectation{{
		That:    "sheet.docs.exists(d, d.?kind.orValue('') == 'Deployment' && usesImage(d, 'grill-cook:1.5'))",
		Message: lab.Text{ZhTW: "檔案還寫著舊的", En: "the file is still the old one"}}}}
	c, w := compile(t, s), worldOf(t, grill)
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "no file grill.yaml")
	w.files["grill.yaml"] = "kind: Deployment\n  bad: indent"
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "can't be read as YAML")
	w.files["grill.yaml"] = "# menu\nkind: Service\n--- # second\n" + grill
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "still the old one")
	w.files["grill.yaml"] = "kind: Service\n---\nkind: Deployment\nspec: {template: {spec: {containers: [{image: 'docker.io/library/grill-cook:1.5'}]}}}\n---\n"
	want(t, c.Run(t.Context(), w), lab.CheckMet)
	if diff := cmp.Diff([]string{"file:grill.yaml"}, c.Watches()); diff != "" {
		t.Error(diff)
	}
}

func TestRequestsAreSentAndSpread(t *testing.T) {
	n := 0
	w := worldOf(t, grill)
	w.respond = func(r Request) (Response, error) {
		n++
		return Response{Code: 200, Body: fmt.Sprintf("Hostname: grill-%d\n", n%3)}, nil
	}
	s := Spec{
		Requests: map[string]RequestSpec{"calls": {Request: Request{URL: "http://grill/"}, Times: 9}},
		Expect: []Expectation{
			{That: "calls.all(r, r.code == 200)", Message: lab.Text{ZhTW: "有人沒接", En: "one wasn't answered"}},
			{That: "size(calls.map(r, r.body).distinct()) == 3", Message: lab.Text{ZhTW: "不是三位", En: "not three"}},
		},
	}
	want(t, compile(t, s).Run(t.Context(), w), lab.CheckMet)
	if w.requests != 9 {
		t.Errorf("%d requests, want 9: once per run", w.requests)
	}
}

func TestAgo(t *testing.T) {
	w := worldOf(t, "kind: Pod\nmetadata: {name: x, creationTimestamp: '2026-12-01T11:59:00Z'}")
	s := Spec{Objects: map[string]Object{"x": {Kind: "Pod", Name: "x"}}, Expect: []Expectation{{
		That: "ago(x.metadata.creationTimestamp) < duration('30s')", Message: lab.Text{ZhTW: "太久", En: "too old"}}}}
	c := compile(t, s)
	c.now = func() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "too old")
	c.now = func() time.Time { return time.Date(2026, 12, 1, 11, 59, 20, 0, time.UTC) }
	want(t, c.Run(t.Context(), w), lab.CheckMet)
}
