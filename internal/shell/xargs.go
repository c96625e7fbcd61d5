package shell

import (
	"context"
	"strconv"
	"strings"
)

func xargs(ctx context.Context, env Env, args []string) int {
	opts, cmd, err := getoptFirst(args[1:], "n:I:r0P:tL:d:", map[string]string{"no-run-if-empty": "r", "null": "0", "max-args:": "n", "replace:": "I"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	if len(cmd) == 0 {
		cmd = []string{"echo"}
	}
	f := flags(opts)
	in, err := readAll(ctx, env.In)
	if err != nil {
		return env.fail(args, "%v", err)
	}
	var items []string
	repl := value(opts, "I", "")
	delim := value(opts, "d", "")
	switch {
	case f["0"]:
		items = splitNonEmpty(string(in), "\x00")
	case delim != "":
		items = splitNonEmpty(strings.TrimSuffix(string(in), "\n"), unescape(delim))
	case repl != "" || f["L"]:
		for _, l := range splitNonEmpty(string(in), "\n") {
			if l = strings.TrimSpace(l); l != "" {
				items = append(items, l)
			}
		}
	default:
		items = quotedFields(string(in))
	}
	if repl != "" {
		code := 0
		for _, it := range items {
			call := make([]string, len(cmd))
			for i, a := range cmd {
				call[i] = strings.ReplaceAll(a, repl, it)
			}
			if c := env.runChild(ctx, call); c != 0 {
				code = 123
			}
			if ctx.Err() != nil {
				return 130
			}
		}
		return code
	}
	n := 5000
	if s := value(opts, "n", value(opts, "L", "")); s != "" {
		if n, err = strconv.Atoi(s); err != nil || n < 1 {
			return env.fail(args, "invalid number '%s'", s)
		}
	}
	if len(items) == 0 {
		if f["r"] {
			return 0
		}
		return env.runChild(ctx, cmd)
	}
	code := 0
	for len(items) > 0 && ctx.Err() == nil {
		k := min(n, len(items))
		if c := env.runChild(ctx, append(cmd[:len(cmd):len(cmd)], items[:k]...)); c == 127 {
			return 127
		} else if c != 0 {
			code = 123
		}
		items = items[k:]
	}
	return code
}

// runChild runs a command whose input is empty.
func (e Env) runChild(ctx context.Context, argv []string) int {
	e.In = strings.NewReader("")
	return e.Run(ctx, e, argv)
}

func splitNonEmpty(s, sep string) []string {
	var out []string
	for _, p := range strings.Split(s, sep) {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

// quotedFields splits at white space; quotes and backslashes keep it.
func quotedFields(s string) []string {
	var out []string
	var b strings.Builder
	quote, started := byte(0), false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				b.WriteByte(c)
			}
		case c == '\'' || c == '"':
			quote, started = c, true
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
			started = true
		case c == ' ' || c == '\t' || c == '\n':
			if started {
				out = append(out, b.String())
				b.Reset()
				started = false
			}
		default:
			b.WriteByte(c)
			started = true
		}
	}
	if started {
		out = append(out, b.String())
	}
	return out
}
