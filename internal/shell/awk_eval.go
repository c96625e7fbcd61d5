package shell

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func (m *awkMachine) step() error {
	if m.steps++; m.steps%1024 == 0 {
		if m.ctx.Err() != nil {
			return m.ctx.Err()
		}
	}
	return nil
}

func (m *awkMachine) stmt(n *awkNode) error {
	if err := m.step(); err != nil || n == nil {
		return err
	}
	switch n.op {
	case "block":
		for _, k := range n.kids {
			if err := m.stmt(k); err != nil {
				return err
			}
		}
	case "expr":
		_, err := m.eval(n.kids[0])
		return err
	case "print", "printf":
		return m.print(n)
	case "if":
		v, err := m.eval(n.kids[0])
		switch {
		case err != nil:
			return err
		case v.truth():
			return m.stmt(n.kids[1])
		}
		return m.stmt(n.kids[2])
	case "while":
		return m.loop(n.kids[0], nil, n.kids[1], false)
	case "do":
		return m.loop(n.kids[1], nil, n.kids[0], true)
	case "for":
		if err := m.stmt(n.kids[0]); err != nil {
			return err
		}
		return m.loop(n.kids[1], n.kids[2], n.kids[3], false)
	case "forin":
		keys := sortedKeys(m.array(n.text))
		sort.SliceStable(keys, func(i, j int) bool {
			a, aerr := strconv.ParseFloat(keys[i], 64)
			b, berr := strconv.ParseFloat(keys[j], 64)
			return aerr == nil && (berr != nil || a < b)
		})
		for _, k := range keys {
			if _, ok := m.array(n.text)[k]; !ok {
				continue
			}
			if err := m.assign(n.kids[0], awkInput(k)); err != nil {
				return err
			}
			if done, err := loopStop(m.stmt(n.kids[1])); done || err != nil {
				return err
			}
		}
	case "delete":
		if n.kids == nil {
			clear(m.array(n.text))
			return nil
		}
		key, err := m.key(n.kids)
		delete(m.array(n.text), key)
		return err
	case "break", "continue", "next":
		return &awkStop{kind: n.op}
	case "exit", "return":
		stop := &awkStop{kind: n.op}
		if n.kids[0] != nil {
			v, err := m.eval(n.kids[0])
			if err != nil {
				return err
			}
			stop.value = v
			if n.op == "exit" {
				m.exit = int(v.num())
			}
		}
		return stop
	}
	return nil
}

// loopStop tells what the end of a loop's body means for the loop.
func loopStop(err error) (done bool, _ error) {
	var stop *awkStop
	if errors.As(err, &stop) {
		switch stop.kind {
		case "break":
			return true, nil
		case "continue":
			return false, nil
		}
	}
	return err != nil, err
}

func (m *awkMachine) loop(cond, post, body *awkNode, bodyFirst bool) error {
	for first := true; ; first = false {
		if err := m.step(); err != nil {
			return err
		}
		if cond != nil && !(first && bodyFirst) {
			v, err := m.eval(cond)
			if err != nil || !v.truth() {
				return err
			}
		}
		if done, err := loopStop(m.stmt(body)); done || err != nil {
			return err
		}
		if err := m.stmt(post); err != nil {
			return err
		}
	}
}

