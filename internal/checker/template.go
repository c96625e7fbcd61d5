package checker

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"kubistro/internal/lab"
)

// noValue stands for a placeholder whose value isn't there.
const noValue = "—"

// template is a text with placeholders.
type template []piece

// piece is a text or, when prog is set, a placeholder.
type piece struct {
	text string
	prog *program
}

// textTemplate is a template in every language.
type textTemplate map[lab.Lang]template

// compileTemplate parses {CEL} placeholders; "{{" and "}}" are braces.
func compileTemplate(env *cel.Env, source string, line int) (template, error) {
	var out template
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			out = append(out, piece{text: plain.String()})
			plain.Reset()
		}
	}
	for i := 0; i < len(source); i++ {
		switch {
		case strings.HasPrefix(source[i:], "{{"), strings.HasPrefix(source[i:], "}}"):
			plain.WriteByte(source[i])
			i++
		case source[i] == '{':
			n := placeholderEnd(source[i+1:])
			if n < 0 {
				return nil, &Fault{Line: max(line, 1), Column: i + 1, Message: "placeholder isn't closed; write {{ for a brace"}
			}
			p, _, err := compileExpr(env, source[i+1:i+1+n], line)
			if err != nil {
				return nil, err
			}
			flush()
			out = append(out, piece{prog: p})
			i += n + 1
		default:
			plain.WriteByte(source[i])
		}
	}
	flush()
	return out, nil
}

// placeholderEnd is the index of the brace that closes a placeholder, minding
// strings and inner braces; -1 without one.
func placeholderEnd(s string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}':
			depth--
		}
	}
	return -1
}

func compileText(env *cel.Env, t lab.Text, line int) (textTemplate, error) {
	if t.IsZero() {
		return nil, nil
	}
	out := textTemplate{}
	for _, l := range lab.Langs() {
		tpl, err := compileTemplate(env, t.In(l), line)
		if err != nil {
			return nil, err
		}
		out[l] = tpl
	}
	return out, nil
}

// uses lists the identifiers of all placeholders.
func (t template) uses() []string {
	var out []string
	for _, p := range t {
		if p.prog != nil {
			out = append(out, p.prog.uses...)
		}
	}
	return out
}

// fill evaluates the placeholders; one that can't be evaluated becomes noValue.
func (t template) fill(ctx context.Context, vars map[string]any) string {
	var b strings.Builder
	for _, p := range t {
		if p.prog == nil {
			b.WriteString(p.text)
			continue
		}
		v, err := p.prog.eval(ctx, vars)
		if err != nil {
			b.WriteString(noValue)
			continue
		}
		b.WriteString(show(v))
	}
	return b.String()
}

func (t textTemplate) fill(ctx context.Context, vars map[string]any) lab.Text {
	return lab.Text{ZhTW: t[lab.ZhTW].fill(ctx, vars), En: t[lab.En].fill(ctx, vars)}
}

// show writes a value as people expect it: numbers without exponent, lists with commas.
func show(v ref.Val) string {
	switch x := v.(type) {
	case types.String:
		return string(x)
	case types.Double:
		return strconv.FormatFloat(float64(x), 'f', -1, 64)
	case types.Null:
		return noValue
	case types.Timestamp, types.Duration:
		return fmt.Sprint(x.Value())
	case *types.Optional:
		if !x.HasValue() {
			return noValue
		}
		return show(x.GetValue())
	case traits.Lister:
		var parts []string
		for it := x.Iterator(); it.HasNext() == types.True && len(parts) < 20; {
			parts = append(parts, show(it.Next()))
		}
		return strings.Join(parts, ", ")
	case traits.Mapper:
		native, err := v.ConvertToNative(reflect.TypeFor[map[string]any]())
		if err != nil {
			return noValue
		}
		raw, err := json.Marshal(native)
		if err != nil {
			return noValue
		}
		return string(raw)
	}
	return fmt.Sprint(v.Value())
}
