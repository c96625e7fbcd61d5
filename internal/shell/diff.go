package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const maxDiffLines = 20000

func diffCommand(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "uU:rNqbBwi", map[string]string{"unified": "u", "recursive": "r", "new-file": "N", "brief": "q", "color:": "-", "color": "-"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	if len(names) != 2 {
		env.fail(args, "usage: diff [-u] A B")
		return 2
	}
	d := differ{ctx: ctx, env: env, args: args, f: flags(opts)}
	return d.compare(names[0], names[1], true)
}

type differ struct {
	ctx  context.Context
	env  Env
	args []string
	f    map[string]bool
}

func (d differ) compare(a, b string, top bool) int {
	ia, erra := d.env.FS.Stat(abs(d.env.Dir, a))
	ib, errb := d.env.FS.Stat(abs(d.env.Dir, b))
	if a == "-" {
		erra = nil
	}
	if b == "-" {
		errb = nil
	}
	if erra == nil && errb == nil && a != "-" && b != "-" {
		switch {
		case ia.IsDir() && ib.IsDir():
			return d.folders(a, b)
		case ia.IsDir() && top:
			return d.compare(path.Join(a, path.Base(b)), b, false)
		case ib.IsDir() && top:
			return d.compare(a, path.Join(b, path.Base(a)), false)
		}
	}
	la, err := d.lines(a, erra)
	if err != nil {
		d.env.fail(d.args, "%s: %s", a, errText(err))
		return 2
	}
	lb, err := d.lines(b, errb)
	if err != nil {
		d.env.fail(d.args, "%s: %s", b, errText(err))
		return 2
	}
	if slices.Equal(la, lb) {
		return 0
	}
	if d.f["q"] {
		fmt.Fprintf(d.env.Out, "Files %s and %s differ\n", a, b)
		return 1
	}
	if !top {
		fmt.Fprintf(d.env.Out, "diff -u -N %s %s\n", a, b)
	}
	out := d.env.output()
	defer out.Flush()
	d.print(out, a, b, la, lb)
	return 1
}

func (d differ) lines(name string, statErr error) ([]string, error) {
	if statErr != nil && d.f["N"] && errors.Is(statErr, fs.ErrNotExist) {
		return nil, nil
	}
	r, err := d.env.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := readAll(d.ctx, r)
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(b), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) > maxDiffLines {
		return nil, errTooMuch
	}
	return lines, nil
}

func (d differ) folders(a, b string) int {
	names := map[string]int{}
	for i, dir := range []string{a, b} {
		list, err := d.env.FS.ReadDir(abs(d.env.Dir, dir))
		if err != nil {
			d.env.fail(d.args, "%s: %s", dir, errText(err))
			return 2
		}
		for _, e := range list {
			names[e.Name()] |= 1 << i
		}
	}
	code := 0
	for _, n := range sortedKeys(names) {
		if d.ctx.Err() != nil {
			return 130
		}
		if in := names[n]; in != 3 && !d.f["N"] {
			fmt.Fprintf(d.env.Out, "Only in %s: %s\n", pick(in == 1, a, b), n)
			code = max(code, 1)
			continue
		}
		code = max(code, d.compare(path.Join(a, n), path.Join(b, n), false))
	}
	return code
}

// edit is one line of an edit script: ' ' kept, '-' removed, '+' added.
type edit struct {
	op   byte
	text string
}

// editScript finds a shortest edit script (Myers), or a coarse one when the
// texts differ too much for that.
func editScript(a, b []string) []edit {
	var out []edit
	pre := 0
	for pre < len(a) && pre < len(b) && a[pre] == b[pre] {
		out = append(out, edit{' ', a[pre]})
		pre++
	}
	suf := 0
	for suf < len(a)-pre && suf < len(b)-pre && a[len(a)-1-suf] == b[len(b)-1-suf] {
		suf++
	}
	out = append(out, myers(a[pre:len(a)-suf], b[pre:len(b)-suf])...)
	for _, l := range a[len(a)-suf:] {
		out = append(out, edit{' ', l})
	}
	return out
}

