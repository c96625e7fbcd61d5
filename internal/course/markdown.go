package course

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// liveNode is a live value inside a sentence.
type liveNode struct {
	ast.BaseInline
	live Live
}

var kindLive = ast.NewNodeKind("Live")

func (n *liveNode) Kind() ast.NodeKind { return kindLive }

func (n *liveNode) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// liveSyntax is goldmark's parser and renderer of live values.
type liveSyntax struct{}

func (liveSyntax) Trigger() []byte { return []byte{'{'} }

func (liveSyntax) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	at := liveMark.FindSubmatchIndex(line)
	if at == nil || at[0] != 0 {
		return nil
	}
	l, err := ParseLive(string(line[at[2]:at[3]]))
	if err != nil {
		return nil // stays as written; lint names it
	}
	block.Advance(at[1])
	return &liveNode{live: l}
}

func (liveSyntax) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(kindLive, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString(n.(*liveNode).live.element())
		}
		return ast.WalkContinue, nil
	})
}

// newMarkdown makes the converter of all lesson texts. It leaves raw HTML and
// dangerous links out.
func newMarkdown() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(
			parser.WithHeadingAttribute(),
			parser.WithInlineParsers(util.Prioritized(liveSyntax{}, 50)),
		),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(liveSyntax{}, 50))),
	)
}

// htmlOf converts a short text; paragraph false takes off the single paragraph around it.
func htmlOf(source string, paragraph bool) string {
	var b bytes.Buffer
	if err := newMarkdown().Convert([]byte(source), &b); err != nil {
		return ""
	}
	out := strings.TrimSpace(b.String())
	if inner, ok := strings.CutPrefix(out, "<p>"); ok && !paragraph && strings.Count(out, "<p>") == 1 {
		out = strings.TrimSuffix(inner, "</p>")
	}
	return out
}

// rawHTML finds the first piece of HTML in a Markdown text: its byte offset, or -1.
func rawHTML(root ast.Node) int {
	at := -1
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch h := n.(type) {
		case *ast.RawHTML:
			at = h.Segments.At(0).Start
			return ast.WalkStop, nil
		case *ast.HTMLBlock:
			if h.Lines().Len() > 0 {
				at = h.Lines().At(0).Start
			} else {
				at = h.ClosureLine.Start
			}
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return at
}

// parseMarkdown is the tree of a text.
func parseMarkdown(source []byte) ast.Node {
	return newMarkdown().Parser().Parse(text.NewReader(source))
}
