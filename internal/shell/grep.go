package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

type grepper struct {
	re            *regexp.Regexp
	invert        bool
	number, only  bool
	count, list   bool
	without       bool
	quiet, names  bool
	color         bool
	before, after int
	limit         int
	selected      bool
	out           io.Writer
}

func grep(ctx context.Context, env Env, args []string) int {
	opts, rest, err := getopt(args[1:], "ivncoEFGPqrRwxlLhHsA:B:C:e:m:f:az", map[string]string{
		"ignore-case": "i", "invert-match": "v", "line-number": "n", "count": "c", "only-matching": "o", "extended-regexp": "E", "fixed-strings": "F",
		"quiet": "q", "silent": "q", "recursive": "r", "word-regexp": "w", "line-regexp": "x", "files-with-matches": "l", "files-without-match": "L",
		"no-filename": "h", "with-filename": "H", "after-context:": "A", "before-context:": "B", "context:": "C", "regexp:": "e", "max-count:": "m",
		"color": "K", "color:": "K", "colour": "K", "include:": "I", "line-buffered": "-", "perl-regexp": "P", "no-messages": "s",
	})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	var patterns []string
	for _, o := range opts {
		switch o.name {
		case "e":
			patterns = append(patterns, strings.Split(o.value, "\n")...)
		case "f":
			text, err := readFile(env.FS, abs(env.Dir, o.value), 64<<10)
			if err != nil {
				env.fail(args, "%s: %s", o.value, errText(err))
				return 2
			}
			patterns = append(patterns, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
		}
	}
	if !f["e"] && !f["f"] {
		if len(rest) == 0 {
			env.fail(args, "usage: grep [OPTION]... PATTERN [FILE]...")
			return 2
		}
		patterns, rest = strings.Split(rest[0], "\n"), rest[1:]
	}
	re, err := grepRegex(patterns, f["E"] || f["P"] || args[0] == "egrep", f["F"] || args[0] == "fgrep", f)
	if err != nil {
		env.fail(args, "%v", err)
		return 2
	}
	number := func(name, def string) int {
		n, err := strconv.Atoi(value(opts, name, def))
		if err != nil || n < 0 {
			return 0
		}
		return min(n, 100000)
	}
	color := value(opts, "K", "never")
	out := env.output()
	defer out.Flush()
	g := &grepper{
		re: re, invert: f["v"], number: f["n"], only: f["o"], count: f["c"], list: f["l"], without: f["L"], quiet: f["q"],
		color:  f["K"] && color == "always" || env.TTY && color != "never" || env.TTY && !f["K"],
		before: number("B", value(opts, "C", "0")), after: number("A", value(opts, "C", "0")), limit: number("m", "1000000000"), out: out,
	}
	if f["m"] {
		g.limit, _ = strconv.Atoi(value(opts, "m", "0"))
	} else {
		g.limit = 1 << 40
	}
	recursive := f["r"] || f["R"]
	if recursive && len(rest) == 0 {
		rest = []string{"."}
	}
	g.names = (len(rest) > 1 || recursive || f["H"]) && !f["h"]
	search := func(name string, r io.Reader) error {
		lines := newLines(ctx, r)
		return g.file(name, lines, func() {
			if lines.br.Buffered() == 0 {
				out.Flush()
			}
		})
	}
	code := 0
	if recursive {
		code = env.grepTree(ctx, args, rest, value(opts, "I", ""), search)
	} else {
		code = env.inputs(ctx, args, rest, search)
	}
	switch {
	case g.quiet && g.selected, g.selected && code == 0:
		return 0
	case code != 0 && !f["s"]:
		return 2
	}
	return 1
}

func grepRegex(patterns []string, extended, fixed bool, f map[string]bool) (*regexp.Regexp, error) {
	var parts []string
	for _, p := range patterns {
		re, err := compileRegex(p, extended, fixed, false)
		if err != nil {
			return nil, err
		}
		parts = append(parts, "(?:"+re.String()+")")
	}
	s := strings.Join(parts, "|")
	if f["w"] {
		s = `\b(?:` + s + `)\b`
	}
	if f["x"] {
		s = `^(?:` + s + `)$`
	}
	if f["i"] {
		s = "(?i)" + s
	}
	re, err := regexp.Compile(s)
	if err == nil {
		re.Longest()
	}
	return re, err
}

func (e Env) grepTree(ctx context.Context, args, roots []string, include string, search func(string, io.Reader) error) int {
	code := 0
	for _, root := range roots {
		base := abs(e.Dir, root)
		err := walk(ctx, e.FS, base, 0, func(p string, info fs.FileInfo, _ int) error {
			if !info.Mode().IsRegular() || include != "" && !globMatch(include, path.Base(p)) {
				return nil
			}
			shown := root
			if p != base {
				shown = strings.TrimSuffix(root, "/") + strings.TrimPrefix(p, strings.TrimSuffix(base, "/"))
			}
			r, err := e.open(p)
			if err != nil {
				return nil
			}
			defer r.Close()
			if err := search(shown, r); err != nil && !errors.Is(err, io.EOF) {
				code = e.fail(args, "%s: %s", shown, errText(err))
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			code = e.fail(args, "%s: %s", root, errText(err))
		}
	}
	return code
}

// file searches one file; idle is called after each line.
func (g *grepper) file(name string, lines *lineReader, idle func()) error {
	if name == "-" {
		name = "(standard input)"
	}
	n, found, trailing, lastShown := 0, 0, 0, 0
	var before [][]byte
	err := lines.each(func(line []byte) error {
		n++
		defer idle()
		if g.re.Match(line) == g.invert {
			if trailing > 0 {
				trailing--
				g.print(name, n, line, false)
				lastShown = n
			} else if g.before > 0 {
				before = append(before, bytes.Clone(line))
				if len(before) > g.before {
					before = before[1:]
				}
			}
			return nil
		}
		found++
		g.selected = g.selected || !g.without
		switch {
		case g.quiet:
			return io.EOF
		case g.list || g.without:
			return io.EOF
		case g.count:
		default:
			if (g.before > 0 || g.after > 0) && lastShown > 0 && n-len(before) > lastShown+1 && !g.only {
				fmt.Fprintln(g.out, "--")
			}
			for i, l := range before {
				g.print(name, n-len(before)+i, l, false)
			}
			before = nil
			g.print(name, n, line, true)
			lastShown, trailing = n, g.after
		}
		if found >= g.limit {
			return io.EOF
		}
		return nil
	})
	switch {
	case g.quiet:
	case g.list && found > 0:
		fmt.Fprintln(g.out, name)
	case g.without && found == 0:
		g.selected = true
		fmt.Fprintln(g.out, name)
	case g.count:
		if g.names {
			fmt.Fprintf(g.out, "%s:", name)
		}
		fmt.Fprintln(g.out, found)
	}
	return err
}

func (g *grepper) print(name string, n int, line []byte, match bool) {
	sep := "-"
	if match {
		sep = ":"
	}
	prefix := ""
	paint := func(code, s string) string {
		if g.color {
			return "\x1b[" + code + "m" + s + "\x1b[0m"
		}
		return s
	}
	if g.names {
		prefix += paint("35", name) + paint("36", sep)
	}
	if g.number {
		prefix += paint("32", strconv.Itoa(n)) + paint("36", sep)
	}
	switch {
	case match && g.only && !g.invert:
		for _, m := range g.re.FindAll(line, -1) {
			if len(m) > 0 {
				fmt.Fprintf(g.out, "%s%s\n", prefix, paint("1;31", string(m)))
			}
		}
	case match && g.only:
	case match && g.color && !g.invert:
		colored := g.re.ReplaceAllFunc(line, func(m []byte) []byte {
			if len(m) == 0 {
				return m
			}
			return []byte(paint("1;31", string(m)))
		})
		fmt.Fprintf(g.out, "%s%s\n", prefix, colored)
	default:
		fmt.Fprintf(g.out, "%s%s\n", prefix, line)
	}
}
