package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

func echo(_ context.Context, env Env, args []string) int {
	newline, expand := true, false
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, c := range args[0][1:] {
			switch c {
			case 'n':
				newline = false
			case 'e':
				expand = true
			case 'E':
				expand = false
			}
		}
		args = args[1:]
	}
	s := strings.Join(args, " ")
	if expand {
		if i := strings.Index(s, `\c`); i >= 0 {
			s, newline = s[:i], false
		}
		s = unescape(s)
	}
	if newline {
		s += "\n"
	}
	if _, err := io.WriteString(env.Out, s); err != nil {
		return 1
	}
	return 0
}

func printf(_ context.Context, env Env, args []string) int {
	if len(args) > 1 && args[1] == "--" {
		args = append(args[:1:1], args[2:]...)
	}
	if len(args) < 2 {
		return env.fail(args, "usage: printf FORMAT [ARGUMENT]...")
	}
	if args[1] == "-v" {
		return env.fail(args, "-v isn't available here; use name=$(printf ...)")
	}
	format, rest := args[1], args[2:]
	for {
		used := 0
		s, err := formatShell(format, func() (string, bool) {
			if used < len(rest) {
				used++
				return rest[used-1], true
			}
			return "", false
		})
		io.WriteString(env.Out, s)
		if err != nil {
			return env.fail(args, "%v", err)
		}
		rest = rest[used:]
		if used == 0 || len(rest) == 0 {
			return 0
		}
	}
}

// maxWidth bounds widths and precisions of printf.
const maxWidth = 10000

// directive is one %... of a printf format.
type directive struct {
	flags     string
	width     int
	precision int // -1: none
	verb      byte
}

// parseDirective reads what follows a percent sign; next gives the value for "*".
func parseDirective(s string, next func() int) (d directive, n int, err error) {
	d.precision = -1
	for n < len(s) && strings.IndexByte("-+ #0", s[n]) >= 0 {
		d.flags += s[n : n+1]
		n++
	}
	number := func() int {
		if n < len(s) && s[n] == '*' {
			n++
			return next()
		}
		v := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			v = min(v*10+int(s[n]-'0'), maxWidth+1)
			n++
		}
		return v
	}
	if d.width = number(); d.width < 0 {
		d.flags, d.width = d.flags+"-", -d.width
	}
	if n < len(s) && s[n] == '.' {
		n++
		d.precision = number()
	}
	for n < len(s) && strings.IndexByte("hlLqjzt", s[n]) >= 0 {
		n++
	}
	if n >= len(s) {
		return d, n, errors.New("missing format character")
	}
	d.verb = s[n]
	if d.width > maxWidth || d.precision > maxWidth || d.width < 0 {
		return d, n + 1, errors.New("field width too large")
	}
	return d, n + 1, nil
}

func (d directive) format(v any) string {
	verb := d.verb
	switch verb {
	case 'i', 'u':
		verb = 'd'
	}
	f := "%" + d.flags
	if d.width > 0 {
		f += strconv.Itoa(d.width)
	}
	if d.precision >= 0 && verb != 'c' {
		f += "." + strconv.Itoa(d.precision)
	}
	if strings.ContainsRune(d.flags, '0') && verb == 's' {
		f = strings.Replace(f, "0", "", 1)
	}
	return fmt.Sprintf(f+string(verb), v)
}

func formatShell(format string, next func() (string, bool)) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); {
		switch c := format[i]; {
		case c == '\\':
			end := i + 2
			for end < len(format) && end < i+5 && strings.IndexByte("0123456789abcdefABCDEFx", format[end]) >= 0 {
				end++
			}
			b.WriteString(unescape(format[i:min(end, len(format))]))
			i = end
		case c == '%' && i+1 < len(format) && format[i+1] == '%':
			b.WriteByte('%')
			i += 2
		case c == '%':
			d, n, err := parseDirective(format[i+1:], func() int { s, _ := next(); v, _ := strconv.Atoi(s); return v })
			if err != nil {
				return b.String(), err
			}
			i += 1 + n
			arg, _ := next()
			switch d.verb {
			case 's':
				b.WriteString(d.format(arg))
			case 'b':
				d.verb = 's'
				b.WriteString(d.format(unescape(arg)))
			case 'q':
				d.verb = 's'
				b.WriteString(d.format("'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"))
			case 'c':
				for _, r := range arg {
					d.verb = 's'
					b.WriteString(d.format(string(r)))
					break
				}
			case 'd', 'i', 'u', 'x', 'X', 'o':
				v, err := shellInt(arg)
				b.WriteString(d.format(v))
				if err != nil {
					return b.String(), err
				}
			case 'f', 'e', 'g', 'E', 'G', 'F':
				v := 0.0
				if arg != "" {
					if v, err = strconv.ParseFloat(strings.TrimSpace(arg), 64); err != nil {
						return b.String(), fmt.Errorf("'%s': invalid number", arg)
					}
				}
				b.WriteString(d.format(v))
			default:
				return b.String(), fmt.Errorf("%%%c: invalid directive", d.verb)
			}
		default:
			b.WriteByte(c)
			i++
		}
		if b.Len() > maxHeld {
			return b.String(), errors.New("output too long")
		}
	}
	return b.String(), nil
}

func shellInt(s string) (int64, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, nil
	}
	if s[0] == '\'' || s[0] == '"' {
		for _, r := range s[1:] {
			return int64(r), nil
		}
	}
	v, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		return int64(leadingNumber(s)), fmt.Errorf("'%s': invalid number", s)
	}
	return v, nil
}
