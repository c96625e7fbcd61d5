package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLimitsAreRaisedAndSetBack(t *testing.T) {
	dir := t.TempDir()
	low, high := filepath.Join(dir, "low"), filepath.Join(dir, "high")
	read := func(file string) string {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	for file, text := range map[string]string{low: "128\n", high: "9000\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	back, err := raise(map[string]int{low: 4096, high: 4096})
	if err != nil || read(low) != "4096" || read(high) != "9000" {
		t.Fatalf("%v: %s and %s", err, read(low), read(high))
	}
	if err := back(); err != nil || read(low) != "128" || read(high) != "9000" {
		t.Errorf("set back: %v: %s and %s", err, read(low), read(high))
	}
	if _, err := raise(map[string]int{low: 4096, filepath.Join(dir, "none"): 1}); err == nil || read(low) != "128" {
		t.Errorf("a limit that isn't there: %v, %s", err, read(low))
	}
}
