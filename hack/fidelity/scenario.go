package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Scenario is a file of the scenarios' folder: what is done in a namespace of its own. docs/fidelity.md
// describes the format for authors.
type Scenario struct {
	Name  string            `json:"-"` // of the file, without its ending
	Title string            `json:"title"`
	Alone bool              `json:"alone,omitempty"` // it changes more than its namespace, and runs while no other does
	Files map[string]string `json:"files,omitempty"` // by name, in the folder in which commands run
	Steps []Step            `json:"steps"`
	// Ignore are regular expressions: lines of the transcript that match one aren't compared.
	Ignore []string `json:"ignore,omitempty"`
	// Nodes: which node is told; otherwise kitchens are alike.
	Nodes bool `json:"nodes,omitempty"`
	// NoObjects leaves out the namespace's objects and events after the last step.
	NoObjects bool `json:"noObjects,omitempty"`

	ignore []*regexp.Regexp
}

// Step is one of Run, Wait and Lab.
type Step struct {
	// Run is a command line whose output and exit code are compared.
	Run string `json:"run,omitempty"`
	// Wait is a command line that is repeated until it succeeds and its output matches Until, if there is one. It isn't compared.
	Wait  string `json:"wait,omitempty"`
	Until string `json:"until,omitempty"`
	// Lab is an act from outside: power NODE on|off, cable NODE in|out, loop NAME home|back.
	Lab string `json:"lab,omitempty"`
	// Within bounds Wait, for what takes long by nature.
	Within string `json:"within,omitempty"`

	until  *regexp.Regexp
	within time.Duration
}

var (
	goodName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$`)
	goodFile = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// loadScenarios reads all files of a folder that end in .yaml, in the order of their names.
func loadScenarios(dir string) ([]*Scenario, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var list []*Scenario
	var wrong error
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		s, err := parseScenario(strings.TrimSuffix(filepath.Base(p), ".yaml"), b)
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", p, err))
			continue
		}
		list = append(list, s)
	}
	if wrong == nil && len(list) == 0 {
		wrong = fmt.Errorf("there are no scenarios in %s", dir)
	}
	return list, wrong
}

func parseScenario(name string, b []byte) (*Scenario, error) {
	s := &Scenario{Name: name}
	if err := yaml.UnmarshalStrict(b, s); err != nil {
		return nil, err
	}
	if !goodName.MatchString(name) {
		return nil, fmt.Errorf("the name %q can't be a namespace", name)
	}
	if s.Title == "" || len(s.Steps) == 0 {
		return nil, errors.New("a scenario has a title and steps")
	}
	for f := range s.Files {
		if !goodFile.MatchString(f) {
			return nil, fmt.Errorf("%q isn't a file's name", f)
		}
	}
	for _, e := range s.Ignore {
		r, err := regexp.Compile(e)
		if err != nil {
			return nil, err
		}
		s.ignore = append(s.ignore, r)
	}
	for i := range s.Steps {
		if err := s.Steps[i].parse(s.Alone); err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	if !slices.ContainsFunc(s.Steps, func(st Step) bool { return st.Run != "" }) && s.NoObjects {
		return nil, errors.New("nothing is compared")
	}
	return s, nil
}

func (st *Step) parse(alone bool) (err error) {
	n := 0
	for _, v := range []string{st.Run, st.Wait, st.Lab} {
		if v != "" {
			n++
		}
	}
	if n != 1 {
		return errors.New("a step is one of run, wait and lab")
	}
	if st.Wait == "" && (st.Until != "" || st.Within != "") {
		return errors.New("until and within belong to wait")
	}
	if st.Lab != "" {
		if !alone {
			return errors.New("lab changes the whole cluster: say alone: true")
		}
		_, err := parseAct(st.Lab)
		return err
	}
	if st.until, err = regexp.Compile(st.Until); err != nil {
		return err
	}
	if st.Within != "" {
		st.within, err = time.ParseDuration(st.Within)
	}
	return err
}

// act is a parsed Step.Lab.
type act struct {
	verb, name string
	on         bool // power on, cable in, loop back
}

func parseAct(line string) (act, error) {
	f := strings.Fields(line)
	words := map[string][2]string{"power": {"off", "on"}, "cable": {"out", "in"}, "loop": {"home", "back"}}
	if len(f) == 3 {
		if i := slices.Index(pair(words[f[0]]), f[2]); f[2] != "" && i >= 0 {
			return act{f[0], f[1], i == 1}, nil
		}
	}
	return act{}, fmt.Errorf("%q is none of: power NODE on|off, cable NODE in|out, loop NAME home|back", line)
}

func pair(p [2]string) []string { return p[:] }

// Explanation is a difference that is known and has a reason, which docs/fidelity.md tells in a
// section whose heading is Title.
type Explanation struct {
	Title string `json:"title"`
	// Match is a regular expression over a differing line of a transcript.
	Match string `json:"match,omitempty"`
	// Cut is a regular expression over what only the second cluster says in a line that is otherwise the same; an explanation has one of the two.
	Cut string `json:"cut,omitempty"`
	// Scenarios it belongs to; all, if none are named.
	Scenarios []string `json:"scenarios,omitempty"`

	match, cut *regexp.Regexp
}

// of says whether the explanation may be used in a scenario.
func (e Explanation) of(s *Scenario) bool {
	return len(e.Scenarios) == 0 || slices.Contains(e.Scenarios, s.Name)
}

func loadExplanations(path string) ([]Explanation, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []Explanation
	if len(bytes.TrimSpace(b)) > 0 {
		if err := yaml.UnmarshalStrict(b, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	for i := range list {
		e := &list[i]
		if e.Title == "" || (e.Match == "") == (e.Cut == "") {
			return nil, fmt.Errorf("%s: an explanation has a title, and a match or a cut", path)
		}
		for _, r := range []struct {
			from string
			to   **regexp.Regexp
		}{{e.Match, &e.match}, {e.Cut, &e.cut}} {
			if r.from == "" {
				continue
			}
			if *r.to, err = regexp.Compile(r.from); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return list, nil
}
