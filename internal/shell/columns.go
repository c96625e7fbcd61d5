package shell

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a range of a cut list, from 1; to may be huge.
type span struct{ from, to int }

func parseSpans(s string) ([]span, error) {
	var out []span
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		a, b, ranged := strings.Cut(part, "-")
		sp := span{1, 1 << 30}
		var err error
		if a != "" {
			if sp.from, err = strconv.Atoi(a); err != nil || sp.from < 1 {
				return nil, fmt.Errorf("invalid field value '%s'", part)
			}
		}
		if !ranged {
			sp.to = sp.from
		} else if b != "" {
			if sp.to, err = strconv.Atoi(b); err != nil || sp.to < sp.from {
				return nil, fmt.Errorf("invalid decreasing range")
			}
		}
		out = append(out, sp)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("you must specify a list of bytes, characters, or fields")
	}
	return out, nil
}

func cut(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "f:d:c:b:s", map[string]string{"fields:": "f", "delimiter:": "d", "characters:": "c", "output-delimiter:": "o", "complement": "x"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	spans, err := parseSpans(value(opts, "f", value(opts, "c", value(opts, "b", ""))))
	if err != nil {
		return env.fail(args, "%v", err)
	}
	delim := value(opts, "d", "\t")
	if utf8.RuneCountInString(delim) != 1 {
		return env.fail(args, "the delimiter must be a single character")
	}
	in := func(i int) bool {
		for _, s := range spans {
			if i >= s.from && i <= s.to {
				return !f["x"]
			}
		}
		return f["x"]
	}
	out := env.output()
	defer out.Flush()
	return env.inputs(ctx, args, names, func(_ string, r io.Reader) error {
		return newLines(ctx, r).each(func(line []byte) error {
			if !f["f"] {
				i := 0
				for _, c := range string(line) {
					if i++; in(i) {
						out.WriteRune(c)
					}
				}
				return out.WriteByte('\n')
			}
			if !bytes.Contains(line, []byte(delim)) {
				if !f["s"] {
					out.Write(line)
					return out.WriteByte('\n')
				}
				return nil
			}
			first := true
			for i, c := range strings.Split(string(line), delim) {
				if in(i + 1) {
					if !first {
						out.WriteString(value(opts, "o", delim))
					}
					first = false
					out.WriteString(c)
				}
			}
			return out.WriteByte('\n')
		})
	})
}

// unescape expands \n, \t, \\, \NNN and the like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'f':
			b.WriteByte(12)
		case 'v':
			b.WriteByte(11)
		case 'e':
			b.WriteByte(27)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v, n := 0, 0
			for n < 3+btoi(c == '0') && i < len(s) && s[i] >= '0' && s[i] <= '7' {
				v = v*8 + int(s[i]-'0')
				i++
				n++
			}
			i--
			b.WriteByte(byte(v))
		case 'x':
			v, n := 0, 0
			for n < 2 && i+1 < len(s) && strings.IndexByte("0123456789abcdefABCDEF", s[i+1]) >= 0 {
				d, _ := strconv.ParseInt(s[i+1:i+2], 16, 0)
				v = v*16 + int(d)
				i++
				n++
			}
			b.WriteByte(byte(v))
		case '\\', '"', '\'':
			b.WriteByte(c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func runeClass(name string) func(rune) bool {
	switch name {
	case "alpha":
		return unicode.IsLetter
	case "digit":
		return func(r rune) bool { return r >= '0' && r <= '9' }
	case "alnum":
		return func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	case "upper":
		return unicode.IsUpper
	case "lower":
		return unicode.IsLower
	case "space":
		return unicode.IsSpace
	case "blank":
		return func(r rune) bool { return r == ' ' || r == '\t' }
	case "punct":
		return func(r rune) bool { return r < 128 && (unicode.IsPunct(r) || unicode.IsSymbol(r)) }
	case "cntrl":
		return unicode.IsControl
	case "print":
		return unicode.IsPrint
	case "graph":
		return unicode.IsGraphic
	case "xdigit":
		return func(r rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", r) }
	}
	return nil
}

// trSet expands a set of tr in order.
func trSet(s string) ([]rune, error) {
	s = unescape(s)
	var out []rune
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		if rs[i] == '[' && i+1 < len(rs) && rs[i+1] == ':' {
			if end := strings.Index(string(rs[i+2:]), ":]"); end >= 0 {
				name := string(rs[i+2:])[:end]
				class := runeClass(name)
				if class == nil {
					return nil, fmt.Errorf("invalid character class '%s'", name)
				}
				for r := rune(0); r < 0x180; r++ {
					if class(r) {
						out = append(out, r)
					}
				}
				i += 3 + utf8.RuneCountInString(name)
				continue
			}
		}
		if i+2 < len(rs) && rs[i+1] == '-' {
			if rs[i] > rs[i+2] {
				return nil, fmt.Errorf("range-endpoints of '%c-%c' are in reverse collating sequence order", rs[i], rs[i+2])
			}
			for r := rs[i]; r <= rs[i+2] && len(out) < 1<<17; r++ {
				out = append(out, r)
			}
			i += 2
			continue
		}
		out = append(out, rs[i])
	}
	return out, nil
}

func tr(ctx context.Context, env Env, args []string) int {
	opts, sets, err := getoptFirst(args[1:], "dscC", map[string]string{"delete": "d", "squeeze-repeats": "s", "complement": "c"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	comp := f["c"] || f["C"]
	if len(sets) == 0 || len(sets) > 2 || len(sets) == 1 && !f["d"] && !f["s"] {
		return env.fail(args, "missing operand")
	}
	set1, err := trSet(sets[0])
	if err != nil {
		return env.fail(args, "%v", err)
	}
	var set2 []rune
	if len(sets) == 2 {
		if set2, err = trSet(sets[1]); err != nil {
			return env.fail(args, "%v", err)
		}
		if len(set2) == 0 && !f["d"] {
			return env.fail(args, "when not truncating set1, string2 must be non-empty")
		}
	}
	index := make(map[rune]int, len(set1))
	for i, r := range set1 {
		if _, ok := index[r]; !ok || !f["d"] {
			index[r] = i
		}
	}
	squeeze := map[rune]bool{}
	switch {
	case f["s"] && len(sets) == 2:
		for _, r := range set2 {
			squeeze[r] = true
		}
	case f["s"] && !comp:
		for _, r := range set1 {
			squeeze[r] = true
		}
	}
	in, out := bufio.NewReader(env.In), env.output()
	defer out.Flush()
	last := rune(-1)
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return 130
		}
		if in.Buffered() == 0 {
			out.Flush()
		}
		r, size, err := in.ReadRune()
		if err != nil {
			return 0
		}
		if r == utf8.RuneError && size == 1 {
			in.UnreadRune()
			b, _ := in.ReadByte()
			out.WriteByte(b)
			continue
		}
		i, member := index[r]
		if comp {
			member = !member
			i = len(set2) - 1
		}
		if member {
			if f["d"] {
				continue
			}
			if len(set2) > 0 {
				r = set2[min(i, len(set2)-1)]
			}
		}
		if (squeeze[r] || f["s"] && comp && len(sets) == 1 && member) && r == last {
			continue
		}
		last = r
		if _, err := out.WriteRune(r); err != nil {
			return 1
		}
	}
}
