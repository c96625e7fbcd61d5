package course

import (
	"fmt"
	"html"
	"regexp"
	"strings"
)

// liveMark is a live value in a lesson: {{live: newest Pod of deployment/grill}}.
var liveMark = regexp.MustCompile(`\{\{live:([^{}]*)\}\}`)

// liveForm is the grammar of what stands in the braces:
//
//	[WANT of] [newest|oldest] KIND [of OWNER | with LABELS] [or FALLBACK]
var liveForm = regexp.MustCompile(`^(?:(name|ip|node|status|restarts|count) of )?(?:(newest|oldest) )?([A-Z][A-Za-z]+?)s?` +
	`(?: of ([a-z]+/[a-z0-9.-]+)| with ([A-Za-z0-9./=_,-]+))?(?: or (\S+))?$`)

// ParseLive reads a live value.
func ParseLive(source string) (Live, error) {
	source = strings.TrimSpace(source)
	m := liveForm.FindStringSubmatch(source)
	if m == nil {
		return Live{}, fmt.Errorf("live value %q isn't of the form [name|ip|node|status|restarts|count of] [newest|oldest] Kind [of owner/name | with label=value] [or FALLBACK]", source)
	}
	l := Live{Source: source, Want: m[1], Pick: m[2], Kind: m[3], Owner: m[4], Labels: m[5], Fallback: m[6]}
	if l.Want == "" {
		l.Want = "name"
	}
	if l.Pick == "" && l.Want != "count" {
		l.Pick = "newest"
	}
	if l.Fallback == "" {
		l.Fallback = strings.ToUpper(l.Kind)
		if l.Want != "name" {
			l.Fallback = "—"
		}
	}
	return l, nil
}

// element is the HTML that the page fills with the value.
func (l Live) element() string {
	var b strings.Builder
	b.WriteString(`<span class="live js-live"`)
	for _, a := range [][2]string{
		{"want", l.Want}, {"pick", l.Pick}, {"kind", l.Kind}, {"owner", l.Owner}, {"labels", l.Labels},
	} {
		if a[1] != "" {
			fmt.Fprintf(&b, ` data-live-%s="%s"`, a[0], html.EscapeString(a[1]))
		}
	}
	b.WriteString(">" + html.EscapeString(l.Fallback) + "</span>")
	return b.String()
}

// parseCommand cuts a command line at its live values.
func parseCommand(line string) (Command, error) {
	var c Command
	rest := line
	for {
		at := liveMark.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		l, err := ParseLive(rest[at[2]:at[3]])
		if err != nil {
			return c, err
		}
		if at[0] > 0 {
			c.Parts = append(c.Parts, Part{Text: rest[:at[0]]})
		}
		c.Parts = append(c.Parts, Part{Text: l.Fallback, Live: &l})
		rest = rest[at[1]:]
	}
	if rest != "" {
		c.Parts = append(c.Parts, Part{Text: rest})
	}
	return c, nil
}
