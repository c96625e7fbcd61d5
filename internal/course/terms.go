package course

import (
	"html"
	"slices"
	"strings"
	"unicode/utf8"

	nethtml "golang.org/x/net/html"

	"kubistro/internal/lab"
)

// linker turns the first use of each term in a lesson into a link to the glossary.
type linker struct {
	terms []*Term
	lang  lab.Lang
	done  map[*Term]bool
	used  []string
}

func newLinker(terms []*Term, lang lab.Lang) *linker {
	return &linker{terms: terms, lang: lang, done: map[*Term]bool{}}
}

// document links the terms in what a lesson tells: its text and what people say in it.
func (l *linker) document(d *Document) {
	for i := range d.Sections {
		blocks := d.Sections[i].Blocks
		for j := range blocks {
			if blocks[j].Kind == BlockHTML || blocks[j].Kind == BlockAside {
				blocks[j].HTML = l.link(blocks[j].HTML)
			}
		}
	}
	d.Terms = l.used
}

// untouched are elements whose text stays as it is: what has a meaning of its own, or is itself a link.
var untouched = []string{"a", "pre", "h3", "h4", "h5", "h6"}

// link gives safe HTML back with the first uses in it linked.
func (l *linker) link(source string) string {
	if len(l.done) == len(l.terms) {
		return source
	}
	var b strings.Builder
	held, code, live := 0, false, 0 // depth within untouched elements; within code; within a live value
	for z := nethtml.NewTokenizer(strings.NewReader(source)); ; {
		kind := z.Next()
		if kind == nethtml.ErrorToken {
			return b.String()
		}
		raw := string(z.Raw()) // before TagName, which changes what lies there
		switch kind {
		case nethtml.StartTagToken, nethtml.EndTagToken:
			name, _ := z.TagName()
			step := 1
			if kind == nethtml.EndTagToken {
				step = -1
			}
			switch {
			case slices.Contains(untouched, string(name)):
				held += step
			case string(name) == "code":
				code = step > 0
			case string(name) == "span" && (live > 0 || strings.Contains(raw, "js-live")):
				live += step
			}
		case nethtml.TextToken:
			if held == 0 && live == 0 {
				raw = l.text(raw, code)
			}
		}
		b.WriteString(raw)
	}
}

// text links the terms in a piece of text; in code only when they are all of it.
func (l *linker) text(s string, code bool) string {
	var out strings.Builder
	for {
		term, from, to := l.first(s, code)
		if term == nil {
			out.WriteString(s)
			return out.String()
		}
		l.done[term] = true
		l.used = append(l.used, term.ID)
		out.WriteString(s[:from])
		out.WriteString(l.element(term, s[from:to]))
		s = s[to:]
		if code {
			return out.String() + s
		}
	}
}

// first finds the term that is used first, the longest where several begin.
func (l *linker) first(s string, code bool) (found *Term, from, to int) {
	for _, t := range l.terms {
		if l.done[t] {
			continue
		}
		for _, form := range t.Forms {
			at := use(s, form)
			if at < 0 || code && len(form) != len(s) {
				continue
			}
			if found == nil || at < from || at == from && at+len(form) > to {
				found, from, to = t, at, at+len(form)
			}
		}
	}
	return found, from, to
}

// use is where a form stands as a word of its own; -1 for nowhere.
func use(s, form string) int {
	for start := 0; ; {
		at := strings.Index(s[start:], form)
		if at < 0 {
			return -1
		}
		at += start
		if alone(s, at, at+len(form)) {
			return at
		}
		start = at + len(form)
	}
}

// alone reports whether nothing of a longer word, name or path is around a piece of text. Chinese
// is written without spaces, so its characters don't count.
func alone(s string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:from])
	after, size := utf8.DecodeRuneInString(s[to:])
	if partOfName(before) || strings.ContainsRune("./=&", before) && from > 0 || partOfName(after) || after == '/' || after == '=' {
		return false
	}
	if after == '.' {
		next, _ := utf8.DecodeRuneInString(s[to+size:])
		return !partOfName(next)
	}
	return true
}

func partOfName(r rune) bool {
	return r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// element is a use as a link, with the explanation that shows while the link is pointed at or has the focus.
func (l *linker) element(t *Term, text string) string {
	id := "term-" + t.ID
	return `<span class="term"><a href="/glossary#` + t.ID + `" target="glossary" aria-describedby="` + id + `">` + text + `</a>` +
		`<span class="term-tip" role="tooltip" id="` + id + `">` + html.EscapeString(t.Truth.In(l.lang)) + `</span></span>`
}
