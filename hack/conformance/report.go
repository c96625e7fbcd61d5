package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// report is a run's outcome. A chosen test that didn't pass has failed, whether it
// failed, was skipped by itself or wasn't reached in time.
type report struct {
	passed int
	failed []failure // by name
}

type failure struct{ name, message string }

// The parts of ginkgo's JSON report that are read here.
type (
	suiteReport struct {
		SpecReports                []specReport
		SpecialSuiteFailureReasons []string
	}
	specReport struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
		Failure                 struct{ Message string }
	}
)

func (s specReport) name() string {
	return strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " ")
}

// readReport counts the tests whose names match focus and not skip.
func readReport(file, focus, skip string) (report, error) {
	var r report
	want, err := regexp.Compile(focus)
	if err != nil {
		return r, fmt.Errorf("focus: %w", err)
	}
	not, err := regexp.Compile(skip)
	if err != nil {
		return r, fmt.Errorf("skip: %w", err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("the suite left no report: %w", err)
	}
	var suites []suiteReport
	if err := json.Unmarshal(b, &suites); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			name := s.name()
			switch {
			case s.LeafNodeType != "It" && s.State == "failed": // the suite's own set-up
				r.failed = append(r.failed, failure{s.LeafNodeType, firstLine(s.Failure.Message)})
			case s.LeafNodeType != "It" || !want.MatchString(name) || skip != "" && not.MatchString(name):
			case s.State == "passed":
				r.passed++
			case s.Failure.Message == "":
				r.failed = append(r.failed, failure{name, s.State + ": not reached"})
			default:
				r.failed = append(r.failed, failure{name, firstLine(s.Failure.Message)})
			}
		}
	}
	slices.SortFunc(r.failed, func(a, b failure) int { return strings.Compare(a.name, b.name) })
	if r.passed+len(r.failed) == 0 {
		return r, fmt.Errorf("no test matches %q", focus)
	}
	return r, nil
}

// firstLine is what a list has room for.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "..."
	}
	return s
}

func (r report) print(w io.Writer) {
	for _, f := range r.failed {
		fmt.Fprintf(w, "FAILED %s\n       %s\n", f.name, f.message)
	}
	fmt.Fprintf(w, "%d passed, %d failed\n", r.passed, len(r.failed))
}
