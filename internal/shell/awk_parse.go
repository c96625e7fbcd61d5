package shell

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// awkNode is a statement or an expression.
type awkNode struct {
	op   string // what it is; see the parser
	text string
	num  float64
	re   *regexp.Regexp
	kids []*awkNode // nil entries: left out
	f    *awkFunc
}

type awkFunc struct {
	name   string
	params []string
	body   *awkNode
}

type awkRule struct {
	pattern, until *awkNode
	body           *awkNode // nil: print
	active         bool
}

type awkProgram struct {
	begin, end []*awkNode
	rules      []*awkRule
	funcs      map[string]*awkFunc
}

type awkParser struct {
	awkLexer
	prog  *awkProgram
	depth int
	noIn  bool // in the head of for (... ; "in" belongs to the statement
	noGT  bool // in print: ">" redirects
	calls []*awkNode
}

const awkMaxDepth = 200

func parseAwk(src string) (prog *awkProgram, err error) {
	if len(src) > 64<<10 {
		return nil, errors.New("program too long")
	}
	p := &awkParser{awkLexer: awkLexer{src: src, line: 1}, prog: &awkProgram{funcs: map[string]*awkFunc{}}}
	p.advance()
	p.newlines()
	for p.tok.kind != "eof" && p.err == nil {
		p.item()
		p.newlines()
	}
	for _, c := range p.calls {
		if c.f = p.prog.funcs[c.text]; c.f == nil && p.err == nil {
			p.err = fmt.Errorf("function %s is not defined", c.text)
		} else if c.f != nil && len(c.kids) > len(c.f.params) && p.err == nil {
			p.err = fmt.Errorf("function %s is called with too many arguments", c.text)
		}
	}
	return p.prog, p.err
}

func (p *awkParser) newlines() {
	for p.tok.kind == "nl" || p.tok.kind == ";" {
		p.advance()
	}
}

func (p *awkParser) skipNL() {
	for p.tok.kind == "nl" {
		p.advance()
	}
}

func (p *awkParser) want(kind string) {
	if p.tok.kind != kind {
		p.unexpected()
		return
	}
	p.advance()
}

func (p *awkParser) unexpected() {
	what := p.tok.kind
	switch what {
	case "nl":
		what = "end of line"
	case "eof":
		what = "end of program"
	case "name", "func", "str", "num":
		what = p.tok.text
	}
	p.fail("syntax error near %s", what)
}

func (p *awkParser) enter() bool {
	if p.depth++; p.depth > awkMaxDepth {
		p.fail("nested too deeply")
		return false
	}
	return p.err == nil
}

func (p *awkParser) item() {
	switch p.tok.kind {
	case "BEGIN":
		p.advance()
		p.prog.begin = append(p.prog.begin, p.block())
	case "END":
		p.advance()
		p.prog.end = append(p.prog.end, p.block())
	case "function":
		p.advance()
		f := &awkFunc{name: p.tok.text}
		if p.tok.kind != "name" && p.tok.kind != "func" {
			p.unexpected()
			return
		}
		p.advance()
		p.want("(")
		for p.tok.kind == "name" && p.err == nil {
			f.params = append(f.params, p.tok.text)
			p.advance()
			if p.tok.kind != "," {
				break
			}
			p.advance()
			p.skipNL()
		}
		p.want(")")
		p.skipNL()
		p.prog.funcs[f.name] = f
		f.body = p.block()
	default:
		r := &awkRule{}
		if p.tok.kind != "{" {
			r.pattern = p.expr()
			if p.tok.kind == "," {
				p.advance()
				p.skipNL()
				r.until = p.expr()
			}
		}
		if p.tok.kind == "{" {
			r.body = p.block()
		}
		p.prog.rules = append(p.prog.rules, r)
	}
}

func (p *awkParser) block() *awkNode {
	n := &awkNode{op: "block"}
	p.want("{")
	p.newlines()
	for p.tok.kind != "}" && p.err == nil {
		n.kids = append(n.kids, p.stmt())
		p.newlines()
	}
	p.want("}")
	return n
}

// simpleEnd takes the end of a statement.
func (p *awkParser) simpleEnd() {
	switch p.tok.kind {
	case ";", "nl":
		p.advance()
	case "}", "eof":
	default:
		p.unexpected()
	}
}

