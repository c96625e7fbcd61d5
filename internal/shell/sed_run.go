package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// sedMachine runs a script over its input.
type sedMachine struct {
	ctx   context.Context
	env   Env
	prog  []*sedCommand
	quiet bool
	out   *bufio.Writer

	input  []*lineReader
	next   []byte // the line after the current one, once it was asked for
	ahead  bool   // next holds it
	failed error  // why it could not be read
	n      int
	space  string
	hold   string
	append []string
	exit   int
	done   bool
	steps  int
}

var errSedQuit = errors.New("quit")

func (m *sedMachine) files(args, names []string) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, n := range names {
		r, err := m.env.open(n)
		if err != nil {
			code = m.env.fail(args, "can't read %s: %s", n, errText(err))
			continue
		}
		defer r.Close()
		m.input = append(m.input, newLines(m.ctx, r))
	}
	for !m.done && m.more() {
		err := m.read()
		if err == nil {
			err = m.cycle()
		}
		if errors.Is(err, errSedQuit) {
			break
		}
		if err != nil {
			if m.ctx.Err() != nil {
				return 130
			}
			return m.env.fail(args, "%s", errText(err))
		}
	}
	if m.failed != nil {
		return m.env.fail(args, "%s", errText(m.failed))
	}
	return code
}

// more reports whether there is another line; it reads ahead only when asked, so
// that lines from a keyboard are answered one by one.
func (m *sedMachine) more() bool {
	for !m.ahead && m.failed == nil && len(m.input) > 0 {
		line, _, err := m.input[0].next()
		switch {
		case err == nil:
			m.next, m.ahead = append(m.next[:0], line...), true
		case errors.Is(err, io.EOF):
			m.input = m.input[1:]
		default:
			m.failed = err
		}
	}
	return m.ahead
}

// read makes the next line the current one; more has to be true.
func (m *sedMachine) read() error {
	m.space, m.ahead = string(m.next), false
	m.n++
	return m.ctx.Err()
}

func (m *sedMachine) print(s string) error {
	m.out.WriteString(s)
	return m.out.WriteByte('\n')
}

// finish ends a cycle: the pattern space and what a queued are written.
func (m *sedMachine) finish() error {
	if !m.quiet {
		if err := m.print(m.space); err != nil {
			return err
		}
	}
	return m.flushAppended()
}

func (m *sedMachine) flushAppended() error {
	for _, t := range m.append {
		if err := m.print(t); err != nil {
			return err
		}
	}
	m.append = nil
	return nil
}

func (m *sedMachine) matches(a sedAddress) bool {
	switch a.kind {
	case "line":
		return m.n == a.n
	case "last":
		return !m.more()
	case "re":
		return a.re.MatchString(m.space)
	case "step":
		return a.step <= 0 && m.n == a.n || a.step > 0 && m.n >= a.n && (m.n-a.n)%a.step == 0
	}
	return false
}

func (m *sedMachine) selects(c *sedCommand) bool {
	if c.a.kind == "" {
		return true
	}
	if c.b.kind == "" {
		return m.matches(c.a)
	}
	if c.active {
		switch c.b.kind {
		case "line", "plus":
			if m.n >= c.endLine {
				c.active = false
			}
			return m.n <= c.endLine
		default:
			c.active = !m.matches(c.b)
		}
		return true
	}
	if !m.matches(c.a) && !(c.a.kind == "line" && c.a.n == 0 && m.n == 1) {
		return false
	}
	switch c.b.kind {
	case "line":
		c.endLine = c.b.n
		c.active = c.endLine > m.n
	case "plus":
		c.endLine = m.n + c.b.n
		c.active = c.b.n > 0
	case "last":
		c.active = m.more()
	default:
		c.active = true
	}
	return true
}

