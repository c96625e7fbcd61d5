// Command testreport reads the output of `go test -json` on its standard input,
// prints each package's result and what failing tests wrote, and ends with one
// line that counts all tests: "N passed, N failed". With -tap it adds the tests
// of a TAP file (Node's test runner). It exits with 1 when anything failed or
// when no test ran.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	tap := flag.String("tap", "", "a TAP file whose tests are counted too")
	flag.Parse()
	var r report
	r.readGo(os.Stdin, os.Stdout)
	if *tap != "" {
		text, err := os.ReadFile(*tap)
		if err != nil {
			fmt.Println(err)
			r.failed++
		}
		r.readTAP(string(text))
	}
	fmt.Println(r.line())
	if r.failed > 0 || r.passed == 0 {
		os.Exit(1)
	}
}

type report struct{ passed, failed, skipped int }

func (r *report) line() string {
	s := fmt.Sprintf("%d passed, %d failed", r.passed, r.failed)
	if r.skipped > 0 {
		s += fmt.Sprintf(", %d skipped", r.skipped)
	}
	return s
}

// event is a line of `go test -json` (see `go doc test2json`).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// readGo counts tests (leaf or not) and failed packages; a package that fails
// without a failing test (it didn't build, or panicked) counts as one failure.
func (r *report) readGo(in io.Reader, out io.Writer) {
	output := map[string][]string{}
	failures := map[string]int{}
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var e event
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			fmt.Fprintln(out, scan.Text())
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output":
			output[key] = append(output[key], e.Output)
		case "build-output":
			output[e.ImportPath] = append(output[e.ImportPath], e.Output)
		case "build-fail":
			fmt.Fprint(out, strings.Join(output[e.ImportPath], ""))
		case "pass", "fail", "skip":
			if e.Test != "" {
				r.count(e.Action)
			}
			if e.Action == "fail" {
				if e.Test != "" || failures[e.Package] == 0 {
					fmt.Fprint(out, strings.Join(output[key], ""))
				}
				if e.Test == "" && failures[e.Package] == 0 {
					r.failed++
				}
				failures[e.Package]++
			}
			if e.Test == "" {
				fmt.Fprintf(out, "%-4s %s (%.1fs)\n", map[string]string{"pass": "ok", "fail": "FAIL", "skip": "-"}[e.Action], e.Package, e.Elapsed)
			}
			delete(output, key)
		}
	}
	if err := scan.Err(); err != nil {
		fmt.Fprintln(out, err)
		r.failed++
	}
}

func (r *report) count(action string) {
	switch action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
	case "skip":
		r.skipped++
	}
}

var tapSummary = regexp.MustCompile(`(?m)^# (pass|fail|skipped) (\d+)$`)

// readTAP adds the summary that Node's test runner ends with; a file without
// one counts as a failure.
func (r *report) readTAP(text string) {
	found := tapSummary.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		r.failed++
	}
	for _, m := range found {
		n, _ := strconv.Atoi(m[2])
		switch m[1] {
		case "pass":
			r.passed += n
		case "fail":
			r.failed += n
		case "skipped":
			r.skipped += n
		}
	}
}
