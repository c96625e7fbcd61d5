package shell

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func (m *awkMachine) builtin(n *awkNode) (awkValue, error) {
	var v []awkValue
	for i, k := range n.kids {
		skip := n.text == "split" && i > 0 || (n.text == "sub" || n.text == "gsub") && i != 1 || n.text == "match" && i == 1 || n.text == "gensub" && i == 0 ||
			n.text == "length" && k.op == "var" && (m.arrays[k.text] != nil || m.local(k.text) != nil && m.local(k.text).array != nil)
		if skip {
			v = append(v, awkValue{})
			continue
		}
		x, err := m.eval(k)
		if err != nil {
			return x, err
		}
		v = append(v, x)
	}
	str := func(i int) string { return v[i].str(m.vars["CONVFMT"].s) }
	switch n.text {
	case "length":
		if len(v) == 0 {
			return awkNum(float64(utf8.RuneCountInString(m.fields[0]))), nil
		}
		if k := n.kids[0]; k.op == "var" && (m.arrays[k.text] != nil || m.local(k.text) != nil && m.local(k.text).array != nil) {
			return awkNum(float64(len(m.array(k.text)))), nil
		}
		return awkNum(float64(utf8.RuneCountInString(str(0)))), nil
	case "substr":
		rs := []rune(str(0))
		from := math.Round(v[1].num())
		to := math.Inf(1)
		if len(v) > 2 {
			to = from + math.Round(v[2].num())
		}
		from, to = max(from, 1), min(to, float64(len(rs)+1))
		if !(to > from) {
			return awkStr(""), nil
		}
		return awkStr(string(rs[int(from)-1 : int(to)-1])), nil
	case "index":
		i := strings.Index(str(0), str(1))
		if i < 0 {
			return awkNum(0), nil
		}
		return awkNum(float64(utf8.RuneCountInString(str(0)[:i]) + 1)), nil
	case "split":
		return m.splitCall(n, str(0))
	case "sub", "gsub":
		return m.substitute(n, str(1))
	case "gensub":
		return m.gensub(n, str(1), str(2))
	case "match":
		re, err := m.pattern(n.kids[1])
		if err != nil {
			return awkValue{}, err
		}
		start, length := 0, -1
		if loc := re.FindStringIndex(str(0)); loc != nil {
			start = utf8.RuneCountInString(str(0)[:loc[0]]) + 1
			length = utf8.RuneCountInString(str(0)[loc[0]:loc[1]])
		}
		m.vars["RSTART"], m.vars["RLENGTH"] = awkNum(float64(start)), awkNum(float64(length))
		return awkNum(float64(start)), nil
	case "toupper":
		return awkStr(strings.ToUpper(str(0))), nil
	case "tolower":
		return awkStr(strings.ToLower(str(0))), nil
	case "sprintf":
		s, err := formatAwk(str(0), v[1:], m.vars["CONVFMT"].s)
		return awkStr(s), err
	case "close":
		return awkNum(float64(m.closeOutput(str(0)))), nil
	case "fflush":
		return awkNum(0), m.out.Flush()
	case "systime":
		return awkNum(float64(time.Now().Unix())), nil
	case "strftime":
		format, t := "%a %b %e %H:%M:%S %Z %Y", time.Now().UTC()
		if len(v) > 0 {
			format = str(0)
		}
		if len(v) > 1 {
			t = time.Unix(int64(v[1].num()), 0).UTC()
		}
		return awkStr(strftime(format, t)), nil
	case "rand":
		m.seed = m.seed*6364136223846793005 + 1442695040888963407
		return awkNum(float64(m.seed>>11) / (1 << 53)), nil
	case "srand":
		m.seed = uint64(time.Now().UnixNano())
		if len(v) > 0 {
			m.seed = uint64(int64(v[0].num()))*2654435761 + 1
		}
		return awkNum(0), nil
	case "atan2":
		return awkNum(math.Atan2(v[0].num(), v[1].num())), nil
	}
	f := map[string]func(float64) float64{"int": math.Trunc, "sin": math.Sin, "cos": math.Cos, "exp": math.Exp, "log": math.Log, "sqrt": math.Sqrt}[n.text]
	return awkNum(f(v[0].num())), nil
}

func (m *awkMachine) splitCall(n *awkNode, s string) (awkValue, error) {
	if n.kids[1].op != "var" {
		return awkValue{}, errors.New("split needs the name of an array")
	}
	var parts []string
	var err error
	switch {
	case len(n.kids) < 3:
		parts, err = m.splitString(s, m.vars["FS"].s)
	case n.kids[2].op == "re":
		if s != "" {
			parts = n.kids[2].re.Split(s, -1)
		}
	default:
		var sep awkValue
		if sep, err = m.eval(n.kids[2]); err == nil {
			parts, err = m.splitString(s, sep.str("%.6g"))
		}
	}
	if err != nil {
		return awkValue{}, err
	}
	a := m.array(n.kids[1].text)
	clear(a)
	for i, p := range parts {
		if err := m.store(a, strconv.Itoa(i+1), awkInput(p)); err != nil {
			return awkValue{}, err
		}
	}
	return awkNum(float64(len(parts))), nil
}

