package shell

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

func (m *awkMachine) step() error {
	if m.steps++; m.steps%(paceEvery*paceSteps) == 0 {
		return charge(m.ctx, paceEvery)
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
