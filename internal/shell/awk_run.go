package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// awkValue is a number, a string, or input that looks like a number (both).
type awkValue struct {
	s     string
	n     float64
	isNum bool // n counts
	isStr bool // s counts; with isNum: it came from input
}

func awkNum(n float64) awkValue { return awkValue{n: n, isNum: true} }

func awkStr(s string) awkValue { return awkValue{s: s, isStr: true} }

// awkInput is a field or another string from outside.
func awkInput(s string) awkValue {
	t := strings.TrimSpace(s)
	if t != "" && strings.IndexByte("0123456789+-.", t[0]) >= 0 {
		if f, err := strconv.ParseFloat(t, 64); err == nil && !strings.ContainsAny(t, "xXpPnN_") {
			return awkValue{s: s, n: f, isNum: true, isStr: true}
		}
	}
	return awkStr(s)
}

func (v awkValue) num() float64 {
	if v.isNum {
		return v.n
	}
	return leadingNumber(v.s)
}

func (v awkValue) str(format string) string {
	if v.isStr || !v.isNum {
		return v.s
	}
	if v.n == math.Trunc(v.n) && math.Abs(v.n) < 1e16 {
		return strconv.FormatInt(int64(v.n), 10)
	}
	s, err := formatAwk(format, []awkValue{v}, "%.6g")
	if err != nil {
		return strconv.FormatFloat(v.n, 'g', 6, 64)
	}
	return s
}

func (v awkValue) truth() bool {
	if v.isNum {
		return v.n != 0
	}
	return v.s != ""
}

type awkStop struct {
	kind  string // break, continue, next, exit, return
	value awkValue
}

func (a *awkStop) Error() string { return a.kind }

const (
	awkMaxMemory = 32 << 20
	awkMaxCalls  = 200
)

type awkMachine struct {
	ctx     context.Context
	env     Env
	prog    *awkProgram
	out     *bufio.Writer
	vars    map[string]awkValue
	arrays  map[string]map[string]awkValue
	locals  []map[string]*awkLocal
	fields  []string // fields[0] is the record
	split   bool
	size    int // bytes kept in arrays, roughly
	steps   int
	cache   map[string]*regexp.Regexp
	outs    map[string]*awkOutput
	seed    uint64
	exit    int
	exiting bool
}

type awkLocal struct {
	v     awkValue
	array map[string]awkValue // nil until used as an array
}

type awkOutput struct {
	w    *bufio.Writer
	f    io.Closer
	pipe *bytes.Buffer
	cmd  string
}

func awk(ctx context.Context, env Env, args []string) int {
	opts, rest, err := getoptFirst(args[1:], "F:v:f:", map[string]string{"field-separator:": "F", "assign:": "v", "file:": "f"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	src := ""
	m := &awkMachine{ctx: ctx, env: env, out: env.output(), arrays: map[string]map[string]awkValue{}, cache: map[string]*regexp.Regexp{}, outs: map[string]*awkOutput{}, seed: 1,
		vars: map[string]awkValue{"FS": awkStr(" "), "OFS": awkStr(" "), "ORS": awkStr("\n"), "RS": awkStr("\n"), "SUBSEP": awkStr("\x1c"), "OFMT": awkStr("%.6g"), "CONVFMT": awkStr("%.6g"), "NR": awkNum(0), "FNR": awkNum(0), "NF": awkNum(0), "RSTART": awkNum(0), "RLENGTH": awkNum(-1), "FILENAME": awkStr("")}}
	given := false
	for _, o := range opts {
		switch o.name {
		case "F":
			fs := unescape(o.value)
			if fs == "t" {
				fs = "\t"
			}
			m.vars["FS"] = awkStr(fs)
		case "v":
			name, v, ok := strings.Cut(o.value, "=")
			if !ok {
				env.fail(args, "'%s' isn't VAR=VALUE", o.value)
				return 2
			}
			m.vars[name] = awkInput(unescape(v))
		case "f":
			text, err := readFile(env.FS, abs(env.Dir, o.value), 64<<10)
			if err != nil {
				env.fail(args, "can't open file %s: %s", o.value, errText(err))
				return 2
			}
			src += string(text) + "\n"
			given = true
		}
	}
	if !given {
		if len(rest) == 0 {
			env.fail(args, "usage: awk [-F SEP] [-v VAR=VALUE] 'PROGRAM' [FILE]...")
			return 2
		}
		src, rest = rest[0], rest[1:]
	}
	if m.prog, err = parseAwk(src); err != nil {
		env.fail(args, "%v", err)
		return 2
	}
	environ := map[string]awkValue{}
	for _, kv := range env.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		environ[k] = awkInput(v)
	}
	m.arrays["ENVIRON"] = environ
	argv := map[string]awkValue{"0": awkStr("awk")}
	for i, a := range rest {
		argv[strconv.Itoa(i+1)] = awkInput(a)
	}
	m.arrays["ARGV"], m.vars["ARGC"] = argv, awkNum(float64(len(rest)+1))
	m.setRecord("")
	return m.run(args, rest)
}

// run executes BEGIN, the rules for every record, and END.
func (m *awkMachine) run(args, files []string) int {
	fail := func(err error) int {
		m.out.Flush()
		if m.ctx.Err() != nil {
			return 130
		}
		m.env.fail(args, "%s", errText(err))
		return 2
	}
	for _, b := range m.prog.begin {
		if err := m.top(b); err != nil {
			return fail(err)
		}
	}
	code := 0
	if !m.exiting && (len(m.prog.rules) > 0 || len(m.prog.end) > 0) {
		var names []string
		assign := func(a string) bool {
			name, v, ok := strings.Cut(a, "=")
			if ok && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" {
				m.vars[name] = awkInput(unescape(v))
				return true
			}
			return false
		}
		for _, f := range files {
			if !assign(f) {
				names = append(names, f)
			}
		}
		var failed error
		code = m.env.inputs(m.ctx, args, names, func(name string, r io.Reader) error {
			if m.exiting {
				return nil
			}
			if name == "-" {
				name = ""
			}
			m.vars["FILENAME"], m.vars["FNR"] = awkStr(name), awkNum(0)
			err := m.records(r)
			if errors.Is(err, errTooMuch) || errors.Is(err, errLineTooLong) {
				failed = err
				return nil
			}
			if err != nil {
				failed = err
			}
			return nil
		})
		if failed != nil {
			return fail(failed)
		}
	}
	ended := m.exiting
	m.exiting = false
	if !ended {
		for _, b := range m.prog.end {
			if err := m.top(b); err != nil {
				return fail(err)
			}
			if m.exiting {
				break
			}
		}
	}
	m.out.Flush()
	for _, name := range sortedKeys(m.outs) {
		m.closeOutput(name)
	}
	if m.ctx.Err() != nil {
		return 130
	}
	if m.exit != 0 {
		return m.exit & 255
	}
	return max(code, 0) * 2
}

// top runs a BEGIN or END block or an action.
func (m *awkMachine) top(n *awkNode) error {
	err := m.stmt(n)
	var stop *awkStop
	if errors.As(err, &stop) {
		if stop.kind == "exit" {
			m.exiting = true
		}
		return nil
	}
	return err
}

func (m *awkMachine) selects(r *awkRule) (bool, error) {
	if r.pattern == nil {
		return true, nil
	}
	if !r.active {
		v, err := m.eval(r.pattern)
		if err != nil || !v.truth() {
			return false, err
		}
		if r.until == nil {
			return true, nil
		}
		r.active = true
	}
	v, err := m.eval(r.until)
	if err == nil && v.truth() {
		r.active = false
	}
	return true, err
}
