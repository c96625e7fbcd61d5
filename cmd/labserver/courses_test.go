package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubistro/internal/course"
)

const tinyCourse = "title: {zh-TW: 小館, en: Diner}\nsummary: {zh-TW: 店, en: A house}\nlevels:\n  - {title: {zh-TW: 一, en: One}, summary: {zh-TW: 一, en: One}}\n"

func TestCoursesAreListed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "diner", "course.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(tinyCourse), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := call(t, nil, "courses", "--json", "--courses", dir)
	var got struct{ Courses []courseInfo }
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitGood {
		t.Fatalf("code %d: %v %s", code, err, errs)
	}
	byID := map[string]courseInfo{}
	for _, c := range got.Courses {
		byID[c.ID] = c
	}
	if l := byID["restaurant"].Levels[0]; len(l.Exercises) != 5 || len(l.Questions) < 5 || len(l.Languages) != 2 || len(l.Exercises[0].Solutions) != 2 || l.Exercises[0].Checks[0] != "hired" {
		t.Errorf("restaurant/1: %+v", l)
	}
	if c := byID["diner"]; len(c.Levels) != 1 || !c.Levels[0].Coming {
		t.Errorf("diner: %+v", c)
	}
	if code, out, _ := call(t, nil, "courses", "--courses", dir); code != exitGood || !strings.Contains(out, "restaurant/1") {
		t.Errorf("table: %d %s", code, out)
	}
	if err := os.WriteFile(file, []byte("bogus: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := call(t, nil, "courses", "--courses", dir); code != exitFindings || strings.Contains(out, "diner") || !strings.Contains(errs, file) {
		t.Errorf("with faults: %d %s %s", code, out, errs)
	}
}

func TestCoursesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "diner", "course.yaml")
	o := courseOptions{folders: []string{dir}, only: true}
	folders, library, faults, err := o.open()
	if err != nil || len(faults) > 0 || len(library.All()) != 0 {
		t.Fatalf("%v %v %v", err, faults, library.All())
	}
	ctx, cancel := context.WithCancel(t.Context())
	reloaded, ended := make(chan course.Faults, 10), make(chan error, 1)
	go func() {
		ended <- watchCourses(ctx, folders, library, slog.New(slog.DiscardHandler), func(f course.Faults) { reloaded <- f })
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	// Until what is written is read: the watch may begin after the first write.
	write := func(text string, fits func(course.Faults) bool) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for limit := time.After(time.Minute); ; {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			select {
			case f := <-reloaded:
				if fits(f) {
					return
				}
			case <-tick.C:
			case <-limit:
				t.Fatal("never read")
			}
		}
	}
	title := func() string {
		if c := library.Course("diner"); c != nil {
			return c.Title.En
		}
		return ""
	}
	write(tinyCourse, func(f course.Faults) bool { return len(f) == 0 && title() == "Diner" })
	write(strings.Replace(tinyCourse, "Diner", "Bistro", 1), func(f course.Faults) bool { return len(f) == 0 && title() == "Bistro" })
	write("bogus: 1\n", func(f course.Faults) bool { return len(f) > 0 && f[0].File == file && title() == "Bistro" })
}