func myers(a, b []string) []edit {
	const maxDistance = 1500
	n, m := len(a), len(b)
	v := map[int]int{1: 0}
	var trace []map[int]int
	for d := 0; d <= n+m; d++ {
		if d > maxDistance {
			break
		}
		before := make(map[int]int, 2*d+3)
		for k := -d - 1; k <= d+1; k++ {
			before[k] = v[k]
		}
		trace = append(trace, before)
		for k := -d; k <= d; k += 2 {
			x := 0
			if k == -d || k != d && v[k-1] < v[k+1] {
				x = v[k+1]
			} else {
				x = v[k-1] + 1
			}
			y := x - k
			for x < n && y < m && a[x] == b[y] {
				x, y = x+1, y+1
			}
			v[k] = x
			if x >= n && y >= m {
				return backtrack(a, b, trace)
			}
		}
	}
	var out []edit
	for _, l := range a {
		out = append(out, edit{'-', l})
	}
	for _, l := range b {
		out = append(out, edit{'+', l})
	}
	return out
}

func backtrack(a, b []string, trace []map[int]int) []edit {
	var out []edit
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0; d-- {
		v := trace[d]
		k := x - y
		prev := k - 1
		if k == -d || k != d && v[k-1] < v[k+1] {
			prev = k + 1
		}
		px := v[prev]
		py := px - prev
		for x > px && y > py && x > 0 && y > 0 {
			x, y = x-1, y-1
			out = append(out, edit{' ', a[x]})
		}
		if d > 0 {
			if x == px {
				y--
				out = append(out, edit{'+', b[y]})
			} else {
				x--
				out = append(out, edit{'-', a[x]})
			}
		}
	}
	slices.Reverse(out)
	return out
}

// print writes the unified form with three lines of context.
func (d differ) print(out io.Writer, a, b string, la, lb []string) {
	color := func(op byte, s string) string {
		if !d.env.TTY {
			return s
		}
		switch op {
		case '-':
			return "\x1b[31m" + s + "\x1b[0m"
		case '+':
			return "\x1b[32m" + s + "\x1b[0m"
		}
		return s
	}
	script := editScript(la, lb)
	fmt.Fprintf(out, "--- %s\n+++ %s\n", a, b)
	const context = 3
	for i := 0; i < len(script); {
		if script[i].op == ' ' {
			i++
			continue
		}
		start := max(i-context, 0)
		end, quiet := i, 0
		for end < len(script) && quiet <= 2*context {
			if script[end].op == ' ' {
				quiet++
			} else {
				quiet = 0
			}
			end++
		}
		end -= max(quiet-context, 0)
		na, nb := 1, 1
		for _, e := range script[:start] {
			na += btoi(e.op != '+')
			nb += btoi(e.op != '-')
		}
		ca, cb := 0, 0
		for _, e := range script[start:end] {
			ca += btoi(e.op != '+')
			cb += btoi(e.op != '-')
		}
		if ca == 0 {
			na--
		}
		if cb == 0 {
			nb--
		}
		fmt.Fprintf(out, "@@ -%s +%s @@\n", hunk(na, ca), hunk(nb, cb))
		for _, e := range script[start:end] {
			text, cut := strings.CutSuffix(e.text, "\n")
			fmt.Fprintln(out, color(e.op, string(e.op)+text))
			if !cut {
				fmt.Fprintln(out, `\ No newline at end of file`)
			}
		}
		i = end
	}
}

func hunk(from, n int) string {
	if n == 1 {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d,%d", from, n)
}

func cmp(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "s", nil)
	if err != nil {
		return env.wrongUse(args, err)
	}
	if len(names) != 2 {
		env.fail(args, "usage: cmp A B")
		return 2
	}
	var text [2][]byte
	for i, n := range names {
		r, err := env.open(n)
		if err == nil {
			text[i], err = readAll(ctx, r)
			r.Close()
		}
		if err != nil {
			env.fail(args, "%s: %s", n, errText(err))
			return 2
		}
	}
	if bytes.Equal(text[0], text[1]) {
		return 0
	}
	if !flags(opts)["s"] {
		i := 0
		for i < len(text[0]) && i < len(text[1]) && text[0][i] == text[1][i] {
			i++
		}
		if i == len(text[0]) || i == len(text[1]) {
			fmt.Fprintf(env.Err, "cmp: EOF on %s\n", names[btoi(i == len(text[1]))])
		} else {
			fmt.Fprintf(env.Out, "%s %s differ: char %d, line %d\n", names[0], names[1], i+1, bytes.Count(text[0][:i], []byte("\n"))+1)
		}
	}
	return 1
}
