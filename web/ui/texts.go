package ui

import (
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"kubistro/internal/lab"
)

//go:embed texts/*.json
var textFiles embed.FS

// Texts is every sentence of the interface in every language. The scripts of the
// page are bundled with the same files. It is immutable.
type Texts struct {
	byLang map[lab.Lang]map[string]string
}

// LoadTexts reads the embedded tables.
func LoadTexts() (*Texts, error) {
	t := &Texts{byLang: map[lab.Lang]map[string]string{}}
	for _, l := range lab.Langs() {
		body, err := textFiles.ReadFile("texts/" + string(l) + ".json")
		if err != nil {
			return nil, fmt.Errorf("ui: %w", err)
		}
		table := map[string]string{}
		if err := json.Unmarshal(body, &table); err != nil {
			return nil, fmt.Errorf("ui: texts of %s: %w", l, err)
		}
		t.byLang[l] = table
	}
	return t, nil
}

// In returns the text of a key with {0}, {1} ... replaced; the key itself when there is none.
func (t *Texts) In(l lab.Lang, key string, args ...any) string {
	s, ok := t.byLang[l][key]
	if !ok {
		return key
	}
	for i, a := range args {
		s = strings.ReplaceAll(s, "{"+strconv.Itoa(i)+"}", fmt.Sprint(a))
	}
	return s
}
