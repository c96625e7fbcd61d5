package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBoundingSet(t *testing.T) {
	file := filepath.Join(t.TempDir(), "status")
	if err := os.WriteFile(file, []byte("Name:\tx\nCapEff:\t0000000000000000\nCapBnd:\t000001fffeffffff\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := boundingSet(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"CAP_SYS_RESOURCE"}, without(set)); diff != "" {
		t.Error(diff)
	}
	if missing := without(1<<41 - 1); len(missing) != 0 {
		t.Errorf("a full set lacks %v", missing)
	}
}

func TestConfigurations(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--root", "/run/runc", "create", "--bundle", "/b", "--pid-file", "/p", "id"}, []string{"/b/config.json"}},
		{[]string{"create", "--bundle=/b", "id"}, []string{"/b/config.json"}},
		{[]string{"exec", "--process", "/tmp/process.json", "--detach", "id"}, []string{"/tmp/process.json"}},
		{[]string{"delete", "--force", "id"}, nil},
		{[]string{"create", "--bundle"}, []string{"config.json"}},
	} {
		if diff := cmp.Diff(c.want, configurations(c.args)); diff != "" {
			t.Errorf("%v: %s", c.args, diff)
		}
	}
}

func TestStrip(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"container": {
			`{"process":{"capabilities":{"bounding":["CAP_KILL","CAP_SYS_RESOURCE"],"effective":["CAP_SYS_RESOURCE"]}},"linux":{"resources":{"memory":{"limit":9223372036854771712}}}}`,
			`{"process":{"capabilities":{"bounding":["CAP_KILL"],"effective":[]}},"linux":{"resources":{"memory":{"limit":9223372036854771712}}}}`,
		},
		"process":              {`{"args":["sh"],"capabilities":{"ambient":["CAP_SYS_RESOURCE","CAP_CHOWN"]}}`, `{"args":["sh"],"capabilities":{"ambient":["CAP_CHOWN"]}}`},
		"without capabilities": {`{"process":{"args":["sh"]}}`, `{"process":{"args":["sh"]}}`},
	} {
		got, err := strip([]byte(c.in), []string{"CAP_SYS_RESOURCE"})
		if err != nil {
			t.Fatal(err)
		}
		var a, b map[string]json.RawMessage
		if err := json.Unmarshal(got, &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.want), &b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, a); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := strip([]byte("{"), nil); err == nil {
		t.Error("half a configuration was taken")
	}
}
