package course

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"kubistro/internal/lab"
)

var (
	wordType  = reflect.TypeFor[word]()
	proseType = reflect.TypeFor[prose]()
)

// decoder fills the structures of source.go from YAML nodes and collects every fault.
type decoder struct {
	file   string
	faults Faults
}

var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// decode parses one file into out, a pointer to a structure.
func (d *decoder) decode(raw []byte, out any) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		line, message := 0, err.Error()
		if m := yamlLine.FindStringSubmatch(message); m != nil {
			line, _ = strconv.Atoi(m[1])
			message = m[2]
		}
		d.fault(line, "%s", message)
		return
	}
	if len(doc.Content) == 0 {
		d.fault(0, "the file is empty")
		return
	}
	d.value(doc.Content[0], reflect.ValueOf(out).Elem(), "")
}

func (d *decoder) fault(line int, format string, args ...any) {
	d.faults = append(d.faults, Fault{File: d.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, enum string) {
	if n.Kind == yaml.AliasNode {
		d.fault(n.Line, "aliases aren't used in lessons")
		return
	}
	switch {
	case v.Type() == wordType:
		d.scalar(n, v, enum)
	case v.Type() == proseType:
		d.prose(n, v)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), enum)
	case v.Kind() == reflect.Slice:
		d.list(n, v, enum)
	case v.Kind() == reflect.Map:
		d.pairs(n, func(key, val *yaml.Node) {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			e := reflect.New(v.Type().Elem()).Elem()
			d.value(val, e, enum)
			v.SetMapIndex(reflect.ValueOf(key.Value), e)
		})
	case v.Kind() == reflect.Struct:
		d.structure(n, v)
	case n.Kind != yaml.ScalarNode || n.Decode(v.Addr().Interface()) != nil:
		d.fault(n.Line, "must be %s", map[reflect.Kind]string{reflect.Bool: "true or false", reflect.Int: "a number"}[v.Kind()])
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, enum string) {
	if n.Kind != yaml.ScalarNode {
		d.fault(n.Line, "must be a text")
		return
	}
	if allowed := strings.Split(enum, "|"); enum != "" && !slices.Contains(allowed, n.Value) {
		d.fault(n.Line, "%q isn't one of %s", n.Value, strings.Join(allowed, ", "))
	}
	v.Set(reflect.ValueOf(word{Value: n.Value, Line: textLine(n)}))
}

// textLine is the line of a scalar's first character.
func textLine(n *yaml.Node) int {
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Line + 1
	}
	return n.Line
}

func (d *decoder) prose(n *yaml.Node, v reflect.Value) {
	p := prose{Line: n.Line}
	d.pairs(n, func(key, val *yaml.Node) {
		switch {
		case val.Kind != yaml.ScalarNode:
			d.fault(val.Line, "must be a text")
		case key.Value == string(lab.ZhTW):
			p.ZhTW = strings.TrimSpace(val.Value)
		case key.Value == string(lab.En):
			p.En = strings.TrimSpace(val.Value)
		default:
			d.fault(key.Line, "unknown language %q", key.Value)
		}
	})
	if n.Kind == yaml.MappingNode {
		for _, l := range p.Missing() {
			d.fault(n.Line, "the text is missing in %s", l)
		}
	}
	v.Set(reflect.ValueOf(p))
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, enum string) {
	if n.Kind != yaml.SequenceNode {
		d.fault(n.Line, "must be a list")
		return
	}
	for _, c := range n.Content {
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(c, e, enum)
		v.Set(reflect.Append(v, e))
	}
}

// pairs calls f for each entry of a mapping.
func (d *decoder) pairs(n *yaml.Node, f func(key, val *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.fault(n.Line, "must be a mapping (name: value)")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			d.fault(key.Line, "%q stands here twice", key.Value)
			continue
		}
		seen[key.Value] = true
		f(key, n.Content[i+1])
	}
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value) {
	fields := fieldsOf(v.Type())
	seen := map[string]bool{}
	d.pairs(n, func(key, val *yaml.Node) {
		f, ok := fields[key.Value]
		if !ok {
			d.fault(key.Line, "unknown field %q", key.Value)
			return
		}
		seen[key.Value] = true
		d.value(val, v.FieldByIndex(f.Index), f.Tag.Get("enum"))
	})
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if name := f.Tag.Get("yaml"); f.Tag.Get("rule") == "required" && !seen[name] {
			d.fault(n.Line, "field %q is missing", name)
		}
	}
	if line := v.FieldByName("Line"); line.IsValid() {
		line.SetInt(int64(n.Line))
	}
}

// fieldsOf lists a structure's YAML fields by name.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	out := map[string]reflect.StructField{}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" && name != "-" {
			out[name] = t.Field(i)
		}
	}
	return out
}
