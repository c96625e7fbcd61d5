package shell

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	slotPath    = "/dev/.shell/job"    // redirecting to it counts a pipeline stage
	bgSlotPath  = "/dev/.shell/bg"     // the same for a background job
	substPath   = "/dev/.shell/subst"  // redirecting to it caps a command substitution
	sourcePath  = "/dev/.shell/source" // prefix of checked scripts for the source builtin
	own         = "\x01"               // prefix of command names that skip the interpreter's builtins
	maxSource   = 256 << 10            // bytes of one script
	maxBraces   = 20000                // words that one brace expansion may make
	pidVariable = "SHELLPID"
)

// parse parses a script and closes what the interpreter would otherwise do on
// the host or without bound. name is used in messages.
func parse(src, name string) (*syntax.File, error) {
	if len(src) > maxSource {
		return nil, fmt.Errorf("script too long (%d bytes; at most %d)", len(src), maxSource)
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), name)
	if err != nil {
		return nil, err
	}
	return f, harden(f)
}

// rewrite is parse for text that a builtin will parse again (eval, trap, alias).
func rewrite(src string) (string, error) {
	f, err := parse(src, "")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, f); err != nil {
		return "", err
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

// harden rewrites a syntax tree in place: pipeline stages, background jobs and
// command substitutions get a redirection that counts or caps them, assignments
// that expand variables get a size check, process ids are made up, and what
// reaches for the host (process substitution, ~user) is refused or disarmed.
func harden(f *syntax.File) error {
	var fault error
	fail := func(n syntax.Node, msg string) {
		if fault == nil {
			fault = fmt.Errorf("line %d: %s", n.Pos().Line(), msg)
		}
	}
	var after []func()
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ProcSubst:
			fail(n, "process substitution <(...) isn't available here; use a pipe or a file")
		case *syntax.CoprocClause:
			fail(n, "coproc isn't available here; use a pipe")
		case *syntax.ParamExp:
			if n.Param != nil && (n.Param.Value == "$" || n.Param.Value == "PPID") {
				n.Param.Value = pidVariable
				n.Short = false
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsUsrOwn || n.Op == syntax.TsGrpOwn {
				n.Op = syntax.TsExists
			}
		case *syntax.Word:
			disarmTilde(n)
			if c := braceCount(n); c > maxBraces {
				fail(n, "brace expansion makes too many words (at most "+strconv.Itoa(maxBraces)+")")
			}
		case *syntax.WhileClause:
			after = append(after, func() { paceLoop(n, &n.Do) })
		case *syntax.ForClause:
			after = append(after, func() { paceLoop(n, &n.Do) })
		case *syntax.Stmt:
			if n.Background || n.Disown {
				after = append(after, func() { wrapStmt(n, bgSlotPath) })
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				after = append(after, func() { wrapStmt(n.X, slotPath) })
			}
		case *syntax.CmdSubst:
			after = append(after, func() { wrapSubst(n) })
		case *syntax.Assign:
			names := expansions(n)
			if n.Append && n.Name != nil {
				names = append(names, n.Name.Value)
			}
			if len(names) > 0 && n.Value != nil {
				after = append(after, func() { n.Value.Parts = append([]syntax.WordPart{sizeCheck(names)}, n.Value.Parts...) })
			} else if len(names) > 0 && n.Array != nil && len(n.Array.Elems) > 0 {
				w := n.Array.Elems[0].Value
				if w != nil {
					after = append(after, func() { w.Parts = append([]syntax.WordPart{sizeCheck(names)}, w.Parts...) })
				}
			}
		}
		return fault == nil
	})
	if fault != nil {
		return fault
	}
	for _, f := range after {
		f()
	}
	return nil
}

func lit(s string) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: s}}}
}

// wrapStmt makes S into { S; } > path, in place.
func wrapStmt(s *syntax.Stmt, path string) {
	inner := *s
	inner.Background, inner.Disown, inner.Semicolon = false, false, syntax.Pos{}
	*s = syntax.Stmt{
		Position: s.Position, Semicolon: s.Semicolon, Background: s.Background, Disown: s.Disown,
		Cmd:    &syntax.Block{Lbrace: s.Position, Rbrace: s.End(), Stmts: []*syntax.Stmt{&inner}},
		Redirs: []*syntax.Redirect{{Op: syntax.RdrOut, OpPos: s.Position, Word: lit(path)}},
	}
}

