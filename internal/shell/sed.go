package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

const maxSpace = 256 << 10 // bytes of the pattern or hold space, and of one string of awk

func sed(ctx context.Context, env Env, args []string) int {
	var scripts []string
	inPlace := false
	var rest []string
	for i := 1; i < len(args); i++ { // -i takes a suffix only when joined
		if a := args[i]; strings.HasPrefix(a, "-i") && !strings.HasPrefix(a, "--") {
			inPlace = true
			continue
		}
		rest = append(rest, args[i])
	}
	opts, names, err := getopt(rest, "nEre:f:zsu", map[string]string{"quiet": "n", "silent": "n", "regexp-extended": "E", "expression:": "e", "file:": "f", "in-place": "i"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	inPlace = inPlace || f["i"]
	for _, o := range opts {
		switch o.name {
		case "e":
			scripts = append(scripts, o.value)
		case "f":
			text, err := readFile(env.FS, abs(env.Dir, o.value), 64<<10)
			if err != nil {
				return env.fail(args, "couldn't open file %s: %s", o.value, errText(err))
			}
			scripts = append(scripts, strings.TrimSuffix(string(text), "\n"))
		}
	}
	if len(scripts) == 0 {
		if len(names) == 0 {
			return env.fail(args, "usage: sed [-nEi] SCRIPT [FILE]...")
		}
		scripts, names = names[:1], names[1:]
	}
	prog, err := parseSed(strings.Join(scripts, "\n"), f["E"] || f["r"])
	if err != nil {
		return env.fail(args, "-e expression #1: %v", err)
	}
	if !inPlace {
		m := &sedMachine{ctx: ctx, prog: prog, quiet: f["n"], out: env.output(), env: env}
		code := m.files(args, names)
		m.out.Flush()
		return max(code, m.exit)
	}
	code := 0
	for _, n := range names {
		var buf bytes.Buffer
		m := &sedMachine{ctx: ctx, prog: prog, quiet: f["n"], out: bufio.NewWriter(&limitedBuffer{b: &buf, left: maxHeld}), env: env}
		if c := m.files(args, []string{n}); c != 0 {
			code = c
			continue
		}
		m.out.Flush()
		file, err := env.FS.OpenFile(abs(env.Dir, n), os.O_WRONLY|os.O_TRUNC, 0o644)
		if err == nil {
			_, err = file.Write(buf.Bytes())
			if cerr := file.Close(); err == nil {
				err = cerr
			}
		}
		if err != nil {
			code = env.fail(args, "%s: %s", n, errText(err))
		}
		code = max(code, m.exit)
	}
	return code
}

// sedAddress selects lines: a number, $, a regular expression, first~step, or +n after the first.
type sedAddress struct {
	kind string // "", "line", "last", "re", "step", "plus"
	n    int
	step int
	re   *regexp.Regexp
}

type sedCommand struct {
	a, b    sedAddress
	invert  bool
	name    byte
	text    string // a, i, c; label of b, t; file of w
	re      *regexp.Regexp
	repl    []sedPiece
	global  bool
	print   bool
	nth     int
	y       map[rune]rune
	target  int // of b, t and { : index of the command after the block
	active  bool
	endLine int
}

// sedPiece is a piece of a replacement: text, or group number with a case change before it.
type sedPiece struct {
	text  string
	group int // -1: text
	fold  byte
}

type sedParser struct {
	s        string
	i        int
	extended bool
	last     *regexp.Regexp
}

func parseSed(script string, extended bool) ([]*sedCommand, error) {
	if len(script) > 64<<10 {
		return nil, errors.New("script too long")
	}
	p := &sedParser{s: script, extended: extended}
	var prog []*sedCommand
	var blocks []int
	labels := map[string]int{}
	for {
		p.skip(" \t\n;")
		if p.i >= len(p.s) {
			break
		}
		if p.s[p.i] == '#' {
			p.until("\n")
			continue
		}
		c := &sedCommand{}
		var err error
		if c.a, err = p.address(); err != nil {
			return nil, err
		}
		p.skip(" \t")
		if c.a.kind != "" && p.peek() == ',' {
			p.i++
			p.skip(" \t")
			if c.b, err = p.address(); err != nil {
				return nil, err
			}
			if c.b.kind == "" {
				return nil, errors.New("unexpected `,'")
			}
		}
		p.skip(" \t")
		for p.peek() == '!' {
			c.invert = true
			p.i++
			p.skip(" \t")
		}
		if p.i >= len(p.s) {
			return nil, errors.New("missing command")
		}
		c.name = p.s[p.i]
		p.i++
		switch c.name {
		case '{':
			blocks = append(blocks, len(prog))
		case '}':
			if len(blocks) == 0 {
				return nil, errors.New("unexpected `}'")
			}
			prog[blocks[len(blocks)-1]].target = len(prog)
			blocks = blocks[:len(blocks)-1]
			if c.a.kind != "" {
				return nil, errors.New("} doesn't want any addresses")
			}
			continue
		case ':':
			p.skip(" ")
			labels[strings.TrimSpace(p.until(";\n"))] = len(prog)
			continue
		default:
			if err := p.command(c); err != nil {
				return nil, err
			}
		}
		prog = append(prog, c)
	}
	if len(blocks) > 0 {
		return nil, errors.New("unmatched `{'")
	}
	for _, c := range prog {
		if c.name != 'b' && c.name != 't' && c.name != 'T' {
			continue
		}
		c.target = len(prog)
		if c.text != "" {
			to, ok := labels[c.text]
			if !ok {
				return nil, fmt.Errorf("can't find label for jump to `%s'", c.text)
			}
			c.target = to
		}
	}
	return prog, nil
}

func (p *sedParser) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *sedParser) skip(set string) {
	for p.i < len(p.s) && strings.IndexByte(set, p.s[p.i]) >= 0 {
		p.i++
	}
}

func (p *sedParser) until(stop string) string {
	start := p.i
	for p.i < len(p.s) && strings.IndexByte(stop, p.s[p.i]) < 0 {
		p.i++
	}
	return p.s[start:p.i]
}

func (p *sedParser) number() int {
	n := 0
	for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
		n = min(n*10+int(p.s[p.i]-'0'), 1<<40)
		p.i++
	}
	return n
}

