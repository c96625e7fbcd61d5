package verify

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func seconds(millis int64) string { return fmt.Sprintf("%.3f", float64(millis)/1000) }

// WriteJUnit writes steps as a JUnit report: a suite for each level, a case for each step.
func WriteJUnit(w io.Writer, steps []Step, took time.Duration) error {
	all := junitSuites{Name: "labserver verify", Tests: len(steps), Time: seconds(took.Milliseconds())}
	at := map[string]int{}
	var millis []int64
	for _, s := range steps {
		name := s.Course + "/" + s.Level
		i, known := at[name]
		if !known {
			i = len(all.Suites)
			at[name] = i
			all.Suites = append(all.Suites, junitSuite{Name: name})
			millis = append(millis, 0)
		}
		suite := &all.Suites[i]
		c := junitCase{Class: name, Name: s.Name(), Time: seconds(s.Millis)}
		suite.Tests++
		millis[i] += s.Millis
		switch {
		case s.Fault != "":
			suite.Failures++
			all.Failures++
			c.Failure = &junitMessage{Message: s.Fault, Text: s.Output}
		case s.Skipped != "":
			suite.Skipped++
			all.Skipped++
			c.Skipped = &junitMessage{Message: s.Skipped}
		}
		suite.Cases = append(suite.Cases, c)
	}
	for i := range all.Suites {
		all.Suites[i].Time = seconds(millis[i])
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
