package shell

import (
	"fmt"
	"strconv"
	"strings"
)

// awkToken kinds: "num", "str", "re", "name", "func" (a name followed by a
// parenthesis), "nl", "eof", and otherwise the operator or keyword itself.
type awkToken struct {
	kind string
	text string
	num  float64
	line int
}

var awkKeywords = map[string]bool{
	"BEGIN": true, "END": true, "function": true, "func": true, "if": true, "else": true, "while": true, "for": true, "do": true, "break": true,
	"continue": true, "next": true, "exit": true, "return": true, "delete": true, "in": true, "print": true, "printf": true, "getline": true,
}

var awkOperators = []string{
	"**=", "&&", "||", "==", "!=", "<=", ">=", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "**", ">>", "!~",
	"{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", "<", ">", "|", "?", ":", "~", "$", "=",
}

type awkLexer struct {
	src  string
	i    int
	line int
	prev string // kind of the token before: tells a division from a regular expression
	tok  awkToken
	err  error
}

func (l *awkLexer) fail(format string, a ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("line %d: %s", l.line, fmt.Sprintf(format, a...))
	}
	l.tok = awkToken{kind: "eof", line: l.line}
}

// advance reads the next token into tok.
func (l *awkLexer) advance() {
	l.prev = l.tok.kind
	if l.err != nil {
		l.tok = awkToken{kind: "eof"}
		return
	}
	for l.i < len(l.src) {
		switch c := l.src[l.i]; {
		case c == ' ' || c == '\t' || c == '\r':
			l.i++
			continue
		case c == '\\' && strings.HasPrefix(l.src[l.i:], "\\\n"):
			l.i += 2
			l.line++
			continue
		case c == '#':
			for l.i < len(l.src) && l.src[l.i] != '\n' {
				l.i++
			}
			continue
		}
		break
	}
	l.tok = awkToken{line: l.line}
	if l.i >= len(l.src) {
		l.tok.kind = "eof"
		return
	}
	c := l.src[l.i]
	switch {
	case c == '\n':
		l.i++
		l.line++
		l.tok.kind = "nl"
	case c >= '0' && c <= '9' || c == '.' && l.i+1 < len(l.src) && l.src[l.i+1] >= '0' && l.src[l.i+1] <= '9':
		l.number()
	case c == '"':
		l.quoted()
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		start := l.i
		for l.i < len(l.src) && (l.src[l.i] == '_' || l.src[l.i] >= 'a' && l.src[l.i] <= 'z' || l.src[l.i] >= 'A' && l.src[l.i] <= 'Z' || l.src[l.i] >= '0' && l.src[l.i] <= '9') {
			l.i++
		}
		l.tok.text = l.src[start:l.i]
		switch {
		case awkKeywords[l.tok.text]:
			l.tok.kind = l.tok.text
			if l.tok.kind == "func" {
				l.tok.kind = "function"
			}
		case l.i < len(l.src) && l.src[l.i] == '(':
			l.tok.kind = "func"
		default:
			l.tok.kind = "name"
		}
	case c == '/' && !l.afterValue():
		l.regex()
	default:
		for _, op := range awkOperators {
			if strings.HasPrefix(l.src[l.i:], op) {
				l.i += len(op)
				l.tok.kind = op
				switch op {
				case "**":
					l.tok.kind = "^"
				case "**=":
					l.tok.kind = "^="
				}
				return
			}
		}
		l.fail("unexpected character '%c'", c)
	}
}

// afterValue: the token before ends an operand, so that / divides.
func (l *awkLexer) afterValue() bool {
	switch l.prev {
	case "num", "str", "re", "name", ")", "]", "$", "++", "--":
		return true
	}
	return false
}

func (l *awkLexer) number() {
	start := l.i
	for l.i < len(l.src) && (l.src[l.i] >= '0' && l.src[l.i] <= '9' || l.src[l.i] == '.') {
		l.i++
	}
	if l.i < len(l.src) && (l.src[l.i] == 'e' || l.src[l.i] == 'E') {
		j := l.i + 1
		if j < len(l.src) && (l.src[j] == '+' || l.src[j] == '-') {
			j++
		}
		if j < len(l.src) && l.src[j] >= '0' && l.src[j] <= '9' {
			for j < len(l.src) && l.src[j] >= '0' && l.src[j] <= '9' {
				j++
			}
			l.i = j
		}
	}
	l.tok.kind, l.tok.text = "num", l.src[start:l.i]
	l.tok.num, _ = strconv.ParseFloat(l.tok.text, 64)
}

func (l *awkLexer) quoted() {
	start := l.i + 1
	for i := start; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case '\n':
			l.fail("unterminated string")
			return
		case '"':
			l.tok.kind, l.tok.text = "str", strings.ReplaceAll(unescape(l.src[start:i]), `\/`, "/")
			l.i = i + 1
			return
		}
	}
	l.fail("unterminated string")
}

func (l *awkLexer) regex() {
	start := l.i + 1
	bracket := false
	for i := start; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == '\\':
			i++
		case c == '\n':
			l.fail("unterminated regular expression")
			return
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case c == '/' && !bracket:
			l.tok.kind, l.tok.text = "re", strings.ReplaceAll(l.src[start:i], `\/`, "/")
			l.i = i + 1
			return
		}
	}
	l.fail("unterminated regular expression")
}
