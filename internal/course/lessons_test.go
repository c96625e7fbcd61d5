package course

import (
	"testing"

	"kubistro/lessons"
)

// TestLessons reads the courses of the project themselves.
func TestLessons(t *testing.T) {
	l, err := Load(lessons.FS)
	if err != nil {
		t.Fatal(err)
	}
	c := l.Course("restaurant")
	if c == nil || len(c.Levels) != 7 {
		t.Fatalf("the restaurant course has %+v", c)
	}
}
