package shell

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

func (m *awkMachine) records(r io.Reader) error {
	rs := m.vars["RS"].str("")
	lines := newLines(m.ctx, r)
	next := func() (string, bool, error) {
		line, _, err := lines.next()
		if errors.Is(err, io.EOF) {
			return "", false, nil
		}
		return string(line), err == nil, err
	}
	switch {
	case rs == "": // paragraphs
		inner := next
		next = func() (string, bool, error) {
			var b strings.Builder
			for {
				line, ok, err := inner()
				if err != nil || !ok {
					return b.String(), b.Len() > 0, err
				}
				if line == "" && b.Len() > 0 {
					return b.String(), true, nil
				}
				if line != "" {
					if b.Len() > 0 {
						b.WriteByte('\n')
					}
					if b.WriteString(line); b.Len() > maxLine {
						return "", false, errLineTooLong
					}
				}
			}
		}
	case rs != "\n":
		text, err := readAll(m.ctx, r)
		if err != nil {
			return err
		}
		rest := strings.TrimSuffix(string(text), "\n")
		next = func() (string, bool, error) {
			if rest == "" {
				return "", false, nil
			}
			rec, more, _ := strings.Cut(rest, rs[:1])
			rest = more
			return rec, true, nil
		}
	}
	for !m.exiting {
		rec, ok, err := next()
		if err != nil || !ok {
			return err
		}
		m.setRecord(rec)
		m.vars["NR"] = awkNum(m.vars["NR"].num() + 1)
		m.vars["FNR"] = awkNum(m.vars["FNR"].num() + 1)
		for _, rule := range m.prog.rules {
			run, err := m.selects(rule)
			if err != nil {
				return err
			}
			if !run {
				continue
			}
			body := rule.body
			if body == nil {
				body = &awkNode{op: "print"}
			}
			err = m.stmt(body)
			var stop *awkStop
			if errors.As(err, &stop) {
				if stop.kind == "exit" {
					m.exiting = true
				}
				break
			}
			if err != nil {
				return err
			}
		}
		if rs == "\n" && lines.br.Buffered() == 0 {
			m.out.Flush()
		}
	}
	return nil
}

func (m *awkMachine) setRecord(s string) {
	m.fields = append(m.fields[:0], s)
	m.split = false
}

// need splits the record into fields when they are first asked for.
func (m *awkMachine) need() error {
	if m.split {
		return nil
	}
	m.split = true
	parts, err := m.splitString(m.fields[0], m.vars["FS"].str(""))
	if err != nil {
		return err
	}
	m.fields = append(m.fields[:1], parts...)
	m.vars["NF"] = awkNum(float64(len(parts)))
	return nil
}

func (m *awkMachine) splitString(s, sep string) ([]string, error) {
	switch {
	case s == "":
		return nil, nil
	case sep == " ":
		return strings.Fields(s), nil
	case sep == "":
		return strings.Split(s, ""), nil
	case len(sep) == 1 && sep != "|" || sep == "|":
		return strings.Split(s, sep), nil
	}
	re, err := m.regex(sep)
	if err != nil {
		return nil, err
	}
	return re.Split(s, -1), nil
}

func (m *awkMachine) regex(s string) (*regexp.Regexp, error) {
	if re, ok := m.cache[s]; ok {
		return re, nil
	}
	re, err := compileRegex(s, true, false, false)
	if err == nil {
		if len(m.cache) > 500 {
			clear(m.cache)
		}
		m.cache[s] = re
	}
	return re, err
}

// rebuild joins the fields into the record again.
func (m *awkMachine) rebuild() {
	m.fields[0] = strings.Join(m.fields[1:], m.vars["OFS"].str("%.6g"))
}

// output finds or opens what a print is redirected to.
func (m *awkMachine) output(kind, name string) (*bufio.Writer, error) {
	switch {
	case kind == "":
		return m.out, nil
	case kind != "|" && name == "/dev/stdout":
		return m.out, nil
	}
	if o, ok := m.outs[name]; ok {
		return o.w, nil
	}
	if len(m.outs) > 16 {
		return nil, errors.New("too many open files")
	}
	o := &awkOutput{}
	switch {
	case kind == "|":
		o.pipe, o.cmd = &bytes.Buffer{}, name
		o.w = bufio.NewWriter(&limitedBuffer{b: o.pipe, left: maxHeld})
	case name == "/dev/stderr":
		o.w = bufio.NewWriterSize(m.env.Err, 16)
	default:
		mode := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if kind == ">>" {
			mode = os.O_WRONLY | os.O_CREATE | os.O_APPEND
		}
		f, err := m.env.FS.OpenFile(abs(m.env.Dir, name), mode, 0o644)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", name, errText(err))
		}
		o.f, o.w = f, bufio.NewWriter(f)
	}
	m.outs[name] = o
	return o.w, nil
}

func (m *awkMachine) closeOutput(name string) int {
	o, ok := m.outs[name]
	if !ok {
		return -1
	}
	delete(m.outs, name)
	o.w.Flush()
	if o.f != nil {
		o.f.Close()
	}
	if o.pipe == nil {
		return 0
	}
	m.out.Flush()
	sub := m.env
	sub.In = o.pipe
	return m.env.Run(m.ctx, sub, []string{"sh", "-c", o.cmd})
}
