package shell

import "slices"

// expr parses an assignment or anything that binds tighter.
func (p *awkParser) expr() *awkNode {
	defer func() { p.depth-- }()
	if !p.enter() {
		return nil
	}
	left := p.ternary()
	if left == nil {
		return nil
	}
	switch k := p.tok.kind; k {
	case "=", "+=", "-=", "*=", "/=", "%=", "^=":
		if !assignable(left) {
			p.unexpected()
			return nil
		}
		p.advance()
		p.skipNL()
		return &awkNode{op: "assign", text: k[:len(k)-1], kids: []*awkNode{left, p.expr()}}
	}
	return left
}

func assignable(n *awkNode) bool { return n.op == "var" || n.op == "index" || n.op == "field" }

func (p *awkParser) ternary() *awkNode {
	cond := p.binary(0)
	if p.tok.kind != "?" {
		return cond
	}
	p.advance()
	p.skipNL()
	a := p.expr()
	p.skipNL()
	p.want(":")
	p.skipNL()
	return &awkNode{op: "?:", kids: []*awkNode{cond, a, p.expr()}}
}

// binary parses ||, &&, in, ~ and comparisons by level.
func (p *awkParser) binary(level int) *awkNode {
	levels := [][]string{{"||"}, {"&&"}, {"in"}, {"~", "!~"}, {"<", "<=", "==", "!=", ">", ">="}}
	if level == len(levels) {
		return p.concat()
	}
	left := p.binary(level + 1)
	for p.err == nil {
		k := p.tok.kind
		if !slices.Contains(levels[level], k) || k == "in" && p.noIn || k == ">" && p.noGT {
			return left
		}
		p.advance()
		if level < 2 {
			p.skipNL()
		}
		if k == "in" {
			n := &awkNode{op: "in", text: p.tok.text, kids: []*awkNode{left}}
			if left != nil && left.op == "group" {
				n.kids = left.kids
			}
			p.want("name")
			left = n
			continue
		}
		left = &awkNode{op: k, kids: []*awkNode{left, p.binary(level + 1)}}
		if level == 4 {
			return left // comparisons don't chain
		}
	}
	return left
}

func (p *awkParser) concat() *awkNode {
	left := p.additive()
	for p.err == nil {
		switch p.tok.kind {
		case "num", "str", "name", "func", "$", "!", "(", "-", "+", "++", "--", "re":
			if p.tok.kind == "re" {
				return left
			}
			left = &awkNode{op: "concat", kids: []*awkNode{left, p.additive()}}
		default:
			return left
		}
	}
	return left
}

func (p *awkParser) additive() *awkNode {
	left := p.multiplicative()
	for p.err == nil && (p.tok.kind == "+" || p.tok.kind == "-") {
		k := p.tok.kind
		p.advance()
		left = &awkNode{op: k, kids: []*awkNode{left, p.multiplicative()}}
	}
	return left
}

func (p *awkParser) multiplicative() *awkNode {
	left := p.unary()
	for p.err == nil && (p.tok.kind == "*" || p.tok.kind == "/" || p.tok.kind == "%") {
		k := p.tok.kind
		p.advance()
		left = &awkNode{op: k, kids: []*awkNode{left, p.unary()}}
	}
	return left
}

func (p *awkParser) unary() *awkNode {
	defer func() { p.depth-- }()
	if !p.enter() {
		return nil
	}
	switch k := p.tok.kind; k {
	case "!", "-", "+":
		p.advance()
		return &awkNode{op: "u" + k, kids: []*awkNode{p.unary()}}
	}
	return p.power()
}

func (p *awkParser) power() *awkNode {
	base := p.postfix()
	if p.tok.kind != "^" {
		return base
	}
	p.advance()
	return &awkNode{op: "^", kids: []*awkNode{base, p.unary()}}
}

func (p *awkParser) postfix() *awkNode {
	if k := p.tok.kind; k == "++" || k == "--" {
		p.advance()
		n := p.primary()
		if n == nil || !assignable(n) {
			p.unexpected()
			return nil
		}
		return &awkNode{op: "pre" + k, kids: []*awkNode{n}}
	}
	n := p.primary()
	if k := p.tok.kind; (k == "++" || k == "--") && n != nil && assignable(n) {
		p.advance()
		return &awkNode{op: "post" + k, kids: []*awkNode{n}}
	}
	return n
}

func (p *awkParser) primary() *awkNode {
	defer func() { p.depth-- }()
	if !p.enter() {
		return nil
	}
	t := p.tok
	switch t.kind {
	case "num":
		p.advance()
		return &awkNode{op: "num", num: t.num, text: t.text}
	case "str":
		p.advance()
		return &awkNode{op: "str", text: t.text}
	case "re":
		re, err := compileRegex(t.text, true, false, false)
		if err != nil {
			p.fail("%v", err)
			return nil
		}
		p.advance()
		return &awkNode{op: "re", re: re, text: t.text}
	case "$":
		p.advance()
		if p.tok.kind == "++" || p.tok.kind == "--" {
			return &awkNode{op: "field", kids: []*awkNode{p.postfix()}}
		}
		if p.tok.kind == "-" {
			return &awkNode{op: "field", kids: []*awkNode{p.unary()}}
		}
		return &awkNode{op: "field", kids: []*awkNode{p.primary()}}
	case "(":
		p.advance()
		list := p.list(")")
		switch len(list) {
		case 0:
			p.unexpected()
			return nil
		case 1:
			return &awkNode{op: "paren", kids: list}
		}
		return &awkNode{op: "group", kids: list}
	case "func":
		return p.call(t.text)
	case "name":
		p.advance()
		if t.text == "length" {
			return &awkNode{op: "builtin", text: "length"}
		}
		if p.tok.kind == "[" {
			p.advance()
			return &awkNode{op: "index", text: t.text, kids: p.list("]")}
		}
		return &awkNode{op: "var", text: t.text}
	case "getline":
		p.fail("getline isn't available in this awk")
		return nil
	}
	p.unexpected()
	return nil
}

// awkBuiltins maps a function to its least and most arguments.
var awkBuiltins = map[string][2]int{
	"length": {0, 1}, "substr": {2, 3}, "split": {2, 3}, "sub": {2, 3}, "gsub": {2, 3}, "match": {2, 2}, "toupper": {1, 1}, "tolower": {1, 1},
	"index": {2, 2}, "int": {1, 1}, "sprintf": {1, 100}, "sin": {1, 1}, "cos": {1, 1}, "atan2": {2, 2}, "exp": {1, 1}, "log": {1, 1}, "sqrt": {1, 1},
	"rand": {0, 0}, "srand": {0, 1}, "systime": {0, 0}, "strftime": {0, 2}, "close": {1, 1}, "fflush": {0, 1}, "gensub": {3, 4},
}

func (p *awkParser) call(name string) *awkNode {
	p.advance()
	p.want("(")
	args := p.list(")")
	if name == "system" {
		p.fail("system() isn't available in this awk")
		return nil
	}
	if n, ok := awkBuiltins[name]; ok {
		if len(args) < n[0] || len(args) > n[1] {
			p.fail("wrong number of arguments for %s", name)
			return nil
		}
		return &awkNode{op: "builtin", text: name, kids: args}
	}
	c := &awkNode{op: "call", text: name, kids: args}
	p.calls = append(p.calls, c)
	return c
}
