package course

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Schema is the JSON Schema of course.yaml, level.yaml, quiz.yaml and glossary.yaml:
// an object with one schema for each under "$defs" (course, level, quiz, glossary).
func Schema() []byte {
	schema := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Kubistro course files",
		"$defs": map[string]any{
			"course": schemaOf(reflect.TypeFor[courseFile](), ""),
			"level":  schemaOf(reflect.TypeFor[levelFile](), ""),
			"quiz":   schemaOf(reflect.TypeFor[quizFile](), ""),

			"glossary": schemaOf(reflect.TypeFor[glossaryFile](), ""),
		},
	}
	out, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic("course: schema of fixed types can't be written: " + err.Error())
	}
	return append(out, '\n')
}

// spellings are the values that an enum allows: words, and true and false also without quotes.
func spellings(enum string) []any {
	var out []any
	for v := range strings.SplitSeq(enum, "|") {
		out = append(out, v)
		if b, err := strconv.ParseBool(v); err == nil {
			out = append(out, b)
		}
	}
	return out
}

// SchemaOf is the JSON Schema of one kind of file, course, level, quiz or glossary, as editors want it; false for another kind.
func SchemaOf(kind string) ([]byte, bool) {
	t, known := map[string]reflect.Type{
		"course": reflect.TypeFor[courseFile](), "level": reflect.TypeFor[levelFile](), "quiz": reflect.TypeFor[quizFile](),
		"glossary": reflect.TypeFor[glossaryFile](),
	}[kind]
	if !known {
		return nil, false
	}
	schema := schemaOf(t, "")
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "Kubistro "+kind+".yaml"
	out, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic("course: schema of fixed types can't be written: " + err.Error())
	}
	return append(out, '\n'), true
}

func schemaOf(t reflect.Type, enum string) map[string]any {
	switch {
	case t == wordType:
		s := map[string]any{"type": []string{"string", "number", "boolean"}}
		if enum != "" {
			s["enum"] = spellings(enum)
		}
		return s
	case t == proseType:
		text := map[string]any{"type": "string", "pattern": `\S`}
		return map[string]any{"type": "object", "additionalProperties": false,
			"properties": map[string]any{"zh-TW": text, "en": text}, "required": []string{"zh-TW", "en"}}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem(), enum)
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), enum)}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), enum)}
	case t.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case t.Kind() == reflect.Int:
		return map[string]any{"type": "integer", "minimum": 1}
	}
	properties, required := map[string]any{}, []string{}
	for name, f := range fieldsOf(t) {
		s := schemaOf(f.Type, f.Tag.Get("enum"))
		if doc := f.Tag.Get("doc"); doc != "" {
			s["description"] = doc
		}
		properties[name] = s
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("rule") == "required" {
			required = append(required, f.Tag.Get("yaml"))
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
}
