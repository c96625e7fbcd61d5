package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadReport counts what was chosen, whatever became of it.
func TestReadReport(t *testing.T) {
	const report = `[{"SpecReports":[
	 {"LeafNodeType":"SynchronizedBeforeSuite","State":"passed"},
	 {"ContainerHierarchyTexts":["[sig-apps] Job"],"LeafNodeType":"It","LeafNodeText":"runs [Conformance]","State":"passed"},
	 {"ContainerHierarchyTexts":["[sig-apps] Job"],"LeafNodeType":"It","LeafNodeText":"ends [Conformance]","State":"failed","Failure":{"Message":"timed out\nstack"}},
	 {"ContainerHierarchyTexts":["[sig-apps] Job"],"LeafNodeType":"It","LeafNodeText":"is skipped [Conformance]","State":"skipped","Failure":{"Message":"needs three nodes"}},
	 {"ContainerHierarchyTexts":["[sig-apps] Job"],"LeafNodeType":"It","LeafNodeText":"comes too late [Conformance]","State":"skipped"},
	 {"ContainerHierarchyTexts":["[sig-apps] Job"],"LeafNodeType":"It","LeafNodeText":"is left out [Conformance]","State":"skipped"},
	 {"ContainerHierarchyTexts":["[sig-apps] Job"],"LeafNodeType":"It","LeafNodeText":"isn't chosen","State":"skipped"}]}]`
	file := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(file, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := readReport(file, `\[Conformance\]`, "left out")
	if err != nil {
		t.Fatal(err)
	}
	want := []failure{
		{"[sig-apps] Job comes too late [Conformance]", "skipped: not reached"},
		{"[sig-apps] Job ends [Conformance]", "timed out"},
		{"[sig-apps] Job is skipped [Conformance]", "needs three nodes"},
	}
	if diff := cmp.Diff(want, r.failed, cmp.AllowUnexported(failure{})); diff != "" || r.passed != 1 {
		t.Errorf("%d passed; failures (-want +got):\n%s", r.passed, diff)
	}
	if _, err := readReport(file, "no such test", ""); err == nil {
		t.Error("a run of no test is good")
	}
	if _, err := readReport(file+"x", "Job", ""); err == nil {
		t.Error("a run without a report is good")
	}
}

// TestReadReportOfBrokenSuite must not be good because no test ran.
func TestReadReportOfBrokenSuite(t *testing.T) {
	const report = `[{"SpecReports":[{"LeafNodeType":"SynchronizedBeforeSuite","State":"failed","Failure":{"Message":"no nodes"}},
	 {"LeafNodeType":"It","LeafNodeText":"runs [Conformance]","State":"skipped"}]}]`
	file := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(file, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := readReport(file, "Conformance", "")
	if err != nil || r.passed != 0 || len(r.failed) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestProgress(t *testing.T) {
	var p progress
	for _, part := range []string{"SSS\xe2", "\x80\xa2SS•S• ", "[FAILED] [1 seconds]\nx\nP• [PANICKED!]\n• [2.1 seconds]\n• [TIMEDOUT]\n"} {
		p.read([]byte(part))
	}
	if p.good != 3 || p.failed != 3 {
		t.Errorf("%d passed, %d failed", p.good, p.failed)
	}
}