func (m *awkMachine) print(n *awkNode) error {
	kids := n.kids
	target := ""
	if n.text != "" {
		v, err := m.eval(kids[len(kids)-1])
		if err != nil {
			return err
		}
		target, kids = v.str("%.6g"), kids[:len(kids)-1]
	}
	w, err := m.output(n.text, target)
	if err != nil {
		return err
	}
	var values []awkValue
	for _, k := range kids {
		v, err := m.eval(k)
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	if n.op == "printf" {
		s, err := formatAwk(values[0].str("%.6g"), values[1:], m.vars["CONVFMT"].s)
		if err != nil {
			return err
		}
		_, err = w.WriteString(s)
		return err
	}
	if len(values) == 0 {
		w.WriteString(m.fields[0])
	}
	for i, v := range values {
		if i > 0 {
			w.WriteString(m.vars["OFS"].str("%.6g"))
		}
		w.WriteString(v.str(m.vars["OFMT"].s))
	}
	_, err = w.WriteString(m.vars["ORS"].str("%.6g"))
	if n.text != "" && target == "/dev/stderr" {
		w.Flush()
	}
	return err
}

func (m *awkMachine) local(name string) *awkLocal {
	if n := len(m.locals); n > 0 {
		return m.locals[n-1][name]
	}
	return nil
}

func (m *awkMachine) array(name string) map[string]awkValue {
	if l := m.local(name); l != nil {
		if l.array == nil {
			l.array = map[string]awkValue{}
		}
		return l.array
	}
	a := m.arrays[name]
	if a == nil {
		a = map[string]awkValue{}
		m.arrays[name] = a
	}
	return a
}

func (m *awkMachine) key(kids []*awkNode) (string, error) {
	var parts []string
	for _, k := range kids {
		v, err := m.eval(k)
		if err != nil {
			return "", err
		}
		parts = append(parts, v.str(m.vars["CONVFMT"].s))
	}
	return strings.Join(parts, m.vars["SUBSEP"].s), nil
}

func (m *awkMachine) store(array map[string]awkValue, key string, v awkValue) error {
	if old, ok := array[key]; ok {
		m.size -= len(old.s)
	} else {
		m.size += len(key) + 64
	}
	if m.size += len(v.s); m.size > awkMaxMemory {
		return errTooMuch
	}
	array[key] = v
	return nil
}

func (m *awkMachine) assign(n *awkNode, v awkValue) error {
	if len(v.s) > maxSpace {
		return errLineTooLong
	}
	switch n.op {
	case "var":
		if l := m.local(n.text); l != nil {
			l.v = v
			return nil
		}
		if n.text == "NF" {
			return m.setNF(int(v.num()))
		}
		m.vars[n.text] = v
		return nil
	case "index":
		key, err := m.key(n.kids)
		if err != nil {
			return err
		}
		return m.store(m.array(n.text), key, v)
	case "field":
		i, err := m.fieldIndex(n)
		if err != nil {
			return err
		}
		if i == 0 {
			m.setRecord(v.str(m.vars["CONVFMT"].s))
			return nil
		}
		if err := m.need(); err != nil {
			return err
		}
		for len(m.fields) <= i {
			m.fields = append(m.fields, "")
		}
		m.fields[i] = v.str(m.vars["CONVFMT"].s)
		m.vars["NF"] = awkNum(float64(len(m.fields) - 1))
		m.rebuild()
	}
	return nil
}

func (m *awkMachine) setNF(n int) error {
	if err := m.need(); err != nil {
		return err
	}
	if n < 0 || n > 10000 {
		return errors.New("NF out of range")
	}
	for len(m.fields) <= n {
		m.fields = append(m.fields, "")
	}
	m.fields = m.fields[:n+1]
	m.vars["NF"] = awkNum(float64(n))
	m.rebuild()
	return nil
}

func (m *awkMachine) fieldIndex(n *awkNode) (int, error) {
	v, err := m.eval(n.kids[0])
	if err != nil {
		return 0, err
	}
	i := v.num()
	if i < 0 || i > 10000 || math.IsNaN(i) {
		return 0, fmt.Errorf("field number %v is out of range", v.str("%.6g"))
	}
	return int(i), nil
}

func (m *awkMachine) eval(n *awkNode) (awkValue, error) {
	if err := m.step(); err != nil || n == nil {
		return awkValue{}, err
	}
	switch n.op {
	case "num":
		return awkNum(n.num), nil
	case "str":
		return awkStr(n.text), nil
	case "re":
		return awkBool(n.re.MatchString(m.fields[0])), nil
	case "paren":
		return m.eval(n.kids[0])
	case "group":
		return awkValue{}, errors.New("a list in parentheses isn't a value")
	case "var":
		if l := m.local(n.text); l != nil {
			return l.v, nil
		}
		if n.text == "NF" {
			if err := m.need(); err != nil {
				return awkValue{}, err
			}
		}
		return m.vars[n.text], nil
	case "index":
		key, err := m.key(n.kids)
		if err != nil {
			return awkValue{}, err
		}
		a := m.array(n.text)
		v, ok := a[key]
		if !ok {
			err = m.store(a, key, v)
		}
		return v, err
	case "field":
		i, err := m.fieldIndex(n)
		if err != nil {
			return awkValue{}, err
		}
		if i == 0 {
			return awkInput(m.fields[0]), nil
		}
		if err := m.need(); err != nil {
			return awkValue{}, err
		}
		if i >= len(m.fields) {
			return awkValue{}, nil
		}
		return awkInput(m.fields[i]), nil
	case "in":
		key, err := m.key(n.kids)
		_, ok := m.array(n.text)[key]
		return awkBool(ok), err
	case "assign":
		return m.evalAssign(n)
	case "pre++", "pre--", "post++", "post--":
		old, err := m.eval(n.kids[0])
		if err != nil {
			return old, err
		}
		d := 1.0
		if strings.HasSuffix(n.op, "--") {
			d = -1
		}
		err = m.assign(n.kids[0], awkNum(old.num()+d))
		if strings.HasPrefix(n.op, "pre") {
			return awkNum(old.num() + d), err
		}
		return awkNum(old.num()), err
	case "&&", "||":
		a, err := m.eval(n.kids[0])
		if err != nil || a.truth() == (n.op == "||") {
			return awkBool(a.truth()), err
		}
		b, err := m.eval(n.kids[1])
		return awkBool(b.truth()), err
	case "?:":
		c, err := m.eval(n.kids[0])
		if err != nil {
			return c, err
		}
		return m.eval(n.kids[1+btoi(!c.truth())])
	case "~", "!~":
		a, err := m.eval(n.kids[0])
		if err != nil {
			return a, err
		}
		re, err := m.pattern(n.kids[1])
		if err != nil {
			return a, err
		}
		return awkBool(re.MatchString(a.str("%.6g")) == (n.op == "~")), nil
	case "builtin":
		return m.builtin(n)
	case "call":
		return m.call(n)
	}
	a, err := m.eval(n.kids[0])
	if err != nil {
		return a, err
	}
	switch n.op {
	case "u!":
		return awkBool(!a.truth()), nil
	case "u-":
		return awkNum(-a.num()), nil
	case "u+":
		return awkNum(a.num()), nil
	}
	b, err := m.eval(n.kids[1])
	if err != nil {
		return b, err
	}
	switch n.op {
	case "concat":
		s := a.str(m.vars["CONVFMT"].s) + b.str(m.vars["CONVFMT"].s)
		if len(s) > maxSpace {
			return awkValue{}, errLineTooLong
		}
		return awkStr(s), nil
	case "<", "<=", "==", "!=", ">", ">=":
		c := m.compare(a, b)
		return awkBool(map[string]bool{"<": c < 0, "<=": c <= 0, "==": c == 0, "!=": c != 0, ">": c > 0, ">=": c >= 0}[n.op]), nil
	}
	return arithmetic(n.op, a.num(), b.num())
}

func awkBool(b bool) awkValue { return awkNum(float64(btoi(b))) }

func arithmetic(op string, a, b float64) (awkValue, error) {
	switch op {
	case "+":
		return awkNum(a + b), nil
	case "-":
		return awkNum(a - b), nil
	case "*":
		return awkNum(a * b), nil
	case "/", "%":
		if b == 0 {
			return awkValue{}, errors.New("division by zero")
		}
		if op == "/" {
			return awkNum(a / b), nil
		}
		return awkNum(math.Mod(a, b)), nil
	case "^":
		return awkNum(math.Pow(a, b)), nil
	}
	return awkValue{}, fmt.Errorf("unknown operator %s", op)
}

// compare compares as numbers when both can be numbers, else as strings.
func (m *awkMachine) compare(a, b awkValue) int {
	numeric := func(v awkValue) bool { return v.isNum || !v.isStr }
	if numeric(a) && numeric(b) {
		return compareFloat(a.num(), b.num())
	}
	return strings.Compare(a.str(m.vars["CONVFMT"].s), b.str(m.vars["CONVFMT"].s))
}

func (m *awkMachine) evalAssign(n *awkNode) (awkValue, error) {
	v, err := m.eval(n.kids[1])
	if err != nil {
		return v, err
	}
	if n.text != "" {
		old, err := m.eval(n.kids[0])
		if err != nil {
			return v, err
		}
		if v, err = arithmetic(n.text, old.num(), v.num()); err != nil {
			return v, err
		}
	}
	return v, m.assign(n.kids[0], v)
}

// pattern is the regular expression that an operand stands for.
func (m *awkMachine) pattern(n *awkNode) (*regexp.Regexp, error) {
	if n.op == "re" {
		return n.re, nil
	}
	v, err := m.eval(n)
	if err != nil {
		return nil, err
	}
	return m.regex(v.str("%.6g"))
}

func (m *awkMachine) call(n *awkNode) (awkValue, error) {
	if len(m.locals) >= awkMaxCalls {
		return awkValue{}, errors.New("functions are nested too deeply")
	}
	frame := map[string]*awkLocal{}
	for i, p := range n.f.params {
		l := &awkLocal{}
		if i < len(n.kids) {
			if arg := n.kids[i]; arg.op == "var" && m.isArray(arg.text, n.f, p) {
				l.array = m.array(arg.text)
			} else {
				v, err := m.eval(arg)
				if err != nil {
					return v, err
				}
				l.v = v
			}
		}
		frame[p] = l
	}
	m.locals = append(m.locals, frame)
	err := m.stmt(n.f.body)
	m.locals = m.locals[:len(m.locals)-1]
	var stop *awkStop
	if errors.As(err, &stop) && stop.kind == "return" {
		return stop.value, nil
	}
	return awkValue{}, err
}

// isArray: the variable is an array already, or the function uses it as one.
func (m *awkMachine) isArray(name string, f *awkFunc, param string) bool {
	if l := m.local(name); l != nil {
		return l.array != nil
	}
	if m.arrays[name] != nil {
		return true
	}
	_, scalar := m.vars[name]
	return !scalar && usesArray(f.body, param)
}

func usesArray(n *awkNode, name string) bool {
	if n == nil {
		return false
	}
	if n.text == name && (n.op == "index" || n.op == "forin" || n.op == "in" || n.op == "delete") {
		return true
	}
	for i, k := range n.kids {
		if k != nil && n.op == "builtin" && n.text == "split" && i == 1 && k.op == "var" && k.text == name {
			return true
		}
		if usesArray(k, name) {
			return true
		}
	}
	return false
}

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
