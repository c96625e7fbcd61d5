package course

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"

	"kubistro/internal/lab"
)

// directives are the info words of fenced code blocks that mean more than code.
var directives = []BlockKind{
	BlockCommand, BlockOutput, BlockManifest, BlockExercise, BlockQuiz, BlockAside, BlockDiagram,
}

// plainCode are the info words of ordinary code blocks.
var plainCode = []string{"", "yaml", "json", "text", "sh"}

// lessonParser turns one lesson file into a Document.
type lessonParser struct {
	level  *Level
	file   string
	source []byte
	md     goldmark.Markdown
	doc    *Document
	html   bytes.Buffer // of the block being collected
	faults Faults
	lines  map[string]int // first line of each block by id, for faults
}

// parseLesson reads a lesson. The exercises and the quiz of the level must have been read before.
func parseLesson(level *Level, file string, lang lab.Lang, source []byte) (*Document, Faults) {
	p := &lessonParser{level: level, file: file, source: source, md: newMarkdown(), doc: &Document{Lang: lang}, lines: map[string]int{}}
	root := parseMarkdown(source)
	if at := rawHTML(root); at >= 0 {
		p.fault(p.lineAt(at), "raw HTML isn't allowed in lessons")
	}
	p.liveFaults()
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		p.node(n)
	}
	p.flush()
	if p.doc.Title == "" {
		p.fault(1, "the lesson has no title (a line that starts with #)")
	}
	return p.doc, p.faults
}

func (p *lessonParser) fault(line int, format string, args ...any) {
	p.faults = append(p.faults, Fault{File: p.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

func (p *lessonParser) lineAt(offset int) int {
	return 1 + bytes.Count(p.source[:offset], []byte("\n"))
}

// lineOf is the line of a block node; 0 when it has none.
func (p *lessonParser) lineOf(n ast.Node) int {
	if f, ok := n.(*ast.FencedCodeBlock); ok && f.Info != nil {
		return p.lineAt(f.Info.Segment.Start)
	}
	if n.Lines() != nil && n.Lines().Len() > 0 {
		return p.lineAt(n.Lines().At(0).Start)
	}
	return 0
}

// liveFaults names live values that can't be read.
func (p *lessonParser) liveFaults() {
	for _, at := range liveMark.FindAllSubmatchIndex(p.source, -1) {
		if _, err := ParseLive(string(p.source[at[2]:at[3]])); err != nil {
			p.fault(p.lineAt(at[0]), "%v", err)
		}
	}
}

// node handles one block of the top level.
func (p *lessonParser) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		if n.Level <= 2 {
			p.heading(n)
			return
		}
	case *ast.FencedCodeBlock:
		word, argument := "", ""
		if n.Info != nil {
			word, argument, _ = strings.Cut(strings.TrimSpace(string(n.Info.Text(p.source))), " ")
		}
		if slices.Contains(directives, BlockKind(word)) {
			p.flush()
			p.directive(BlockKind(word), strings.TrimSpace(argument), n)
			return
		}
		if !slices.Contains(plainCode, word) {
			p.fault(p.lineOf(n), "unknown kind of block %q: one of %s, %s", word, joinKinds(directives), strings.Join(plainCode[1:], ", "))
		}
	}
	if err := p.md.Renderer().Render(&p.html, p.source, n); err != nil {
		p.fault(p.lineOf(n), "can't be rendered: %v", err)
	}
}

func joinKinds(kinds []BlockKind) string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = string(k)
	}
	return strings.Join(out, ", ")
}

// heading takes the title, or opens a section: ## Title {#id}.
func (p *lessonParser) heading(n *ast.Heading) {
	title := string(n.Text(p.source))
	if n.Level == 1 {
		if p.doc.Title != "" {
			p.fault(p.lineOf(n), "a lesson has one title")
		}
		p.doc.Title = title
		return
	}
	p.flush()
	id := ""
	if v, ok := n.AttributeString("id"); ok {
		if b, isBytes := v.([]byte); isBytes {
			id = string(b)
		}
	}
	if !slug.MatchString(id) {
		p.fault(p.lineOf(n), "the section needs an id that is the same in both languages: ## %s {#some-id}", title)
	}
	if slices.ContainsFunc(p.doc.Sections, func(s Section) bool { return s.ID == id }) {
		p.fault(p.lineOf(n), "section id %q stands here twice", id)
	}
	p.doc.Sections = append(p.doc.Sections, Section{ID: id, Title: title})
}

// flush ends the collected HTML block.
func (p *lessonParser) flush() {
	if p.html.Len() == 0 {
		return
	}
	out := p.html.String()
	p.html.Reset()
	p.add(0, Block{Kind: BlockHTML, HTML: out})
}

func (p *lessonParser) add(line int, b Block) {
	if len(p.doc.Sections) == 0 {
		p.doc.Sections = append(p.doc.Sections, Section{ID: "opening", Title: p.doc.Title})
	}
	s := &p.doc.Sections[len(p.doc.Sections)-1]
	b.ID = fmt.Sprintf("%s-%d", s.ID, len(s.Blocks)+1)
	p.lines[b.ID] = line
	s.Blocks = append(s.Blocks, b)
}

