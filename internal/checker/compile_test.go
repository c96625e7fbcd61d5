package checker

import (
	"errors"
	"strings"
	"testing"

	"kubistro/internal/lab"
)

func TestCompileFaults(t *testing.T) {
	one := lab.Text{ZhTW: "一", En: "one"}
	tests := []struct {
		name         string
		spec         Spec
		message      string
		line, column int
	}{
		{"nothing expected", Spec{}, "expects nothing", 1, 1},
		{"syntax", deployment("grill.spec.replicas =="), "Syntax error", 1, 23},
		{"unknown variable", deployment("gril.spec == 1"), "undeclared reference to 'gril'", 1, 1},
		{"unknown function", deployment("isOk(grill)"), "undeclared reference to 'isOk'", 1, 5},
		{"answer without a question", deployment("answer == 'x'"), "undeclared reference to 'answer'", 1, 1},
		{"not a condition", deployment("1 + 1"), "must be true or false, not int", 1, 1},
		{"no message", deployment("has(grill.spec)"), "needs a message", 1, 1},
		{"line in the file", Spec{Expect: []Expectation{{That: "true &&\n  x", Line: 40, Message: one}}}, "undeclared", 41, 3},
		{"placeholder", Spec{Expect: []Expectation{{That: "true", Message: lab.Text{ZhTW: "{x}", En: "x"}, Line: 7}}}, "undeclared", 7, 1},
		{"open placeholder", Spec{Expect: []Expectation{{That: "true", Message: lab.Text{ZhTW: "{'}'", En: "x"}}}}, "isn't closed", 1, 1},
		{"reserved name", Spec{Objects: map[string]Object{"record": {Kind: "Pod"}}}, "declared twice", 1, 1},
		{"bad name", Spec{Objects: map[string]Object{"Grill-1": {Kind: "Pod"}}}, "can't be the name", 1, 1},
		{"bad selector", Spec{Objects: map[string]Object{"p": {Kind: "Pod", Labels: "a=b=c"}}}, "labels that can't be read", 1, 1},
		{"no kind", Spec{Objects: map[string]Object{"p": {Name: "x"}}}, "no kind", 1, 1},
		{"too many requests", Spec{Requests: map[string]RequestSpec{"r": {Request: Request{URL: "http://x"}, Times: 1000}}}, "times must be", 1, 1},
		{"let", Spec{Lets: []Let{{Name: "x", Expr: "y", Line: 5}}}, "undeclared", 5, 1},
		{"huge", deployment(strings.Repeat("1+", 9000) + "1 == 1"), "longer than", 1, 1},
		{"deep", deployment(strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000) + "== 1"), "recursion", 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(tt.spec)
			var f *Fault
			if !errors.As(err, &f) {
				t.Fatalf("error %v, want a Fault", err)
			}
			if !strings.Contains(f.Message, tt.message) || f.Line != tt.line || tt.column > 0 && f.Column != tt.column {
				t.Errorf("%s, want %d:%d: ...%s", f.Error(), tt.line, tt.column, tt.message)
			}
		})
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"grill.spec.replicas == 3", "size(cooks) == 0", "record.exists(e, e.n > 1)", "grill.?a.?b.orValue(0) > 1",
		"cooks.all(p, podReady(p)) && cooks.exists(p, restarts(p) > 0)", "ago(grill.x) < duration('1s')",
		"sameImage(grill.spec.image, 'nginx')", "cel.bind(x, grill, x.y)", "{'a': 1}[?'b']", "'%s'.format([grill])", "((((", "\x00", "a.b.c in [1,2]",
	} {
		f.Add(s, "text {"+s+"}")
	}
	w := &world{}
	f.Fuzz(func(t *testing.T, that, message string) {
		c, err := Compile(Spec{
			ID:      "x",
			Objects: map[string]Object{"grill": {Kind: "Deployment", Name: "grill"}, "cooks": {Kind: "Pod", Labels: "a=b"}},
			Expect:  []Expectation{{That: that, Message: lab.Text{ZhTW: message, En: message}}},
		})
		if err != nil {
			var fault *Fault
			if !errors.As(err, &fault) || fault.Line < 1 || fault.Column < 1 {
				t.Fatalf("error %#v isn't a Fault with a place", err)
			}
			return
		}
		if r := c.Run(t.Context(), w); r.Status == "" {
			t.Fatal("no status")
		}
	})
}
