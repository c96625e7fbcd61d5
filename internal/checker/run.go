package checker

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"kubistro/internal/lab"
)

// maxFile bounds a file of the learner that a check reads.
const maxFile = 1 << 20

// run is one look of a check at the world. Variables are read when the first
// expectation needs them, once.
type run struct {
	check  *Check
	world  World
	vars   map[string]any
	loaded map[string]error // by variable
}

func newRun(c *Check, w World) *run {
	return &run{check: c, world: w, vars: map[string]any{nowVariable: c.now()}, loaded: map[string]error{}}
}

// absence is the error for what an expectation needs and isn't there.
type absence struct {
	message                        lab.Text
	object, field, expected, found string
}

func (a *absence) Error() string { return "missing: " + a.message.En }

// worldError is a failure to look.
type worldError struct{ err error }

func (e *worldError) Error() string { return "look at the cluster: " + e.err.Error() }
func (e *worldError) Unwrap() error { return e.err }

// holds evaluates one expectation. Its error is *absence for what isn't there,
// *worldError for what couldn't be looked at, any other for a fault of the expression.
func (r *run) holds(ctx context.Context, x *expectation) (bool, error) {
	for _, name := range x.uses {
		if err := r.need(ctx, name); err != nil {
			return false, err
		}
	}
	r.compute(ctx, x.uses)
	v, err := x.that.eval(ctx, r.vars)
	switch {
	case ctx.Err() != nil:
		return false, &worldError{ctx.Err()}
	case errors.Is(err, errMissing):
		if a := r.absent(ctx, x); a != nil {
			return false, a
		}
		return false, &absence{}
	case err != nil:
		if a := r.absent(ctx, x); a != nil {
			return false, a
		}
		if slices.Contains(x.uses, answerVariable) {
			return false, nil // int(answer) of a word: a wrong answer
		}
		return false, err
	}
	met, isBool := v.(types.Bool)
	if !isBool {
		return false, errors.New("the expectation is neither true nor false")
	}
	if !bool(met) && (x.message == nil || r.needsFile(x)) {
		if a := r.absent(ctx, x); a != nil {
			return false, a
		}
	}
	return bool(met), nil
}

// needsFile reports whether an expectation reads files without asking whether they are there.
func (r *run) needsFile(x *expectation) bool {
	for _, name := range x.uses {
		if _, ok := r.check.spec.Files[name]; ok {
			return !strings.Contains(x.that.source, name+".exists") && !strings.Contains(x.that.source, name+".fault")
		}
	}
	return false
}

// compute evaluates the lets among names in their order. One that meets something
// missing stays undefined, and so does what uses it.
func (r *run) compute(ctx context.Context, names []string) {
	for _, l := range r.check.lets {
		if _, done := r.vars[l.name]; done || !slices.Contains(names, l.name) {
			continue
		}
		if v, err := l.prog.eval(ctx, r.vars); err == nil {
			r.vars[l.name] = v
		}
	}
}

// need reads a variable unless it has been read before.
func (r *run) need(ctx context.Context, name string) error {
	if err, done := r.loaded[name]; done {
		return err
	}
	v, err := r.read(ctx, name)
	if err == nil && v != undefined {
		r.vars[name] = v
	}
	r.loaded[name] = err
	return err
}

// undefined marks a variable that read doesn't set: a let.
var undefined any = new(int)

func (r *run) read(ctx context.Context, name string) (any, error) {
	spec := r.check.spec
	if o, ok := spec.Objects[name]; ok {
		return r.readObject(ctx, o)
	}
	if q, ok := spec.Requests[name]; ok {
		return r.send(ctx, q)
	}
	if _, ok := spec.Guests[name]; ok {
		return r.visits(ctx, name)
	}
	if a, ok := spec.Access[name]; ok {
		return r.allowed(ctx, a)
	}
	if key, ok := spec.Stored[name]; ok {
		return r.stored(ctx, key)
	}
	if path, ok := spec.Files[name]; ok {
		return r.readFile(ctx, path)
	}
	switch name {
	case recordVariable:
		return r.readRecord(ctx)
	case answerVariable:
		answer, given := r.world.Answer(ctx, spec.ID)
		if answer = strings.TrimSpace(answer); !given || answer == "" {
			return nil, &absence{message: textNoAnswer, object: "answer", field: "value", found: noValue}
		}
		return answer, nil
	}
	return undefined, nil
}

func (o Object) namespace() string {
	if o.Namespace == "" {
		return "default"
	}
	return o.Namespace
}

func (r *run) readObject(ctx context.Context, o Object) (any, error) {
	if o.Name == "" {
		namespace := o.namespace()
		if namespace == AllNamespaces {
			namespace = ""
		}
		list, err := r.world.List(ctx, o.Kind, namespace, o.Labels)
		if err != nil {
			return nil, &worldError{err}
		}
		if list == nil {
			list = []map[string]any{}
		}
		return list, nil
	}
	m, err := r.world.Get(ctx, o.Kind, o.namespace(), o.Name)
	if err != nil {
		return nil, &worldError{err}
	}
	if m == nil {
		return nil, nil
	}
	return m, nil
}

