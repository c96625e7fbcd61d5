package course

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"kubistro/lessons"
)

// validator compiles the published schema for one kind of file.
func validator(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("course.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("course.json#/$defs/" + kind)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, kind, source string) error {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return validator(t, kind).Validate(v)
}

func TestSchemaAcceptsTheLessons(t *testing.T) {
	n := 0
	err := fs.WalkDir(lessons.FS, ".", func(p string, d fs.DirEntry, err error) error {
		kind := strings.TrimSuffix(path.Base(p), ".yaml")
		if err != nil || d.IsDir() || kind != "course" && kind != "level" && kind != "quiz" {
			return err
		}
		raw, err := fs.ReadFile(lessons.FS, p)
		if err != nil {
			return err
		}
		n++
		if err := validate(t, kind, string(raw)); err != nil {
			t.Errorf("%s: %v", p, err)
		}
		return nil
	})
	if err != nil || n < 3 {
		t.Fatalf("%d files, %v", n, err)
	}
}

func TestSchemaRejectsWhatTheLoaderRejects(t *testing.T) {
	tests := []struct{ name, file, kind, old, text string }{
		{"unknown field", level, "level", "minutes: 5", "minutes: 5\nminuts: 6"},
		{"missing field", level, "level", "minutes: 5\n", ""},
		{"missing language", level, "level", "{zh-TW: 三碗, en: Three}", "{en: Three}"},
		{"empty language", level, "level", "{zh-TW: 三碗, en: Three}", "{zh-TW: 三碗, en: ' '}"},
		{"unknown capability", level, "level", "[audit]", "[magic]"},
		{"wrong type", level, "level", "minutes: 5", "minutes: many"},
		{"unknown kind", quiz, "quiz", "kind: one", "kind: any"},
		{"unknown language", house, "course", "en: Diner}", "en: Diner, de: Kneipe}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sound := files()[tt.file]
			if err := validate(t, tt.kind, sound); err != nil {
				t.Fatalf("the sound file: %v", err)
			}
			if validate(t, tt.kind, strings.Replace(sound, tt.old, tt.text, 1)) == nil {
				t.Error("the schema accepts it")
			}
		})
	}
}

func TestSchemaIsStable(t *testing.T) {
	if !bytes.Equal(Schema(), Schema()) || !json.Valid(Schema()) {
		t.Error("the schema isn't the same every time, or no JSON")
	}
}

func TestSchemaOf(t *testing.T) {
	for _, kind := range []string{"course", "level", "quiz"} {
		raw, known := SchemaOf(kind)
		var schema struct {
			Type       string
			Properties map[string]any
			Additional any `json:"additionalProperties"`
		}
		if err := json.Unmarshal(raw, &schema); !known || err != nil || schema.Type != "object" || len(schema.Properties) == 0 || schema.Additional != false {
			t.Errorf("%s: %v %+v", kind, err, schema)
		}
	}
	if _, known := SchemaOf("menu"); known {
		t.Error("a schema of a file that there isn't")
	}
}
