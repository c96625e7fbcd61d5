package main

import (
	"maps"
	"os"
	"regexp"
	"testing"
)

var requirement = regexp.MustCompile(`(?m)^\t([^ =\s]+ => )?([^ \s]+) (v[^ \s]+)`)

// TestVersions keeps the suite on the product's versions: with others, building
// it compiles Kubernetes again, and tests something else.
func TestVersions(t *testing.T) {
	read := func(file string) map[string]string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, replaced := map[string]string{}, map[string]string{}
		for _, m := range requirement.FindAllStringSubmatch(string(b), -1) {
			if out[m[2]] = m[3]; m[1] != "" {
				replaced[m[2]] = m[3]
			}
		}
		maps.Copy(out, replaced) // whatever is required
		return out
	}
	product, suite := read("../../go.mod"), read("e2e/go.mod")
	if len(product) < 100 || len(suite) < 100 {
		t.Fatalf("%d and %d requirements are read", len(product), len(suite))
	}
	for module, version := range product {
		if other := suite[module]; other != "" && other != version {
			t.Errorf("%s is %s here and %s in e2e/go.mod", module, version, other)
		}
	}
}
