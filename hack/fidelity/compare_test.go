package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	left := []string{"$ kubectl get x", "same", "only left", "[exit code 1]"}
	right := []string{"$ kubectl get x", "same", "only right", "image is a simulation", "[exit code 1]"}
	known := []Explanation{
		{Title: "Simulated", match: regexp.MustCompile("simulation")},
		{Title: "Elsewhere", match: regexp.MustCompile("only"), Scenarios: []string{"other"}},
	}
	got := compare(&Scenario{Name: "x"}, left, right, known)
	want := []difference{
		{Line: "only left", Left: true, Place: "$ kubectl get x"}, {Line: "only right", Place: "$ kubectl get x"},
		{Line: "image is a simulation", Place: "$ kubectl get x", Explained: "Simulated"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if n := len(faults(got)); n != 2 {
		t.Errorf("%d faults", n)
	}
}

func TestCut(t *testing.T) {
	known := []Explanation{{Title: "Simulated", cut: regexp.MustCompile(` Simulated: .*`)}}
	got := compare(&Scenario{Name: "x"}, []string{"Pulled image", "Started a"}, []string{"Pulled image Simulated: ours.", "Started b"}, known)
	want := []difference{{Line: " Simulated: ours.", Explained: "Simulated"}, {Line: "Started a", Left: true}, {Line: "Started b"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseScenario(t *testing.T) {
	for name, c := range map[string]struct{ name, text, want string }{
		"good":           {"x", "title: t\nsteps: [{run: kubectl get pods}, {wait: kubectl get x, until: y}]", ""},
		"name":           {"X_y", "title: t\nsteps: [{run: a}]", "namespace"},
		"no steps":       {"x", "title: t", "title and steps"},
		"two in one":     {"x", "title: t\nsteps: [{run: a, wait: b}]", "one of"},
		"unknown field":  {"x", "title: t\nsteps: [{runs: a}]", "unknown field"},
		"until alone":    {"x", "title: t\nsteps: [{run: a, until: b}]", "belong to wait"},
		"lab not alone":  {"x", "title: t\nsteps: [{lab: power kitchen-1 off}]", "alone"},
		"lab":            {"x", "title: t\nalone: true\nsteps: [{lab: power kitchen-1 off}]", ""},
		"unknown act":    {"x", "title: t\nalone: true\nsteps: [{lab: burn kitchen-1 off}]", "none of"},
		"file elsewhere": {"x", "title: t\nfiles: {../x: y}\nsteps: [{run: a}]", "file's name"},
		"ignore":         {"x", "title: t\nignore: ['(']\nsteps: [{run: a}]", "missing closing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseScenario(c.name, []byte(c.text))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestOwnFiles reads the scenarios and the explanations, each of which docs/fidelity.md has a section about.
func TestOwnFiles(t *testing.T) {
	list, err := loadScenarios("scenarios")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range list {
		names[s.Name] = true
	}
	known, err := loadExplanations("explained.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/fidelity.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range known {
		if !strings.Contains(string(page), "\n### "+k.Title+"\n") {
			t.Errorf("docs/fidelity.md has no section %q", k.Title)
		}
		for _, s := range k.Scenarios {
			if !names[s] {
				t.Errorf("%s: there is no scenario %s", k.Title, s)
			}
		}
	}
	records, err := filepath.Glob("recorded/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if !names[strings.TrimSuffix(filepath.Base(r), ".txt")] {
			t.Errorf("%s is the record of no scenario", r)
		}
	}
}