func wrapSubst(c *syntax.CmdSubst) {
	if len(c.Stmts) == 0 {
		return
	}
	if len(c.Stmts) == 1 && c.Stmts[0].Cmd == nil && len(c.Stmts[0].Redirs) > 0 { // $(<file)
		c.Stmts[0].Cmd = &syntax.CallExpr{Args: []*syntax.Word{lit("cat")}}
	}
	block := &syntax.Stmt{
		Position: c.Stmts[0].Position,
		Cmd:      &syntax.Block{Lbrace: c.Left, Rbrace: c.Right, Stmts: c.Stmts},
		Redirs:   []*syntax.Redirect{{Op: syntax.RdrOut, OpPos: c.Left, Word: lit(substPath)}},
	}
	c.Stmts = []*syntax.Stmt{block}
}

// sizeCheck is a command substitution without output that fails the run when
// the named variables together are too long.
func sizeCheck(names []string) syntax.WordPart {
	call := &syntax.CallExpr{Args: []*syntax.Word{lit(sizeCommand)}}
	for _, n := range names {
		call.Args = append(call.Args, lit(n))
	}
	return &syntax.CmdSubst{Stmts: []*syntax.Stmt{{Cmd: call}}}
}

// expansions lists the variables that an assignment's value expands, as often
// as it does; "a:b" where b replaces matches in a.
func expansions(a *syntax.Assign) []string {
	var names []string
	visit := func(n syntax.Node) bool {
		if _, ok := n.(*syntax.CmdSubst); ok {
			return false // capped by itself
		}
		p, ok := n.(*syntax.ParamExp)
		if !ok || p.Param == nil || !(syntax.ValidName(p.Param.Value) || p.Param.Value == "@" || p.Param.Value == "*") {
			return true
		}
		name := p.Param.Value
		if p.Repl != nil && p.Repl.With != nil {
			syntax.Walk(p.Repl.With, func(n syntax.Node) bool {
				switch n := n.(type) {
				case *syntax.ParamExp:
					if n.Param != nil && syntax.ValidName(n.Param.Value) {
						names = append(names, name+":"+n.Param.Value)
					}
				case *syntax.Lit:
					names = append(names, name+":"+strconv.Itoa(len(n.Value)))
				}
				return true
			})
		}
		names = append(names, name)
		return len(names) < 1000
	}
	if a.Value != nil {
		syntax.Walk(a.Value, visit)
	}
	if a.Array != nil {
		syntax.Walk(a.Array, visit)
	}
	return names
}

// disarmTilde quotes ~user, which the interpreter would look up in the host's user database.
func disarmTilde(w *syntax.Word) {
	var out []syntax.WordPart
	changed := false
	for i, p := range w.Parts {
		l, ok := p.(*syntax.Lit)
		if !ok {
			out = append(out, p)
			continue
		}
		rest := l.Value
		for k := 0; k < len(rest); k++ {
			start := k == 0 && i == 0 || k > 0 && (rest[k-1] == ':' || rest[k-1] == '=')
			if rest[k] != '~' || !start || k+1 == len(rest) || strings.IndexByte("/+-:", rest[k+1]) >= 0 {
				continue
			}
			if k > 0 {
				out = append(out, &syntax.Lit{Value: rest[:k]})
			}
			out = append(out, &syntax.SglQuoted{Value: "~"})
			rest, k, changed = rest[k+1:], -1, true
		}
		if rest != "" {
			out = append(out, &syntax.Lit{Value: rest, ValuePos: l.ValuePos, ValueEnd: l.ValueEnd})
		}
	}
	if changed {
		w.Parts = out
	}
}

// braceCount is how many words a word's brace expansion makes, roughly and never too few.
func braceCount(w *syntax.Word) int {
	if !strings.Contains(w.Lit(), "{") && !hasBraceLit(w) {
		return 1
	}
	copied := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
	syntax.SplitBraces(copied)
	return partsCount(copied.Parts)
}

func hasBraceLit(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.Contains(l.Value, "{") {
			return true
		}
	}
	return false
}

func partsCount(parts []syntax.WordPart) int {
	const huge = 1 << 40
	n := 1
	for _, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		c := 0
		if b.Sequence {
			c = sequenceCount(b)
		} else {
			for _, e := range b.Elems {
				c += partsCount(e.Parts)
			}
		}
		if c > 0 {
			n *= c
		}
		if n > huge {
			return huge
		}
	}
	return n
}

func sequenceCount(b *syntax.BraceExp) int {
	var ends [3]int64
	for i, e := range b.Elems {
		if i > 2 {
			break
		}
		v, err := strconv.ParseInt(e.Lit(), 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			return 1 << 40
		}
		if err != nil {
			return 256 // letters
		}
		ends[i] = v
	}
	d := ends[1] - ends[0]
	if d < 0 {
		d = -d
	}
	step := max(ends[2], -ends[2], 1)
	return int(min(d/step+1, 1<<40))
}
