package course

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// onDisk writes a course below dir and returns the course's folder.
func onDisk(t *testing.T, dir, id string) string {
	t.Helper()
	for name, text := range files() {
		name = filepath.Join(dir, filepath.FromSlash(strings.Replace(name, "diner/", id+"/", 1)))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, id)
}

func names(courses []*Course) string {
	var out []string
	for _, c := range courses {
		out = append(out, c.ID)
	}
	return strings.Join(out, " ")
}

func TestFolders(t *testing.T) {
	many, single := t.TempDir(), t.TempDir()
	onDisk(t, many, "canteen")
	snack := onDisk(t, single, "snack")
	onDisk(t, single, "hidden") // beside a course that is named itself
	builtIn := fixture(files())
	builtIn["shared/soup.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: soup}\n")}
	f, err := NewFolders(builtIn, false, []string{many, snack})
	if err != nil {
		t.Fatal(err)
	}
	courses, faults := f.Reload()
	if names(courses) != "diner canteen snack" || len(faults) > 0 {
		t.Fatalf("%s %v", names(courses), faults)
	}
	library := &Library{Courses: courses}
	level := filepath.Join(snack, "1", "level.yaml")
	good, err := os.ReadFile(level)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(level, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	// What has a fault stays as it was, and its author learns where.
	write(strings.Replace(string(good), "minutes: 5", "minuets: 5", 1))
	courses, faults = f.Reload()
	if names(courses) != "diner canteen snack" || courses[2] != library.Courses[2] {
		t.Errorf("with a fault: %s", names(courses))
	}
	if len(faults) == 0 || faults[0].File != level || faults[0].Line != 1 {
		t.Errorf("faults: %v", faults)
	}

	write(strings.Replace(string(good), "minutes: 5", "minutes: 7", 1))
	courses, faults = f.Reload()
	library.Replace(courses)
	if len(faults) > 0 || library.Course("snack").Level("1").Minutes != 7 {
		t.Errorf("mended: %v", faults)
	}

	// The folder that all levels see is the built-in one where an author has none.
	write(strings.Replace(string(good), "setup: [manifests/soup.yaml]", "setup: [manifests/soup.yaml, shared/soup.yaml]", 1))
	if _, faults = f.Reload(); len(faults) > 0 {
		t.Errorf("shared: %v", faults)
	}

	only, err := NewFolders(builtIn, true, []string{snack})
	if err != nil {
		t.Fatal(err)
	}
	if courses, faults := only.Reload(); names(courses) != "snack" || len(faults) > 0 {
		t.Errorf("only one: %s %v", names(courses), faults)
	}
	twice, err := NewFolders(builtIn, false, []string{snack, onDisk(t, t.TempDir(), "diner")})
	if err != nil {
		t.Fatal(err)
	}
	if courses, faults := twice.Reload(); names(courses) != "diner snack" || len(faults) != 1 || !strings.Contains(faults[0].Message, "already in the built-in courses") {
		t.Errorf("the same course twice: %s %v", names(courses), faults)
	}
	if _, err := NewFolders(builtIn, false, []string{filepath.Join(many, "none")}); err == nil {
		t.Error("a folder that isn't there")
	}
}
