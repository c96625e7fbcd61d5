package shell

import (
	"errors"
	"regexp"
	"strings"
)

// compileRegex compiles a POSIX regular expression: basic, or extended, or a
// fixed string. Matching takes linear time, so back-references inside a pattern
// are refused.
func compileRegex(expr string, extended, fixed, fold bool) (*regexp.Regexp, error) {
	if len(expr) > 8192 {
		return nil, errors.New("regular expression too long")
	}
	var pattern string
	switch {
	case fixed:
		pattern = regexp.QuoteMeta(expr)
	default:
		var err error
		if pattern, err = translateRegex(expr, extended); err != nil {
			return nil, err
		}
	}
	if fold {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, errors.New("invalid regular expression: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	re.Longest()
	return re, nil
}

// translateRegex turns a POSIX expression (with the usual GNU additions) into Go's syntax.
func translateRegex(s string, extended bool) (string, error) {
	var b strings.Builder
	depth := 0
	atStart := true // of the expression or of an alternative
	for i := 0; i < len(s); i++ {
		c := s[i]
		start := atStart
		atStart = false
		switch c {
		case '[':
			end, class := bracket(s[i:])
			if end < 0 {
				return "", errors.New("unterminated [")
			}
			b.WriteString(class)
			i += end - 1
		case '\\':
			if i+1 == len(s) {
				return "", errors.New("trailing backslash")
			}
			i++
			switch e := s[i]; {
			case e >= '1' && e <= '9':
				return "", errors.New("back-references in a pattern aren't available here")
			case !extended && (e == '(' || e == '{' || e == '|' || e == '+' || e == '?' || e == ')' || e == '}'):
				b.WriteByte(e)
				atStart = e == '(' || e == '|'
				if e == '(' {
					depth++
				} else if e == ')' {
					depth--
				}
			case e == '<' || e == '>' || e == 'b':
				b.WriteString(`\b`)
			case strings.IndexByte("wWsSBdD", e) >= 0:
				b.WriteString(`\` + string(e))
			case e == 'n':
				b.WriteString(`\n`)
			case e == 't':
				b.WriteString(`\t`)
			case e < 128:
				b.WriteString(regexp.QuoteMeta(string(rune(e))))
			default:
				b.WriteByte(e)
			}
		case '*':
			if start {
				b.WriteString(`\*`)
			} else {
				b.WriteByte('*')
			}
		case '^':
			if extended || start {
				b.WriteByte('^')
				atStart = true
			} else {
				b.WriteString(`\^`)
			}
		case '$':
			last := i+1 == len(s) || !extended && strings.HasPrefix(s[i+1:], `\)`) || !extended && strings.HasPrefix(s[i+1:], `\|`)
			if extended || last {
				b.WriteByte('$')
			} else {
				b.WriteString(`\$`)
			}
		case '(', ')', '|', '+', '?', '{', '}':
			switch {
			case !extended:
				b.WriteByte('\\')
				b.WriteByte(c)
			case c == '{' && (start || i+1 == len(s) || s[i+1] < '0' || s[i+1] > '9') && !strings.HasPrefix(s[i:], "{,"):
				b.WriteString(`\{`)
			case (c == '+' || c == '?') && start:
				b.WriteString(`\` + string(c))
			default:
				if c == '{' && strings.HasPrefix(s[i:], "{,") {
					b.WriteString("{0")
					break
				}
				b.WriteByte(c)
				atStart = c == '(' || c == '|'
			}
		default:
			b.WriteByte(c)
		}
	}
	_ = depth
	return b.String(), nil
}

// bracket translates a bracket expression and returns its length, or -1.
func bracket(s string) (int, string) {
	var b strings.Builder
	b.WriteByte('[')
	i := 1
	if i < len(s) && s[i] == '^' {
		b.WriteByte('^')
		i++
	}
	first := true
	for i < len(s) {
		switch {
		case s[i] == ']' && !first:
			b.WriteByte(']')
			return i + 1, b.String()
		case strings.HasPrefix(s[i:], "[:"):
			end := strings.Index(s[i:], ":]")
			if end < 0 {
				return -1, ""
			}
			b.WriteString(s[i : i+end+2])
			i += end + 2
			first = false
			continue
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte(`nt\]`, s[i+1]) >= 0 && s[i+1] != ']':
			b.WriteString(s[i : i+2])
			i += 2
			first = false
			continue
		case s[i] == '[' || s[i] == ']' || s[i] == '\\':
			b.WriteByte('\\')
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
		first = false
		i++
	}
	return -1, ""
}