func (p *awkParser) stmt() *awkNode {
	defer func() { p.depth-- }()
	if !p.enter() {
		return nil
	}
	switch k := p.tok.kind; k {
	case "{":
		return p.block()
	case ";":
		p.advance()
		return &awkNode{op: "block"}
	case "if":
		p.advance()
		n := &awkNode{op: "if", kids: []*awkNode{p.paren(), p.body(), nil}}
		save, saved, savedTok := p.i, p.line, p.tok
		p.newlines()
		if p.tok.kind == "else" {
			p.advance()
			n.kids[2] = p.body()
		} else if p.err == nil {
			p.i, p.line, p.tok = save, saved, savedTok
		}
		return n
	case "while":
		p.advance()
		return &awkNode{op: "while", kids: []*awkNode{p.paren(), p.body()}}
	case "do":
		p.advance()
		body := p.body()
		p.newlines()
		p.want("while")
		n := &awkNode{op: "do", kids: []*awkNode{body, p.paren()}}
		p.simpleEnd()
		return n
	case "for":
		return p.forStmt()
	case "break", "continue", "next":
		p.advance()
		p.simpleEnd()
		return &awkNode{op: k}
	case "exit", "return":
		p.advance()
		n := &awkNode{op: k, kids: []*awkNode{nil}}
		if !slices.Contains([]string{";", "nl", "}", "eof"}, p.tok.kind) {
			n.kids[0] = p.expr()
		}
		p.simpleEnd()
		return n
	}
	n := p.simple()
	p.simpleEnd()
	return n
}

// body is the statement of if, while or for.
func (p *awkParser) body() *awkNode {
	if p.tok.kind == ";" {
		p.advance()
		return &awkNode{op: "block"}
	}
	p.skipNL()
	return p.stmt()
}

func (p *awkParser) paren() *awkNode {
	p.want("(")
	e := p.expr()
	p.want(")")
	return e
}

func (p *awkParser) forStmt() *awkNode {
	p.advance()
	p.want("(")
	var init *awkNode
	if p.tok.kind != ";" {
		p.noIn = true
		init = p.simple()
		p.noIn = false
		if p.tok.kind == "in" && init != nil && init.op == "expr" && init.kids[0].op == "var" {
			p.advance()
			n := &awkNode{op: "forin", text: p.tok.text, kids: []*awkNode{init.kids[0]}}
			p.want("name")
			p.want(")")
			n.kids = append(n.kids, p.body())
			return n
		}
	}
	n := &awkNode{op: "for", kids: []*awkNode{init, nil, nil, nil}}
	p.want(";")
	p.skipNL()
	if p.tok.kind != ";" {
		n.kids[1] = p.expr()
	}
	p.want(";")
	p.skipNL()
	if p.tok.kind != ")" {
		n.kids[2] = p.simple()
	}
	p.want(")")
	n.kids[3] = p.body()
	return n
}

// simple is a statement that can stand in the head of for.
func (p *awkParser) simple() *awkNode {
	switch k := p.tok.kind; k {
	case "print", "printf":
		p.advance()
		return p.printStmt(k)
	case "delete":
		p.advance()
		n := &awkNode{op: "delete", text: p.tok.text}
		p.want("name")
		if p.tok.kind == "[" {
			p.advance()
			n.kids = p.list("]")
		}
		return n
	}
	return &awkNode{op: "expr", kids: []*awkNode{p.expr()}}
}

func (p *awkParser) printStmt(op string) *awkNode {
	n := &awkNode{op: op}
	p.noGT = true
	if !slices.Contains([]string{";", "nl", "}", "eof", ">", ">>", "|"}, p.tok.kind) {
		if first := p.expr(); first != nil && first.op == "group" && p.tok.kind != "," {
			n.kids = first.kids // print(a, b)
		} else {
			n.kids = append(n.kids, first)
		}
		for p.tok.kind == "," && p.err == nil {
			p.advance()
			p.skipNL()
			n.kids = append(n.kids, p.expr())
		}
	}
	p.noGT = false
	if k := p.tok.kind; k == ">" || k == ">>" || k == "|" {
		p.advance()
		n.text = k
		n.kids = append(n.kids, p.concatOnly())
	}
	if op == "printf" && len(n.kids) == 0 {
		p.fail("printf needs a format")
	}
	return n
}

// concatOnly is the target of a redirection: no comparison.
func (p *awkParser) concatOnly() *awkNode { return p.concat() }

func (p *awkParser) list(end string) []*awkNode {
	noIn, noGT := p.noIn, p.noGT
	p.noIn, p.noGT = false, false
	defer func() { p.noIn, p.noGT = noIn, noGT }()
	var out []*awkNode
	p.skipNL()
	for p.tok.kind != end && p.err == nil {
		out = append(out, p.expr())
		p.skipNL()
		if p.tok.kind != "," {
			break
		}
		p.advance()
		p.skipNL()
	}
	p.want(end)
	return out
}
