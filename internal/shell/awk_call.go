package shell

import (
	"errors"
	"regexp"
)

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
