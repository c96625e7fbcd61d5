package checker

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/labels"

	"kubistro/internal/lab"
)

// Variables that every check may use.
const (
	recordVariable = "record"
	answerVariable = "answer"
)

const (
	maxTimes    = 100 // how often one request is sent
	maxTogether = 10  // how many of them at once
	maxRate     = 20  // visits of steady guests a second
)

var variableName = regexp.MustCompile(`^[a-z][A-Za-z0-9_]*$`)

// expectation is a compiled Expectation.
type expectation struct {
	that    *program
	message textTemplate // nil: made from diff
	diff    *difference  // nil: message and the explicit texts only
	object  string
	field   string
	// expected and found are the author's, else those of diff.
	expected, found template
	uses            []string // variables that `that` needs, also through lets
	shown           []string // those of the texts
}

type let struct {
	name string
	prog *program
}

// compiler is the state of one Compile.
type compiler struct {
	spec Spec
	env  *cel.Env
	lets []let
}

// Compile checks a spec and prepares it to run. Its error is a *Fault.
func Compile(spec Spec) (check *Check, err error) {
	defer func() {
		if r := recover(); r != nil {
			check, err = nil, &Fault{Line: 1, Column: 1, Message: fmt.Sprintf("the expression can't be compiled: %v", r)}
		}
	}()
	base, err := baseEnv()
	if err != nil {
		return nil, &Fault{Line: 1, Column: 1, Message: err.Error()}
	}
	c := &compiler{spec: spec, env: base}
	if err := c.declare(); err != nil {
		return nil, err
	}
	if err := c.compileLets(); err != nil {
		return nil, err
	}
	if len(spec.Expect) == 0 {
		return nil, &Fault{Line: 1, Column: 1, Message: "the check expects nothing"}
	}
	check = &Check{spec: spec, lets: c.lets, now: time.Now}
	for _, e := range spec.Expect {
		x, err := c.expectation(e)
		if err != nil {
			return nil, err
		}
		check.expects = append(check.expects, x)
	}
	if check.done, err = compileText(c.env, spec.Done, 0); err != nil {
		return nil, err
	}
	return check, nil
}

