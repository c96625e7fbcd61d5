package shell

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// exprParser evaluates the words of expr(1): POSIX's operators.
type exprParser struct {
	words []string
	depth int
}

var errExprSyntax = errors.New("syntax error")

// maxExprDepth bounds nested parentheses.
const maxExprDepth = 100

// expr prints the value of an expression; it exits with 1 when that is empty or 0, and with 2 for a wrong one.
func expr(_ context.Context, env Env, args []string) int {
	p := &exprParser{words: args[1:]}
	v, err := p.level(0)
	if err == nil && len(p.words) > 0 {
		err = errExprSyntax
	}
	if err != nil {
		fmt.Fprintf(env.Err, "expr: %v\n", err)
		return 2
	}
	fmt.Fprintln(env.Out, v)
	if isNull(v) {
		return 1
	}
	return 0
}

// exprLevels are the binary operators, the weakest first.
var exprLevels = [][]string{{"|"}, {"&"}, {"=", "==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/", "%"}, {":"}}

func (p *exprParser) level(n int) (string, error) {
	if n == len(exprLevels) {
		return p.operand()
	}
	left, err := p.level(n + 1)
	for err == nil && len(p.words) > 0 && oneOf(p.words[0], exprLevels[n]) {
		op := p.words[0]
		p.words = p.words[1:]
		var right string
		if right, err = p.level(n + 1); err == nil {
			left, err = exprApply(op, left, right)
		}
	}
	return left, err
}

func oneOf(word string, list []string) bool {
	for _, w := range list {
		if w == word {
			return true
		}
	}
	return false
}

func (p *exprParser) operand() (string, error) {
	if len(p.words) == 0 || p.words[0] == ")" {
		return "", errExprSyntax
	}
	word := p.words[0]
	p.words = p.words[1:]
	switch {
	case word == "(":
		if p.depth++; p.depth > maxExprDepth {
			return "", errExprSyntax
		}
		v, err := p.level(0)
		p.depth--
		if err == nil && (len(p.words) == 0 || p.words[0] != ")") {
			err = errExprSyntax
		}
		if err == nil {
			p.words = p.words[1:]
		}
		return v, err
	case word == "length" && len(p.words) > 0:
		v, err := p.operand()
		return strconv.Itoa(len([]rune(v))), err
	}
	return word, nil
}

func isNull(v string) bool {
	n, err := strconv.ParseInt(v, 10, 64)
	return v == "" || err == nil && n == 0
}

func exprApply(op, a, b string) (string, error) {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	numbers := errX == nil && errY == nil
	switch op {
	case "|":
		switch {
		case !isNull(a):
			return a, nil
		case !isNull(b):
			return b, nil
		}
		return "0", nil
	case "&":
		if isNull(a) || isNull(b) {
			return "0", nil
		}
		return a, nil
	case ":":
		return exprMatch(a, b)
	case "=", "==", "!=", "<", "<=", ">", ">=":
		less, equal := a < b, a == b
		if numbers {
			less, equal = x < y, x == y
		}
		holds := map[string]bool{"=": equal, "==": equal, "!=": !equal, "<": less, "<=": less || equal, ">": !less && !equal, ">=": !less}[op]
		if holds {
			return "1", nil
		}
		return "0", nil
	}
	switch {
	case !numbers:
		return "", errors.New("non-integer argument")
	case (op == "/" || op == "%") && y == 0:
		return "", errors.New("division by zero")
	}
	switch op {
	case "+":
		x += y
	case "-":
		x -= y
	case "*":
		x *= y
	case "/":
		x /= y
	case "%":
		x %= y
	}
	return strconv.FormatInt(x, 10), nil
}

// exprMatch matches from the beginning: the first group, or how many characters matched.
func exprMatch(text, pattern string) (string, error) {
	re, err := compileRegex("^"+pattern, false, false, false)
	if err != nil {
		return "", err
	}
	m := re.FindStringSubmatch(text)
	switch {
	case re.NumSubexp() > 0 && m != nil:
		return m[1], nil
	case re.NumSubexp() > 0:
		return "", nil
	case m == nil:
		return "0", nil
	}
	return strconv.Itoa(len([]rune(m[0]))), nil
}