func (m *awkMachine) substitute(n *awkNode, repl string) (awkValue, error) {
	re, err := m.pattern(n.kids[0])
	if err != nil {
		return awkValue{}, err
	}
	target := &awkNode{op: "field", kids: []*awkNode{{op: "num"}}}
	if len(n.kids) > 2 {
		target = n.kids[2]
	}
	old, err := m.eval(target)
	if err != nil {
		return old, err
	}
	s := old.str(m.vars["CONVFMT"].s)
	limit := 1
	if n.text == "gsub" {
		limit = -1
	}
	matches := re.FindAllStringIndex(s, limit)
	if len(matches) == 0 {
		return awkNum(0), nil
	}
	var b strings.Builder
	at := 0
	for _, loc := range matches {
		b.WriteString(s[at:loc[0]])
		b.WriteString(ampersands(repl, s[loc[0]:loc[1]]))
		at = loc[1]
		if b.Len() > maxSpace {
			return awkValue{}, errLineTooLong
		}
	}
	b.WriteString(s[at:])
	if !assignable(target) {
		return awkNum(float64(len(matches))), nil
	}
	return awkNum(float64(len(matches))), m.assign(target, awkStr(b.String()))
}

// ampersands puts the match in for & in a replacement; \& is a plain one.
func ampersands(repl, match string) string {
	if !strings.Contains(repl, "&") {
		return strings.ReplaceAll(repl, `\\`, `\`)
	}
	var b strings.Builder
	for i := 0; i < len(repl); i++ {
		switch {
		case repl[i] == '\\' && i+1 < len(repl) && (repl[i+1] == '&' || repl[i+1] == '\\'):
			i++
			b.WriteByte(repl[i])
		case repl[i] == '&':
			b.WriteString(match)
		default:
			b.WriteByte(repl[i])
		}
	}
	return b.String()
}

func (m *awkMachine) gensub(n *awkNode, repl, how string) (awkValue, error) {
	re, err := m.pattern(n.kids[0])
	if err != nil {
		return awkValue{}, err
	}
	s := m.fields[0]
	if len(n.kids) > 3 {
		v, err := m.eval(n.kids[3])
		if err != nil {
			return v, err
		}
		s = v.str(m.vars["CONVFMT"].s)
	}
	pieces, err := parseReplacement(repl, re.NumSubexp())
	if err != nil {
		return awkValue{}, err
	}
	c := &sedCommand{re: re, repl: pieces, global: strings.HasPrefix(strings.ToLower(how), "g")}
	c.nth, _ = strconv.Atoi(how)
	out, _ := c.replace(s)
	return awkStr(out), nil
}

func formatAwk(format string, values []awkValue, convert string) (string, error) {
	var b strings.Builder
	next := func() awkValue {
		if len(values) == 0 {
			return awkValue{}
		}
		v := values[0]
		values = values[1:]
		return v
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i+1 < len(format) && format[i+1] == '%' {
			b.WriteByte('%')
			i++
			continue
		}
		d, n, err := parseDirective(format[i+1:], func() int { return int(max(min(next().num(), maxWidth), -maxWidth)) })
		if err != nil {
			return b.String(), err
		}
		i += n
		v := next()
		switch d.verb {
		case 's':
			b.WriteString(d.format(v.str(convert)))
		case 'c':
			s := v.str(convert)
			if v.isNum && !v.isStr {
				s = string(rune(v.n))
			} else if s != "" {
				s = string([]rune(s)[:1])
			}
			d.verb = 's'
			b.WriteString(d.format(s))
		case 'd', 'i', 'u', 'x', 'X', 'o':
			f := v.num()
			if math.IsNaN(f) || math.IsInf(f, 0) {
				d.verb = 's'
				b.WriteString(d.format(strconv.FormatFloat(f, 'g', -1, 64)))
				break
			}
			b.WriteString(d.format(int64(max(min(f, 9.2e18), -9.2e18))))
		case 'f', 'F', 'e', 'E', 'g', 'G':
			if strings.IndexByte("gG", d.verb) >= 0 && d.precision < 0 {
				d.precision = 6
			}
			b.WriteString(d.format(v.num()))
		default:
			return b.String(), fmt.Errorf("unknown format %%%c", d.verb)
		}
		if b.Len() > maxSpace {
			return b.String(), errLineTooLong
		}
	}
	return b.String(), nil
}
