package course

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"kubistro/internal/lab"
)

// Term is an entry of the glossary.
type Term struct {
	ID       string
	Name     string   // as Kubernetes spells it, in every language
	Forms    []string // how lessons write it; its first use in a lesson becomes a link
	Metaphor lab.Text // plain text
	Truth    lab.Text // one line, plain text
	Taught   []Place
}

// Place is a level that teaches something.
type Place struct{ Course, Level string }

const glossaryName = "glossary.yaml"

// glossary reads the terms that all courses share; without the file there are none.
func glossary(shared fs.FS) ([]*Term, Faults) {
	file := path.Join(sharedFolder, glossaryName)
	raw, err := fs.ReadFile(shared, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, Faults{{File: file, Message: err.Error()}}
	}
	var src glossaryFile
	d := &decoder{file: file}
	d.decode(raw, &src)
	var out []*Term
	ids, forms := map[string]bool{}, map[string]bool{}
	for _, n := range src.Terms {
		t := &Term{ID: n.ID.Value, Name: n.Term.Value, Metaphor: n.Metaphor.Text, Truth: n.Truth.Text}
		if !slug.MatchString(t.ID) || ids[t.ID] {
			d.fault(n.ID.Line, "%q must be a slug that no other term has", t.ID)
		}
		ids[t.ID] = true
		for _, f := range n.Forms {
			if f.Value == "" || forms[f.Value] {
				d.fault(f.Line, "%q must be a form that no other term has", f.Value)
				continue
			}
			forms[f.Value] = true
			t.Forms = append(t.Forms, f.Value)
		}
		if len(n.Taught) == 0 {
			d.fault(n.ID.Line, "the term %q is taught nowhere", t.ID)
		}
		for _, p := range n.Taught {
			c, l, ok := strings.Cut(p.Value, "/")
			if !ok || c == "" || l == "" {
				d.fault(p.Line, "%q must be COURSE/LEVEL", p.Value)
				continue
			}
			t.Taught = append(t.Taught, Place{Course: c, Level: l})
		}
		out = append(out, t)
	}
	return out, d.faults
}

// lintGlossary names terms whose level isn't there or never uses them in a language. It has to look
// at the folder that the glossary lies in: an author's courses may be without the ones it names.
func lintGlossary(fsys fs.FS, l *Library) Faults {
	file := path.Join(sharedFolder, glossaryName)
	terms, _ := glossary(fsys) // its own faults are known
	var faults Faults
	for _, t := range terms {
		for _, p := range t.Taught {
			name := p.Course + "/" + p.Level
			c := l.Course(p.Course)
			if c == nil || c.Level(p.Level) == nil || c.Level(p.Level).Coming {
				faults = append(faults, Fault{File: file, Message: "the term " + t.ID + " is said to be taught in " + name + ", which isn't there"})
				continue
			}
			for _, lang := range lab.Langs() {
				if d := c.Level(p.Level).Lesson[lang]; d != nil && !slices.Contains(d.Terms, t.ID) {
					faults = append(faults, Fault{File: file, Message: "the " + string(lang) + " lesson of " + name + " never uses the term " + t.ID + " that it is said to teach"})
				}
			}
		}
	}
	return faults
}
