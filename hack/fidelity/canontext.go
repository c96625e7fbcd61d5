package main

import (
	"regexp"
	"slices"
	"strings"
)

// alphabet is what Kubernetes makes random suffixes of: k8s.io/apimachinery/pkg/util/rand.
const alphabet = `[bcdfghjklmnpqrstvwxz2456789]`

// rule replaces what differs from run to run by a word that says what stood there.
type rule struct {
	from *regexp.Regexp
	to   string
}

var rules = []rule{
	{regexp.MustCompile(`(Image ID: +)\S+`), "$1<image id>"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d| [+-]\d{4}( UTC)?)?`), "<time>"},
	{regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d ([+-]\d{4}|GMT|UTC)`), "<time>"},
	{regexp.MustCompile(`\b\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}`), "<time>"},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "<digest>"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "<id>"},
	// Ephemeral ports of clients, and addresses.
	{regexp.MustCompile(`\b(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}):\d+->`), "$1:<port>->"},
	// What a suffix of a generated name looks like, and the minutes of a CronJob's Job.
	{regexp.MustCompile(`\b([a-z0-9][a-z0-9.-]*-)` + alphabet + `{5}\b`), "$1<random>"},
	{regexp.MustCompile(`\b([a-z0-9][a-z0-9.-]*-)2\d{7}\b`), "$1<minute>"},
	{regexp.MustCompile(`\bresourceVersion: "?\d+"?|\bResource Version: +\d+`), "resourceVersion: <n>"},
	{regexp.MustCompile(`\(x\d+ over ` + span + `\)`), "(<count>)"},
	{regexp.MustCompile(`in ` + fine + ` \(` + fine + ` including waiting\)\. Image size: \d+ bytes\.`), "in <age>."},
}

const (
	// span is a duration as kubectl prints ages.
	span = `(?:\d+y)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?`
	fine = `[0-9.]+(?:ns|µs|us|ms|s|m[0-9.]+s)`
)

var (
	address  = regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	age      = regexp.MustCompile(`(^|[\s(])((?:\d+y)?(?:\d+d)?(?:\d+h)?(?:\d+m)?\d+s|(?:\d+y)?(?:\d+d)?(?:\d+h)?\d+m|(?:\d+d)?\d+h|\d+d)($|[\s),])`)
	tolerate = regexp.MustCompile(`op=Exists for \d+s`)
	kitchen  = regexp.MustCompile(`\bkitchen-\d+\b`)
	blanks   = regexp.MustCompile(` {2,}|\t+`)
	random   = regexp.MustCompile(`<random>|<minute>|<uid>`)
)

// wide addresses mean something by themselves.
var wide = []string{"0.0.0.0", "127.0.0.1", "255.255.255.255"}

// canonicalLine replaces in one line.
func canonicalLine(line string, keepNodes bool) string {
	for _, r := range rules {
		line = r.from.ReplaceAllString(line, r.to)
	}
	line = address.ReplaceAllStringFunc(line, func(a string) string {
		if slices.Contains(wide, a) {
			return a
		}
		return "<ip>"
	})
	if !tolerate.MatchString(line) {
		// Twice, because two ages may share the blank between them.
		line = age.ReplaceAllString(line, "$1<age>$3")
		line = age.ReplaceAllString(line, "$1<age>$3")
	}
	if !keepNodes {
		line = kitchen.ReplaceAllString(line, "<node>")
	}
	return line
}

// canonicalText is a command's output. Tables are as wide as what is in them, so blanks
// are made alike; lines with a random name have no order of their own.
func canonicalText(text string, keepNodes bool) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n\r\t ")
		line = canonicalLine(line, keepNodes)
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		out = append(out, indent+blanks.ReplaceAllString(line[len(indent):], "  "))
	}
	for i := 0; i < len(out); {
		n := i
		for n < len(out) && random.MatchString(out[n]) && !strings.HasPrefix(out[n], " ") {
			n++
		}
		slices.Sort(out[i:n])
		i = max(n, i+1)
	}
	return out
}