// directive handles a fenced block that means more than code.
func (p *lessonParser) directive(kind BlockKind, argument string, n *ast.FencedCodeBlock) {
	line := p.lineOf(n)
	var body strings.Builder
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		body.Write(seg.Value(p.source))
	}
	b := Block{Kind: kind}
	switch kind {
	case BlockCommand:
		b.Mode = p.mode(line, argument, ModeFails, ModeEndless)
		b.Commands = p.commands(line, body.String())
	case BlockOutput:
		b.Mode = p.mode(line, argument, ModeExample)
		b.Lines = outputLines(body.String())
	case BlockManifest:
		b.Path = argument
		raw, err := fs.ReadFile(p.level.Files, argument)
		if err != nil {
			p.fault(line, "there is no manifest %q in the level's folder", argument)
		}
		b.Text = string(raw)
	case BlockExercise:
		for _, e := range p.level.Exercises {
			if e.ID == argument {
				b.Exercise = e
			}
		}
		if b.Exercise == nil {
			p.fault(line, "there is no exercise %q in this level", argument)
		}
	case BlockQuiz:
		b.Questions = p.questions(line, argument)
	case BlockAside:
		b.Speaker = p.speaker(line, argument)
		if at := rawHTML(parseMarkdown([]byte(body.String()))); at >= 0 {
			p.fault(line+1, "raw HTML isn't allowed in lessons")
		}
		b.HTML = htmlOf(body.String(), true)
	case BlockDiagram:
		drawing, caption, found := strings.Cut(body.String(), "\n---\n")
		if !found {
			p.fault(line, "a diagram needs a caption below a line of ---")
		}
		b.Text, b.HTML = strings.TrimRight(drawing, "\n"), htmlOf(caption, false)
	}
	p.add(line, b)
}

func (p *lessonParser) mode(line int, argument string, known ...string) string {
	if argument != "" && !slices.Contains(known, argument) {
		p.fault(line, "%q isn't one of %s", argument, strings.Join(known, ", "))
	}
	return argument
}

func (p *lessonParser) commands(line int, body string) []Command {
	var out []Command
	for text := range strings.SplitSeq(strings.TrimRight(body, "\n"), "\n") {
		line++
		if strings.TrimSpace(text) == "" {
			continue
		}
		c, err := parseCommand(text)
		if err != nil {
			continue // liveFaults has named it
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		p.fault(line, "the block has no command")
	}
	return out
}

// outputLines cuts explanations off the lines of a command's output: "line  ## note".
func outputLines(body string) []OutputLine {
	var out []OutputLine
	for text := range strings.SplitSeq(strings.TrimRight(body, "\n"), "\n") {
		text, note, _ := strings.Cut(text, "## ")
		out = append(out, OutputLine{Text: strings.TrimRight(text, " "), Note: strings.TrimSpace(note)})
	}
	return out
}

// questions are those named in a quiz directive, all of the level when none is.
func (p *lessonParser) questions(line int, argument string) []*Question {
	if argument == "" {
		return p.level.Quiz
	}
	var out []*Question
	for id := range strings.FieldsSeq(argument) {
		i := slices.IndexFunc(p.level.Quiz, func(q *Question) bool { return q.ID == id })
		if i < 0 {
			p.fault(line, "there is no question %q in this level", id)
			continue
		}
		out = append(out, p.level.Quiz[i])
	}
	return out
}

func (p *lessonParser) speaker(line int, id string) *Person {
	if id == "" {
		return nil
	}
	for i := range p.level.Course.Cast {
		if p.level.Course.Cast[i].ID == id {
			return &p.level.Course.Cast[i]
		}
	}
	p.fault(line, "nobody in the cast is called %q", id)
	return nil
}

// compareLessons names what differs between the languages' sections and directives.
func compareLessons(file string, a, b *Document) Faults {
	shape := func(d *Document) []string {
		var out []string
		for _, s := range d.Sections {
			out = append(out, "section "+s.ID)
			for _, b := range s.Blocks {
				what := string(b.Kind)
				if b.Exercise != nil {
					what += " " + b.Exercise.ID
				}
				for _, c := range b.Commands {
					what += " " + c.String()
				}
				what = strings.TrimSpace(what + " " + b.Mode)
				out = append(out, "block "+b.ID+" ("+strings.TrimSpace(what+" "+b.Path)+")")
			}
		}
		return out
	}
	x, y := shape(a), shape(b)
	for i := range max(len(x), len(y)) {
		got, other := "nothing", "nothing"
		if i < len(x) {
			other = x[i]
		}
		if i < len(y) {
			got = y[i]
		}
		if got != other {
			return Faults{{File: file, Line: 0, Message: fmt.Sprintf("the languages differ: %s here, %s in %s", got, other, a.Lang)}}
		}
	}
	return nil
}