// cycle runs the script once; errSedQuit ends the program.
func (m *sedMachine) cycle() error {
	replaced := false
restart:
	for pc := 0; pc < len(m.prog); pc++ {
		if m.steps++; m.steps%1024 == 0 && m.ctx.Err() != nil {
			return m.ctx.Err()
		}
		if len(m.space)+len(m.hold) > maxSpace {
			return errLineTooLong
		}
		c := m.prog[pc]
		if m.selects(c) == c.invert {
			if c.name == '{' {
				pc = c.target - 1
			}
			continue
		}
		switch c.name {
		case 'd':
			return m.flushAppended()
		case 'D':
			first, rest, more := strings.Cut(m.space, "\n")
			_ = first
			if !more {
				return m.flushAppended()
			}
			m.space = rest
			if err := m.flushAppended(); err != nil {
				return err
			}
			goto restart
		case 'p':
			if err := m.print(m.space); err != nil {
				return err
			}
		case 'P':
			first, _, _ := strings.Cut(m.space, "\n")
			if err := m.print(first); err != nil {
				return err
			}
		case '=':
			fmt.Fprintln(m.out, m.n)
		case 'l':
			m.print(strings.Trim(fmt.Sprintf("%q", m.space), `"`) + "$")
		case 'n':
			if !m.more() {
				m.done = true
				return m.finish()
			}
			if err := m.finish(); err != nil {
				return err
			}
			if err := m.read(); err != nil {
				return err
			}
		case 'N':
			if !m.more() {
				m.done = true
				return m.finish()
			}
			before := m.space
			if err := m.read(); err != nil {
				return err
			}
			m.space = before + "\n" + m.space
		case 'g':
			m.space = m.hold
		case 'G':
			m.space += "\n" + m.hold
		case 'h':
			m.hold = m.space
		case 'H':
			m.hold += "\n" + m.space
		case 'x':
			m.space, m.hold = m.hold, m.space
		case 'a':
			if len(m.append) > 10000 {
				return errTooMuch
			}
			m.append = append(m.append, c.text)
		case 'i':
			m.print(c.text)
		case 'c':
			if c.b.kind == "" || !c.active {
				m.print(c.text)
			}
			return m.flushAppended()
		case 'q', 'Q':
			m.exit = c.nth
			if c.name == 'q' {
				if err := m.finish(); err != nil {
					return err
				}
			}
			return errSedQuit
		case 'y':
			m.space = strings.Map(func(r rune) rune {
				if to, ok := c.y[r]; ok {
					return to
				}
				return r
			}, m.space)
		case 's':
			if s, ok := c.replace(m.space); ok {
				m.space, replaced = s, true
				if c.print {
					if err := m.print(s); err != nil {
						return err
					}
				}
			}
		case 'b':
			pc = c.target - 1
		case 't', 'T':
			if replaced == (c.name == 't') {
				pc = c.target - 1
			}
			replaced = false
		}
	}
	return m.finish()
}

// replace is the s command.
func (c *sedCommand) replace(s string) (string, bool) {
	nth := max(c.nth, 1)
	limit := nth
	if c.global {
		limit = -1
	}
	matches := c.re.FindAllStringSubmatchIndex(s, limit)
	if len(matches) < nth {
		return s, false
	}
	var b strings.Builder
	at := 0
	for i, m := range matches {
		if i+1 < nth {
			continue
		}
		b.WriteString(s[at:m[0]])
		c.expand(&b, s, m)
		at = m[1]
		if b.Len() > maxSpace {
			break
		}
	}
	b.WriteString(s[at:])
	return b.String(), true
}

func (c *sedCommand) expand(b *strings.Builder, s string, m []int) {
	once := byte(0)
	for _, p := range c.repl {
		text := p.text
		if p.group >= 0 {
			if text = ""; m[2*p.group] >= 0 {
				text = s[m[2*p.group]:m[2*p.group+1]]
			}
		}
		switch p.fold {
		case 'U':
			text = strings.ToUpper(text)
		case 'L':
			text = strings.ToLower(text)
		case 'u', 'l':
			if once != p.fold && text != "" {
				first := string([]rune(text)[:1])
				rest := text[len(first):]
				text = pick(p.fold == 'u', strings.ToUpper(first), strings.ToLower(first)) + rest
				once = p.fold
			}
		}
		b.WriteString(text)
	}
}