// declare makes the environment that knows the variables of the spec.
func (c *compiler) declare() error {
	seen := map[string]bool{recordVariable: true, answerVariable: true, nowVariable: true}
	var opts []cel.EnvOption
	add := func(name string, t *cel.Type) error {
		if !variableName.MatchString(name) {
			return &Fault{Line: 1, Column: 1, Message: fmt.Sprintf("%q can't be the name of a variable: use letters and digits, a small letter first", name)}
		}
		if seen[name] {
			return &Fault{Line: 1, Column: 1, Message: fmt.Sprintf("variable %q is declared twice, or is one of record, answer, now", name)}
		}
		seen[name] = true
		opts = append(opts, cel.Variable(name, t))
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.spec.Objects)) {
		o := c.spec.Objects[name]
		if err := errors.Join(o.fault(name), add(name, cel.DynType)); err != nil {
			return firstFault(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.spec.Requests)) {
		r := c.spec.Requests[name]
		if err := errors.Join(r.fault(name), add(name, cel.ListType(cel.DynType))); err != nil {
			return firstFault(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.spec.Guests)) {
		g := c.spec.Guests[name]
		if err := errors.Join(g.fault(name), add(name, cel.ListType(cel.DynType))); err != nil {
			return firstFault(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.spec.Access)) {
		if err := errors.Join(c.spec.Access[name].fault(name), add(name, cel.BoolType)); err != nil {
			return firstFault(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.spec.Stored)) {
		if err := errors.Join(storedFault(name, c.spec.Stored[name]), add(name, cel.DynType)); err != nil {
			return firstFault(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.spec.Files)) {
		if err := add(name, cel.DynType); err != nil {
			return err
		}
	}
	opts = append(opts, cel.Variable(recordVariable, cel.ListType(cel.DynType)))
	if c.spec.Answer != nil {
		opts = append(opts, cel.Variable(answerVariable, cel.StringType))
	}
	env, err := c.env.Extend(opts...)
	if err != nil {
		return &Fault{Line: 1, Column: 1, Message: err.Error()}
	}
	c.env = env
	return nil
}

func (o Object) fault(name string) error {
	message := ""
	switch {
	case o.Kind == "":
		message = "has no kind"
	case o.Name != "" && o.Labels != "":
		message = "has both a name and labels"
	case o.Name != "" && o.Namespace == AllNamespaces:
		message = "has a name, so it needs one namespace"
	default:
		if _, err := labels.Parse(o.Labels); err != nil {
			message = fmt.Sprintf("has labels that can't be read: %v", err)
		}
	}
	if message == "" {
		return nil
	}
	return &Fault{Line: 1, Column: 1, Message: fmt.Sprintf("object %q %s", name, message)}
}

func (r RequestSpec) fault(name string) error {
	if r.Times < 0 || r.Times > maxTimes {
		return &Fault{Line: 1, Column: 1, Message: fmt.Sprintf("request %q: times must be 1 to %d", name, maxTimes)}
	}
	if r.Together < 0 || r.Together > maxTogether {
		return &Fault{Line: 1, Column: 1, Message: fmt.Sprintf("request %q: together must be 1 to %d", name, maxTogether)}
	}
	return r.Request.fault(name)
}

func (g GuestSpec) fault(name string) error {
	if g.Rate < 1 || g.Rate > maxRate {
		return &Fault{Line: 1, Column: 1, Message: fmt.Sprintf("guests %q: rate must be 1 to %d a second", name, maxRate)}
	}
	if g.Keep <= 0 || g.Keep > MaxKeep {
		return &Fault{Line: 1, Column: 1, Message: fmt.Sprintf("guests %q: keep must be a time up to %s", name, MaxKeep)}
	}
	return g.Request.fault(name)
}

func (r Request) fault(name string) error {
	message := ""
	if u, err := url.Parse(r.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		message = fmt.Sprintf("%q has no url of the form http://host/path", name)
	}
	kind, rest, _ := strings.Cut(r.From, "/")
	switch {
	case r.From == "" || r.From == FromStreet || kind == "pod" && rest != "":
	case kind == "pods" && rest != "":
		if _, err := labels.Parse(rest); err != nil {
			message = fmt.Sprintf("%q comes from Pods with labels that can't be read: %v", name, err)
		}
	default:
		message = fmt.Sprintf("%q: from is street, pod/NAME or pods/LABELS", name)
	}
	if message == "" {
		return nil
	}
	return &Fault{Line: 1, Column: 1, Message: "request " + message}
}

func firstFault(err error) error {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return err
}

// compileLets compiles the intermediate values, each visible to the ones below it.
func (c *compiler) compileLets() error {
	for _, l := range c.spec.Lets {
		if !variableName.MatchString(l.Name) {
			return &Fault{Line: max(l.Line, 1), Column: 1, Message: fmt.Sprintf("%q can't be the name of a variable", l.Name)}
		}
		prog, t, err := compileExpr(c.env, l.Expr, l.Line)
		if err != nil {
			return err
		}
		if c.env, err = c.env.Extend(cel.Variable(l.Name, t)); err != nil {
			return &Fault{Line: max(l.Line, 1), Column: 1, Message: err.Error()}
		}
		c.lets = append(c.lets, let{l.Name, prog})
	}
	return nil
}

// expectation compiles one Expectation.
func (c *compiler) expectation(e Expectation) (expectation, error) {
	prog, t, err := compileExpr(c.env, e.That, e.Line)
	if err != nil {
		return expectation{}, err
	}
	if !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return expectation{}, &Fault{Line: max(e.Line, 1), Column: 1, Message: "must be true or false, not " + t.String()}
	}
	x := expectation{that: prog, diff: differenceOf(c.env, prog), object: e.Object, field: e.Field}
	if x.message, err = compileText(c.env, e.Message, e.Line); err != nil {
		return x, err
	}
	if x.expected, err = compileTemplate(c.env, e.Expected, e.Line); err != nil {
		return x, err
	}
	if x.found, err = compileTemplate(c.env, e.Found, e.Line); err != nil {
		return x, err
	}
	if x.message == nil && x.diff == nil {
		return x, &Fault{Line: max(e.Line, 1), Column: 1,
			Message: "needs a message: object, field and expected value can be taken only from the form `object.path == value`"}
	}
	if x.diff != nil {
		if x.expected == nil {
			x.expected = x.diff.expected
		}
		if x.found == nil {
			x.found = x.diff.found
		}
	}
	x.uses = c.reach(prog.uses)
	shown := slices.Concat(x.expected.uses(), x.found.uses())
	for _, l := range lab.Langs() {
		shown = append(shown, x.message[l].uses()...)
	}
	x.shown = c.reach(shown)
	return x, nil
}

// reach adds to names what the lets among them use, and keeps known variables only.
func (c *compiler) reach(names []string) []string {
	want := map[string]bool{}
	for _, n := range names {
		want[n] = true
	}
	for _, l := range slices.Backward(c.lets) {
		if want[l.name] {
			for _, n := range l.prog.uses {
				want[n] = true
			}
		}
	}
	var out []string
	for n := range want {
		if c.known(n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func (c *compiler) known(name string) bool {
	_, object := c.spec.Objects[name]
	_, request := c.spec.Requests[name]
	_, guests := c.spec.Guests[name]
	_, access := c.spec.Access[name]
	_, stored := c.spec.Stored[name]
	_, file := c.spec.Files[name]
	return object || request || guests || access || stored || file || name == recordVariable || name == answerVariable ||
		slices.ContainsFunc(c.lets, func(l let) bool { return l.name == name })
}
