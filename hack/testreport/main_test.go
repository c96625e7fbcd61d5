package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	tests := []struct {
		name, json, tap, want string
		shows                 string
	}{
		{"pass and skip", `{"Action":"pass","Package":"p","Test":"A"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"pass","Package":"p"}`, "# pass 3\n# fail 0\n", "4 passed, 0 failed, 1 skipped", "ok   p"},
		{"failing test shows its output", `{"Action":"output","Package":"p","Test":"A","Output":"boom\n"}
{"Action":"fail","Package":"p","Test":"A"}
{"Action":"fail","Package":"p"}`, "# pass 0\n# fail 2\n", "0 passed, 3 failed", "boom"},
		{"package that doesn't build", `{"Action":"build-output","ImportPath":"p","Output":"undefined: x\n"}
{"Action":"build-fail","ImportPath":"p"}
{"Action":"fail","Package":"p"}`, "# pass 1\n", "1 passed, 1 failed", "undefined: x"},
		{"TAP cut short", ``, "ok 1\n", "0 passed, 1 failed", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r report
			var out strings.Builder
			r.readGo(strings.NewReader(tt.json), &out)
			r.readTAP(tt.tap)
			if got := r.line(); got != tt.want {
				t.Errorf("line = %q, want %q", got, tt.want)
			}
			if !strings.Contains(out.String(), tt.shows) {
				t.Errorf("output %q lacks %q", out.String(), tt.shows)
			}
		})
	}
}
