package shell

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

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
