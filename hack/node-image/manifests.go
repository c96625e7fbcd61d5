package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
)

// kindManifest returns the manifest that kind's node image build would write: a
// constant in a source file of its package nodeimage, with other constants in it
// (names of images) replaced by ours.
func kindManifest(kindDir, file, constant string, replaced map[string]string) (string, error) {
	p := filepath.Join(kindDir, "pkg", "build", "nodeimage", file)
	f, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
	if err != nil {
		return "", err
	}
	values := map[string]ast.Expr{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			if v := s.(*ast.ValueSpec); len(v.Names) == len(v.Values) {
				for i, n := range v.Names {
					values[n.Name] = v.Values[i]
				}
			}
		}
	}
	expr, ok := values[constant]
	if !ok {
		return "", fmt.Errorf("%s has no constant %s: kind has changed", p, constant)
	}
	used := map[string]bool{}
	text, err := concatenation(expr, replaced, used)
	if err != nil {
		return "", fmt.Errorf("%s: constant %s: %w", p, constant, err)
	}
	for name := range replaced {
		if !used[name] {
			return "", fmt.Errorf("%s: constant %s doesn't use %s: kind has changed", p, constant, name)
		}
	}
	return text, nil
}

// concatenation is the value of string literals and names joined with +.
func concatenation(e ast.Expr, names map[string]string, used map[string]bool) (string, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.Ident:
		value, ok := names[e.Name]
		if !ok {
			return "", fmt.Errorf("it uses %s, for which we have nothing", e.Name)
		}
		used[e.Name] = true
		return value, nil
	case *ast.BinaryExpr:
		left, err := concatenation(e.X, names, used)
		if err != nil {
			return "", err
		}
		right, err := concatenation(e.Y, names, used)
		return left + right, err
	}
	return "", fmt.Errorf("it isn't a concatenation of strings but has a %T", e)
}
