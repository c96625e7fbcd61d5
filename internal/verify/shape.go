package verify

import (
	"regexp"
	"slices"
	"strings"

	"kubistro/internal/course"
)

// shapes are the parts of an output that differ from cluster to cluster and from run to run, most
// specific first: what a lesson quotes has to be of the same shape.
var shapes = []struct{ quoted, any *regexp.Regexp }{
	shape(`(?:ErrImagePull|ImagePullBackOff)\b`), // a node's words for one trouble, in turns
	shape(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`),
	shape(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
	shape(`sha256:[0-9a-f]{6,64}`),
	shape(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`),
	shape(`kitchen-\d+`),
	shape(`-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), // a Deployment's Pod
	shape(`-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b`),                                  // a ReplicaSet
	shape(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`),                                     // generateName
	shape(`\b\d+/\d+\b`, same),                                                       // READY 1/3 says something
	shape(`\b(?:\d+(?:\.\d+)?(?:ns|µs|ms|[smhdy]))+`),                                // an age or a latency
	shape(`\b\d+(?:\.\d+)?(?:[kMGT]i?|m|n|u)?%?`),                                    // a number or a quantity
}

const same = "same"

func shape(pattern string, how ...string) struct{ quoted, any *regexp.Regexp } {
	s := struct{ quoted, any *regexp.Regexp }{quoted: regexp.MustCompile(pattern)}
	if !slices.Contains(how, same) {
		s.any = s.quoted
	}
	return s
}

// pattern is the shape of a quoted line: its words in their order, with any space between. "…" stands for
// anything, and a line may go on after the last word: the author may leave columns away.
func pattern(quoted string) *regexp.Regexp {
	words := strings.Fields(quoted)
	parts := make([]string, 0, len(words))
	for _, w := range words {
		parts = append(parts, word(w))
	}
	return regexp.MustCompile(`^\s*` + strings.Join(parts, `\s+`) + `(?:\s|$)`)
}

// word is the pattern of one word.
func word(w string) string {
	if w == "…" || w == "..." {
		return `.*`
	}
	var b strings.Builder
	for w != "" {
		if rest, ok := strings.CutPrefix(w, "…"); ok {
			b.WriteString(`.*`)
			w = rest
			continue
		}
		matched := false
		for _, s := range shapes {
			at := s.quoted.FindStringIndex(w)
			if at == nil || at[0] != 0 {
				continue
			}
			if s.any == nil {
				b.WriteString(regexp.QuoteMeta(w[:at[1]]))
			} else {
				b.WriteString(`(?:` + s.any.String() + `)`)
			}
			w, matched = w[at[1]:], true
			break
		}
		if matched {
			continue
		}
		// Up to the next place where a shape may begin.
		n := 1
		for n < len(w) && !begins(w[n-1], w[n]) && !strings.HasPrefix(w[n:], "…") {
			n++
		}
		b.WriteString(regexp.QuoteMeta(w[:n]))
		w = w[n:]
	}
	return b.String()
}

// begins reports whether a shape may begin between two characters: at a hyphen, or where a word does.
func begins(before, c byte) bool {
	letter := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
	}
	return c == '-' || letter(c) && !letter(before)
}

// quoted are the lines of an output block that have text.
func quoted(b course.Block) []string {
	var out []string
	for _, l := range b.Lines {
		if text := strings.TrimSpace(l.Text); text != "" && text != "…" && text != "..." {
			out = append(out, l.Text)
		}
	}
	return out
}

// missing is the first quoted line that the output has no line of that shape for, each line of it
// counting once; empty when all are there. The output may have more lines, and another order:
// names are random, and tables are sorted by them.
func missing(quoted []string, output string) string {
	lines := strings.Split(output, "\n")
	taken := make([]int, len(lines)) // by which quoted line, counting from 1
	patterns := make([]*regexp.Regexp, len(quoted))
	for i, q := range quoted {
		patterns[i] = pattern(q)
	}
	// Augmenting paths: a quoted line that finds its line taken lets the other look for another one.
	var place func(q int, seen []bool) bool
	place = func(q int, seen []bool) bool {
		for i, line := range lines {
			if seen[i] || !patterns[q].MatchString(line) {
				continue
			}
			seen[i] = true
			if taken[i] == 0 || place(taken[i]-1, seen) {
				taken[i] = q + 1
				return true
			}
		}
		return false
	}
	for q := range quoted {
		if !place(q, make([]bool, len(lines))) {
			return quoted[q]
		}
	}
	return ""
}
