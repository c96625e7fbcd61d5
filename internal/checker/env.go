package checker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
)

const (
	// costLimit bounds one expression; walking a record of 20,000 events once
	// costs about a tenth of it.
	costLimit = 5_000_000
	// maxExpression bounds the source of one expression, in bytes.
	maxExpression = 8 << 10
)

// nowVariable is the time of the run, which the macro ago subtracts from.
const nowVariable = "now"

// baseEnv is CEL with its extension libraries and the functions of this package.
var baseEnv = sync.OnceValues(func() (*cel.Env, error) {
	opts := []cel.EnvOption{
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EnableMacroCallTracking(),
		cel.ParserRecursionLimit(60),
		cel.ParserExpressionSizeLimit(maxExpression),
		ext.Strings(), ext.Lists(), ext.Sets(), ext.Math(), ext.Encoders(),
		ext.Bindings(), ext.TwoVarComprehensions(), ext.Regex(),
		cel.Variable(nowVariable, cel.TimestampType),
		cel.Macros(cel.GlobalMacro("ago", 1, expandAgo)),
	}
	return cel.NewEnv(append(opts, functions()...)...)
})

// expandAgo turns ago(t) into now - timestamp(t).
func expandAgo(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	return f.NewCall(operators.Subtract, f.NewIdent(nowVariable), f.NewCall("timestamp", args[0])), nil
}

// program is one compiled expression.
type program struct {
	source string
	tree   *ast.AST
	run    cel.Program
	uses   []string // identifiers that it mentions, sorted
}

// compileExpr compiles an expression whose variables env declares. Its error is a
// *Fault; line is that of the expression in its file, 0 when unknown.
func compileExpr(env *cel.Env, source string, line int) (*program, *cel.Type, error) {
	if len(source) > maxExpression {
		return nil, nil, &Fault{Line: max(line, 1), Column: 1, Message: fmt.Sprintf("expression is longer than %d bytes", maxExpression)}
	}
	checked, issues := env.Compile(source)
	if err := issues.Err(); err != nil {
		return nil, nil, issueFault(issues, line)
	}
	run, err := env.Program(checked,
		cel.CostLimit(costLimit), cel.InterruptCheckFrequency(100), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, nil, &Fault{Line: max(line, 1), Column: 1, Message: err.Error()}
	}
	tree := checked.NativeRep()
	return &program{source: source, tree: tree, run: run, uses: identifiers(tree)}, checked.OutputType(), nil
}

// issueFault reports the first issue of a compilation at its place in the file.
func issueFault(issues *cel.Issues, line int) *Fault {
	list := issues.Errors()
	if len(list) == 0 {
		return &Fault{Line: max(line, 1), Column: 1, Message: issues.Err().Error()}
	}
	f := &Fault{Line: list[0].Location.Line(), Column: list[0].Location.Column() + 1, Message: list[0].Message}
	if f.Line < 1 {
		f.Line, f.Column = 1, 1
	}
	if line > 0 {
		f.Line += line - 1
	}
	return f
}

// identifiers lists the names that an expression mentions.
func identifiers(tree *ast.AST) []string {
	var out []string
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind {
			out = append(out, e.AsIdent())
		}
	}))
	slices.Sort(out)
	return slices.Compact(out)
}

// errMissing marks an evaluation that met a field, key, index or object that isn't there.
var errMissing = errors.New("something that the expression reads isn't there")

// eval runs the program. Its error is errMissing when the objects lack what the
// expression reads, ctx's error when the time is up, another one for faults of
// the expression itself.
func (p *program) eval(ctx context.Context, vars map[string]any) (v ref.Val, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("evaluate %q: panic: %v", p.source, r)
		}
	}()
	v, _, err = p.run.ContextEval(ctx, vars)
	switch {
	case err == nil:
		return v, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case isMissing(err):
		return nil, fmt.Errorf("%w: %w", errMissing, err)
	}
	return nil, fmt.Errorf("evaluate %q: %w", p.source, err)
}

// isMissing tells a missing field from a fault of the expression. CEL has no
// error values for this, only texts.
func isMissing(err error) bool {
	text := err.Error()
	for _, s := range []string{"no such key", "no such attribute", "index out of bounds", "optional.none() dereference"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}
