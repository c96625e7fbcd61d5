package session

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubistro/internal/lab"
)

func newHome(t *testing.T) *home {
	t.Helper()
	h, err := openHome(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return h
}

func codeOf(err error) lab.Code {
	var e *lab.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestHomePaths(t *testing.T) {
	h := newHome(t)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("host"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(h.path, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(h.path, "etc")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"../secret", "/etc/passwd", "a/../../secret", "", ".", "a//b", "a\x00b", "a\nb", "\xff\xfe", "link", "etc/passwd",
		strings.Repeat("a", 300), "a/b/c/d/e/f/g/h/i/j", " /x", `..\secret`,
	} {
		if data, _, err := h.read(path); err == nil {
			t.Errorf("read %q: got %q", path, data)
		}
		if _, err := h.write(path, []byte("x")); err == nil {
			t.Errorf("wrote %q", path)
		}
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "host" {
		t.Fatalf("the file outside: %q %v", data, err)
	}
	for _, path := range []string{"grill.yaml", "menu/soup.yaml", "菜單/湯.yaml", "a b.txt"} {
		if _, err := h.write(path, []byte(path)); err != nil {
			t.Errorf("write %q: %v", path, err)
		}
		if data, info, err := h.read(path); err != nil || string(data) != path || info.Path != path {
			t.Errorf("read %q: %q %+v %v", path, data, info, err)
		}
	}
}

func TestHomeQuota(t *testing.T) {
	h := newHome(t)
	if _, err := h.write("big", make([]byte, fileBytes+1)); codeOf(err) != lab.CodeTooLarge {
		t.Errorf("one file too large: %v", err)
	}
	for i := range homeBytes / fileBytes {
		if _, err := h.write(string(rune('a'+i)), make([]byte, fileBytes)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.write("last", []byte("x")); codeOf(err) != lab.CodeTooLarge {
		t.Errorf("over quota: %v", err)
	}
	if _, err := h.write("a", []byte("small")); err != nil {
		t.Errorf("making a file smaller at the quota: %v", err)
	}
	if entries, err := os.ReadDir(h.path); err != nil || len(entries) != homeBytes/fileBytes {
		t.Errorf("%d entries left, want %d (%v)", len(entries), homeBytes/fileBytes, err)
	}
}

// An exercise's files never take the place of the learner's own without a copy.
func TestPlaceKeepsCopies(t *testing.T) {
	h := newHome(t)
	start := map[string][]byte{"grill.yaml": []byte("start")}
	if err := h.place(start); err != nil {
		t.Fatal(err)
	}
	if err := h.place(start); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.read("grill.yaml~"); codeOf(err) != lab.CodeNotFound {
		t.Errorf("a copy of an unchanged file: %v", err)
	}
	if _, err := h.write("grill.yaml", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if err := h.place(start); err != nil {
		t.Fatal(err)
	}
	now, _, err := h.read("grill.yaml")
	if err != nil || !bytes.Equal(now, []byte("start")) {
		t.Errorf("the file: %q %v", now, err)
	}
	kept, _, err := h.read("grill.yaml~")
	if err != nil || !bytes.Equal(kept, []byte("mine")) {
		t.Errorf("the copy: %q %v", kept, err)
	}
}

func TestIsPrompt(t *testing.T) {
	for line, want := range map[string]bool{
		"learner@kubistro:~$ ":                        true,
		"\x1b[1;32mlearner\x1b[0m:\x1b[34m~\x1b[0m$ ": true,
		"> ":              true,
		"pod/grill ready": false,
		"":                false,
		"costs 5$":        false,
	} {
		if got := isPrompt(line); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
