package checker

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// difference is how the result of an expectation names what is wrong: the
// variable and field that it looks at, what should stand there and what does.
type difference struct {
	variable string
	field    string
	expected template
	found    template
}

// comparisons are the operators that a difference can be taken from, as shown
// before the expected value.
var comparisons = map[string]string{
	operators.Equals: "", operators.NotEquals: "≠ ", operators.Less: "< ", operators.LessEquals: "≤ ",
	operators.Greater: "> ", operators.GreaterEquals: "≥ ", operators.In: "∈ ",
}

// differenceOf takes a difference from an expression of the forms
// `object.path == value`, `function(object) == value`, `usesImage(object, value)`
// and so on; nil for any other.
func differenceOf(env *cel.Env, p *program) *difference {
	e := p.tree.Expr()
	if e.Kind() != ast.CallKind {
		return nil
	}
	call := e.AsCall()
	d := &difference{}
	sub := func(e ast.Expr) template {
		source, err := cel.ExprToString(e, p.tree.SourceInfo())
		if err != nil {
			return nil
		}
		prog, _, err := compileExpr(env, source, 0)
		if err != nil {
			return nil
		}
		return template{{prog: prog}}
	}
	args := call.Args()
	sign, compares := comparisons[call.FunctionName()]
	switch {
	case compares && len(args) == 2:
		d.variable, d.field = subject(args[0])
		d.expected, d.found = append(template{{text: sign}}, sub(args[1])...), sub(args[0])
	case call.FunctionName() == "sameImage" && len(args) == 2:
		d.variable, d.field = subject(args[0])
		d.expected, d.found = sub(args[1]), sub(args[0])
	case call.FunctionName() == "usesImage" && len(args) == 2:
		d.variable, d.field = root(args[0]), "image"
		d.expected = sub(args[1])
		d.found = expression(env, "images("+d.variable+")")
	case call.FunctionName() == "rolledOut" && len(args) == 1:
		d.variable, d.field = root(args[0]), "status.availableReplicas"
		d.expected = expression(env, d.variable+".?spec.?replicas.orValue(1)")
		d.found = expression(env, d.variable+".?status.?availableReplicas.orValue(0)")
	case call.FunctionName() == "podReady" && len(args) == 1:
		d.variable, d.field = root(args[0]), "status.conditions[Ready]"
		d.expected, d.found = template{{text: "True"}}, expression(env, "podStatus("+d.variable+")")
	default:
		return nil
	}
	if d.variable == answerVariable { // the result must not give the answer away
		return nil
	}
	if d.variable == "" || d.field == "" || d.found == nil || d.expected == nil {
		return nil
	}
	return d
}

func expression(env *cel.Env, source string) template {
	prog, _, err := compileExpr(env, source, 0)
	if err != nil {
		return nil
	}
	return template{{prog: prog}}
}

// shownAs names what a function of an object looks at, where it isn't a field.
var shownAs = map[string]string{
	"podStatus": "STATUS", "restarts": "RESTARTS", "controller": "metadata.ownerReferences",
	"images": "image", "size": "count",
}

// subject finds the variable that an operand speaks of, and the field.
func subject(e ast.Expr) (variable, field string) {
	if e.Kind() == ast.CallKind {
		call := e.AsCall()
		if shown, ok := shownAs[call.FunctionName()]; ok {
			if call.IsMemberFunction() {
				return root(call.Target()), shown
			}
			if len(call.Args()) > 0 {
				return root(call.Args()[0]), shown
			}
		}
	}
	path, ok := fieldPath(e)
	if !ok {
		return "", ""
	}
	variable, field, _ = strings.Cut(path, ".")
	if v, index, found := strings.Cut(variable, "["); found {
		variable, field = v, strings.TrimSuffix("["+index+"."+field, ".")
	}
	if field == "" {
		field = "value"
	}
	return variable, field
}

// root is the variable at the root of an operand; empty when it isn't that simple.
func root(e ast.Expr) string {
	path, ok := fieldPath(e)
	if !ok {
		return ""
	}
	if i := strings.IndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return path
}

// fieldPath writes selections and literal indexes as a path; optional selection and orValue are looked through.
func fieldPath(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent(), true
	case ast.SelectKind:
		s := e.AsSelect()
		path, ok := fieldPath(s.Operand())
		return path + "." + s.FieldName(), ok && !s.IsTestOnly()
	case ast.CallKind:
		call := e.AsCall()
		args := call.Args()
		switch call.FunctionName() {
		case "orValue", "value":
			if call.IsMemberFunction() {
				return fieldPath(call.Target())
			}
		case operators.OptSelect, operators.Index, operators.OptIndex:
			if len(args) != 2 || args[1].Kind() != ast.LiteralKind {
				return "", false
			}
			path, ok := fieldPath(args[0])
			key := show(args[1].AsLiteral())
			if _, isText := args[1].AsLiteral().(types.String); isText && call.FunctionName() == operators.OptSelect {
				return path + "." + key, ok
			}
			return path + "[" + key + "]", ok
		}
	}
	return "", false
}