func (p *sedParser) address() (a sedAddress, err error) {
	switch c := p.peek(); {
	case c >= '0' && c <= '9':
		a.kind, a.n = "line", p.number()
		if p.peek() == '~' {
			p.i++
			a.kind, a.step = "step", p.number()
		}
	case c == '$':
		p.i++
		a.kind = "last"
	case c == '+':
		p.i++
		a.kind, a.n = "plus", p.number()
	case c == '/' || c == '\\':
		if c == '\\' {
			p.i++
		}
		if p.i >= len(p.s) {
			return a, errors.New("unterminated address regex")
		}
		expr, err := p.delimited(p.s[p.i], true)
		if err != nil {
			return a, errors.New("unterminated address regex")
		}
		fold := p.peek() == 'I'
		if fold {
			p.i++
		}
		a.kind = "re"
		a.re, err = p.regex(expr, fold)
		return a, err
	}
	return a, nil
}

// delimited reads up to the next d; p.i is at the opening one and ends at the
// closing one plus 1 when close is set, else on it.
func (p *sedParser) delimited(d byte, last bool) (string, error) {
	if p.i < len(p.s) && p.s[p.i] == d {
		p.i++
	}
	var b strings.Builder
	inBracket := false
	for p.i < len(p.s) {
		c := p.s[p.i]
		switch {
		case c == '\\' && p.i+1 < len(p.s):
			if p.s[p.i+1] == d && d != '|' && d != '+' {
				b.WriteByte(d)
			} else {
				b.WriteString(p.s[p.i : p.i+2])
			}
			p.i += 2
			continue
		case c == '[' && last:
			inBracket = true
		case c == ']':
			inBracket = false
		case c == d && !inBracket:
			p.i++
			return b.String(), nil
		case c == '\n' && last:
			return "", errors.New("unterminated")
		}
		b.WriteByte(c)
		p.i++
	}
	return "", errors.New("unterminated")
}

func (p *sedParser) regex(expr string, fold bool) (*regexp.Regexp, error) {
	if expr == "" {
		if p.last == nil {
			return nil, errors.New("no previous regular expression")
		}
		return p.last, nil
	}
	re, err := compileRegex(expr, p.extended, false, fold)
	if err == nil {
		p.last = re
	}
	return re, err
}

func (p *sedParser) command(c *sedCommand) error {
	end := func() error {
		p.skip(" \t")
		if p.i < len(p.s) && strings.IndexByte(";\n}#", p.s[p.i]) < 0 {
			return errors.New("extra characters after command")
		}
		return nil
	}
	switch c.name {
	case 'd', 'D', 'p', 'P', 'n', 'N', 'g', 'G', 'h', 'H', 'x', '=', 'l':
		return end()
	case 'q', 'Q':
		p.skip(" \t")
		c.nth = p.number()
		return end()
	case 'b', 't', 'T':
		p.skip(" \t")
		c.text = strings.TrimSpace(p.until(";\n}"))
		return nil
	case 'a', 'i', 'c':
		return p.textArgument(c)
	case 's':
		return p.substitute(c)
	case 'y':
		if p.i >= len(p.s) {
			return errors.New("unterminated `y' command")
		}
		d := p.s[p.i]
		from, err := p.delimited(d, false)
		if err == nil {
			p.i-- // delimited expects to be on a delimiter
			var to string
			to, err = p.delimited(d, false)
			a, b := []rune(unescape(from)), []rune(unescape(to))
			if err == nil && len(a) != len(b) {
				return errors.New("strings for `y' command are different lengths")
			}
			c.y = map[rune]rune{}
			for i := range min(len(a), len(b)) {
				c.y[a[i]] = b[i]
			}
		}
		if err != nil {
			return errors.New("unterminated `y' command")
		}
		return end()
	}
	return fmt.Errorf("unknown command: `%c'", c.name)
}
