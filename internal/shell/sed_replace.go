package shell

import (
	"errors"
	"fmt"
	"strings"
)

func (p *sedParser) textArgument(c *sedCommand) error {
	p.skip(" \t")
	if p.peek() == '\\' {
		p.i++
		p.skip(" \t")
		if p.peek() == '\n' {
			p.i++
		}
	}
	var b strings.Builder
	for p.i < len(p.s) && p.s[p.i] != '\n' {
		if p.s[p.i] == '\\' && p.i+1 < len(p.s) {
			p.i++
			if p.s[p.i] == 't' {
				b.WriteByte('\t')
				p.i++
				continue
			}
		}
		b.WriteByte(p.s[p.i])
		p.i++
	}
	if b.Len() == 0 {
		return fmt.Errorf("expected \\ after `a', `c' or `i'")
	}
	c.text = b.String()
	return nil
}

func (p *sedParser) substitute(c *sedCommand) error {
	if p.i >= len(p.s) || p.s[p.i] == '\n' || p.s[p.i] == '\\' {
		return errors.New("unterminated `s' command")
	}
	d := p.s[p.i]
	expr, err := p.delimited(d, true)
	if err != nil {
		return errors.New("unterminated `s' command")
	}
	p.i--
	repl, err := p.delimited(d, false)
	if err != nil {
		return errors.New("unterminated `s' command")
	}
	fold := false
flags:
	for p.i < len(p.s) {
		switch f := p.s[p.i]; {
		case f == 'g':
			c.global = true
		case f == 'p':
			c.print = true
		case f == 'i' || f == 'I':
			fold = true
		case f == 'm' || f == 'M':
		case f >= '1' && f <= '9':
			c.nth = p.number()
			continue
		case strings.IndexByte(" \t;\n}#", f) >= 0:
			break flags
		default:
			return errors.New("unknown option to `s'")
		}
		p.i++
	}
	if c.re, err = p.regex(expr, fold); err != nil {
		return err
	}
	c.repl, err = parseReplacement(repl, c.re.NumSubexp())
	return err
}

func parseReplacement(s string, groups int) ([]sedPiece, error) {
	var out []sedPiece
	var b strings.Builder
	fold := byte(0)
	flush := func() {
		if b.Len() > 0 {
			out = append(out, sedPiece{b.String(), -1, fold})
			b.Reset()
		}
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '&':
			flush()
			out = append(out, sedPiece{"", 0, fold})
		case s[i] == '\\' && i+1 < len(s):
			i++
			switch e := s[i]; {
			case e >= '0' && e <= '9':
				if int(e-'0') > groups {
					return nil, fmt.Errorf("invalid reference \\%c on `s' command's RHS", e)
				}
				flush()
				out = append(out, sedPiece{"", int(e - '0'), fold})
			case e == 'n':
				b.WriteByte('\n')
			case e == 't':
				b.WriteByte('\t')
			case e == 'U' || e == 'L' || e == 'E' || e == 'u' || e == 'l':
				flush()
				fold = e
				if e == 'E' {
					fold = 0
				}
			default:
				b.WriteByte(e)
			}
		default:
			b.WriteByte(s[i])
		}
	}
	flush()
	return out, nil
}