func (r *run) readFile(ctx context.Context, path string) (any, error) {
	raw, err := r.world.File(ctx, path)
	out := map[string]any{"path": path, "exists": true, "text": string(raw), "docs": []any{}, "fault": ""}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out["exists"] = false
	case err != nil:
		return nil, &worldError{err}
	case len(raw) > maxFile:
		out["text"], out["fault"] = "", "the file is too large"
	default:
		docs, err := documents(raw)
		if err != nil {
			out["fault"] = err.Error()
		} else {
			out["docs"] = docs
		}
	}
	return out, nil
}

// documents parses a YAML file with any number of documents; empty ones are left out.
func documents(raw []byte) ([]any, error) {
	out := []any{}
	for part := range strings.SplitSeq("\n"+string(raw), "\n---") {
		if rest, _, found := strings.Cut(part, "\n"); found && strings.TrimSpace(rest) != "" {
			part = strings.TrimPrefix(part, rest) // "--- # comment"
		}
		var doc any
		if err := utilyaml.Unmarshal([]byte(part), &doc); err != nil {
			return nil, err
		}
		if doc != nil {
			out = append(out, doc)
		}
	}
	return out, nil
}

func (r *run) readRecord(ctx context.Context) (any, error) {
	events, err := r.world.Record(ctx)
	if err != nil {
		return nil, &worldError{err}
	}
	raw, err := json.Marshal(events)
	if err != nil {
		return nil, err
	}
	out := []any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// absent finds the first object or file that the expectation uses and that isn't there.
func (r *run) absent(ctx context.Context, x *expectation) *absence {
	for _, name := range x.uses {
		if o, ok := r.check.spec.Objects[name]; ok && o.Name != "" && r.vars[name] == nil {
			return &absence{
				message: textAbsent(o.Kind, o.Name, r.similar(ctx, o)),
				object:  strings.ToLower(o.Kind) + "/" + o.Name, expected: "exists", found: "NotFound",
			}
		}
		if _, ok := r.check.spec.Files[name]; !ok {
			continue
		}
		file, _ := r.vars[name].(map[string]any)
		if !flag(file, "exists") {
			return &absence{message: textNoFile(text(file, "path")), object: text(file, "path"), expected: "exists", found: "NotFound"}
		}
		if fault := text(file, "fault"); fault != "" {
			return &absence{message: textBadFile(text(file, "path"), fault), object: text(file, "path"), expected: "YAML", found: fault}
		}
	}
	return nil
}

// notMet describes an expectation that doesn't hold.
func (r *run) notMet(ctx context.Context, x *expectation, missing *absence) lab.CheckResult {
	res := lab.CheckResult{Check: r.check.spec.ID, Title: r.check.spec.Title, Status: lab.CheckNotMet}
	for _, name := range x.shown {
		_ = r.need(ctx, name) // what can't be read is shown as missing
	}
	r.compute(ctx, x.shown)
	if missing != nil && !missing.message.IsZero() {
		res.Message, res.Object = missing.message, missing.object
		res.Field, res.Expected, res.Found = missing.field, missing.expected, missing.found
		if res.Field == "" && x.diff != nil {
			res.Field = x.diff.field
		}
		return res
	}
	res.Object, res.Field = x.object, x.field
	if x.diff != nil {
		if res.Object == "" {
			res.Object = r.label(x.diff.variable)
		}
		if res.Field == "" {
			res.Field = x.diff.field
		}
	}
	if res.Object == "" {
		res.Object = r.only(x.uses)
	}
	res.Expected, res.Found = x.expected.fill(ctx, r.vars), x.found.fill(ctx, r.vars)
	if x.message != nil {
		res.Message = x.message.fill(ctx, r.vars)
	} else {
		res.Message = textDifference(res)
	}
	res.Message = join(res.Message, r.explain(ctx, x))
	return res
}

// label names a variable for people: deployment/grill, pod (station=grill), a file, a URL.
func (r *run) label(variable string) string {
	spec := r.check.spec
	if o, ok := spec.Objects[variable]; ok {
		kind := strings.ToLower(o.Kind)
		switch {
		case o.Name != "":
			return kind + "/" + o.Name
		case o.Labels != "":
			return kind + " (" + o.Labels + ")"
		}
		return kind
	}
	if q, ok := spec.Requests[variable]; ok {
		return q.URL
	}
	if g, ok := spec.Guests[variable]; ok {
		return g.URL
	}
	if key, ok := spec.Stored[variable]; ok {
		return "etcd " + key
	}
	if path, ok := spec.Files[variable]; ok {
		return path
	}
	return variable
}

// only is the label of the one object that an expectation uses; empty when there are more.
func (r *run) only(uses []string) string {
	named := slices.DeleteFunc(slices.Sorted(maps.Keys(r.check.spec.Objects)), func(n string) bool { return !slices.Contains(uses, n) })
	if len(named) == 1 {
		return r.label(named[0])
	}
	return ""
}
